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

template <class Lock>
class LockRegistryOf;

namespace internal {
class ExclusiveMutexImpl;
class SessionCore;
}  // namespace internal

/// A fair, re-entrant lock on a znode path: the same lock as Curator's InterProcessMutex on that path.
///
/// The owner is the Boost fiber, or the thread where no fibers run. Safe for concurrent use; fibers and threads that
/// share one object contend as if each had its own. Meets the std requirements TimedLockable, so std::unique_lock
/// and std::lock_guard work. Calls wait for the connection within their deadline; when the session is lost while
/// waiting, the wait goes on at the back of the queue of the new session, within the same deadline.
///
/// Algorithm: Apache ZooKeeper, "Recipes and Solutions", Locks; Curator's node names. Costs, uncontended: acquire one
/// round trip and two requests, release one request that nobody waits for, re-entry none.
class ZKRECIPES_API ExclusiveMutex {
public:
    /// Throws Error bad_path, and bad_option (labels that do not fit into 512 bytes, an empty access list). Does not
    /// block and sends nothing.
    ExclusiveMutex(Session& session, std::string path, LockOptions options = {});
    ExclusiveMutex(ExclusiveMutex&&) noexcept;
    ExclusiveMutex& operator=(ExclusiveMutex&&) noexcept;
    ~ExclusiveMutex();  ///< Holds and waiting calls live on; nothing is released.

    /// Blocks until held. Throws Error: connection_lost (retry policy gave up), closed, no_permission, lock_lost
    /// (re-entry into a hold that was lost), budget_exceeded, and others of Errc.
    Grant acquire();
    /// Empty: the deadline passed or a stop was requested; nothing is left in the queue. A passed deadline makes
    /// one attempt that costs one read when somebody holds the lock. Throws as acquire() does.
    Grant acquire_before(Deadline deadline, std::stop_token stop = {});
    /// As acquire_before without blocking; the result comes on the session's notifier thread, exactly once. The grant
    /// is owned by nobody in particular: it is never re-entrant. Throws Error at once where nothing can follow: closed;
    /// bad_option for an empty callback. What the callback throws is logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    void lock();                    ///< acquire(), given back by unlock() of the same fiber or thread
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
    /// Gives back one lock(). Does not block. By a fiber or thread that has locked nothing (a grant does not count): an
    /// assertion in debug builds; logged and ignored otherwise. After a loss it restores the pairing.
    void unlock() noexcept;

    /// What the calling fiber or thread holds, by lock() or by grants that it acquired.
    bool held_by_caller() const noexcept;
    FencingToken token() const noexcept;    ///< of the caller's hold; 0: none
    std::stop_token lost() const noexcept;  ///< of the caller's hold; empty: none

    /// Who holds and who waits, in the order of the queue. Blocks for two round trips or more; throws Error
    /// (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());

    const std::string& path() const noexcept;

private:
    friend class LockRegistryOf<ExclusiveMutex>;
    explicit ExclusiveMutex(std::shared_ptr<internal::ExclusiveMutexImpl> impl) noexcept;
    static ExclusiveMutex in(const std::shared_ptr<internal::SessionCore>& core, const std::string& path,
                             const LockOptions& options);
    ExclusiveMutex same() const;  // another object for the same lock, of which the fibers and threads share their holds
    bool unused() const noexcept;  // nobody holds, waits, or has another object for it

    Deadline deadline_in(std::chrono::nanoseconds from_now) const;

    std::shared_ptr<internal::ExclusiveMutexImpl> impl_;
};

}  // namespace zkrecipes
