#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/acquire_result.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/lock_options.hpp>

namespace zkrecipes {

class Session;

namespace internal {
class SemaphoreMutexImpl;
}

/// A fair lock without an owner, not re-entrant: the same lock as Curator's InterProcessSemaphoreMutex on that path.
/// One fiber or thread may take it and another one give it back. It excludes nobody who uses an ExclusiveMutex.
///
/// Safe for concurrent use. Meets the std requirements TimedLockable; who locks what it has locked waits for itself.
/// Calls wait for the connection within their deadline; when the session is lost while waiting, the wait goes on at the
/// back of the queue of the new session, within the same deadline.
///
/// Algorithm: a Semaphore of one lease. Costs, uncontended: acquire two round trips and five requests, release one
/// request that nobody waits for.
class ZKRECIPES_API SemaphoreMutex {
public:
    /// Throws Error bad_path, and bad_option (labels that do not fit into 512 bytes, an empty access list). Does not
    /// block and sends nothing.
    SemaphoreMutex(Session& session, std::string path, LockOptions options = {});
    SemaphoreMutex(SemaphoreMutex&&) noexcept;
    SemaphoreMutex& operator=(SemaphoreMutex&&) noexcept;
    ~SemaphoreMutex();  ///< Holds and waiting calls live on; nothing is released.

    /// Blocks until held. Throws Error: bad_option (the path is that of a semaphore of several leases), bad_data,
    /// connection_lost (retry policy gave up), closed, no_permission, budget_exceeded, and others of Errc.
    Grant acquire();
    /// Empty: the deadline passed or a stop was requested; nothing is left behind. A passed deadline makes one attempt
    /// that costs one round trip of two reads when somebody holds the lock or waits for it. Throws as acquire() does.
    Grant acquire_before(Deadline deadline, std::stop_token stop = {});
    Grant try_acquire() { return acquire_before(Deadline::passed()); }
    /// As acquire_before without blocking; the result comes on the session's notifier thread, exactly once. Throws
    /// Error at once where nothing can follow: closed; bad_option for an empty callback. What the callback throws is
    /// logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    void lock();                    ///< acquire(), given back by unlock() of whoever calls it
    [[nodiscard]] bool try_lock();  ///< one attempt; false also when no server answers
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
        return lock_before(deadline_in(internal::saturated(wait)));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& at) {
        return lock_before(Deadline(at));
    }
    [[nodiscard]] bool lock_before(Deadline deadline, std::stop_token stop = {});
    /// Gives back one lock() of this object, the oldest: after a loss there may be one that is lost beside one that is
    /// held, and each needs its unlock(). Does not block. Without a lock() (a grant does not count): an assertion in
    /// debug builds; logged and ignored otherwise.
    void unlock() noexcept;

    /// What is locked by lock() of this object, the youngest if there are several.
    bool held() const noexcept;
    FencingToken token() const noexcept;    ///< 0: none
    std::stop_token lost() const noexcept;  ///< empty: none

    /// Who holds it, then who waits, in the order of the queue. Blocks for four round trips or more; throws Error
    /// (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());

    const std::string& path() const noexcept;

private:
    Deadline deadline_in(std::chrono::nanoseconds from_now) const;

    std::shared_ptr<internal::SemaphoreMutexImpl> impl_;
};

}  // namespace zkrecipes
