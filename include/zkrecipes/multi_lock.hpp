#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/acquire_result.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/lock_options.hpp>

namespace zkrecipes {

class Session;

namespace internal {
class MultiLockImpl;
}

/// Several locks as one: all of them or none. Enters every queue by one transaction, waits for all that came before in
/// any of them, and gives all back by one transaction. Sets that overlap cannot deadlock, in whatever order they are
/// written, as long as nobody waits for one while holding something else.
///
/// Each member is an ordinary lock on its path: it excludes, and is excluded by, those who use that path alone.
/// Re-entrant for the owner, which is the Boost fiber, or the thread where no fibers run. Safe for concurrent use.
/// Meets the std requirements of TimedLockable. Calls wait for the connection within their deadline; when the session
/// is lost while waiting, the wait goes on at the back of the queues of the new session, within the same deadline.
///
/// A fiber or thread that holds any lock of this library must not wait here: Error would_deadlock, at once, unless it
/// calls acquire_while_holding. What acquire_async gave, and leases of a Semaphore or SemaphoreMutex, belong to nobody
/// and are not seen by this check.
///
/// Costs, uncontended, for n paths: acquire two round trips and n + 2 requests, release one request, a try that fails
/// one round trip and n reads.
class ZKRECIPES_API MultiLock {
public:
    /// The lock that a path is. All who use a path must agree on it.
    enum class As {
        mutex,  ///< as an ExclusiveMutex on the path
        alone,  ///< as a ReadWriteLock on the path that is held alone
        shared  ///< as a share of a ReadWriteLock on the path
    };
    struct Member {
        std::string path;
        As as = As::mutex;
    };
    static constexpr std::size_t max_members = 256;

    /// A path that occurs twice counts once, `alone` if any of them says so. Throws Error bad_path; bad_option (no
    /// member, too many, one path both as a mutex and as a read-write lock, and what ExclusiveMutex refuses);
    /// too_large; unsupported (the kazoo dialect). Does not block and sends nothing.
    MultiLock(Session& session, std::vector<Member> members, LockOptions options = {});
    MultiLock(MultiLock&&) noexcept;
    MultiLock& operator=(MultiLock&&) noexcept;
    ~MultiLock();  ///< Holds and waiting calls live on; nothing is released.

    /// Blocks until all are held. Throws Error: would_deadlock, connection_lost (retry policy gave up), closed,
    /// no_permission, lock_lost (re-entry into a hold that was lost), budget_exceeded, and others of Errc. The grant is
    /// lost when any member is; its token is one for all members; its node is that of the first member.
    Grant acquire();
    /// Empty: the deadline passed or a stop was requested; nothing is left in any queue. A passed deadline makes one
    /// attempt, which waits for nobody and is allowed to whoever holds something: one read for each member when
    /// somebody is in the way. Throws as acquire().
    Grant acquire_before(Deadline deadline, std::stop_token stop = {});
    /// As acquire_before, for a fiber or thread that holds something already and knows that whoever it waits for may be
    /// waiting for that: only the deadline ends such a wait. Throws bad_option for a deadline that never passes.
    Grant acquire_while_holding(Deadline deadline, std::stop_token stop = {});
    /// As acquire_before without blocking; the result comes on the session's notifier thread, exactly once. It is
    /// owned by nobody in particular: it is never re-entrant, and whether somebody holds something is not looked at.
    /// Throws Error at once where nothing can follow: closed; bad_option for an empty callback. What the callback
    /// throws is logged.
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

    /// What the calling fiber or thread holds of this object, by lock() or by grants that it acquired.
    bool held_by_caller() const noexcept;
    FencingToken token() const noexcept;    ///< of the caller's hold, one for all members; 0: none
    std::stop_token lost() const noexcept;  ///< of the caller's hold; empty: none

    /// Who holds and who waits at each member, in the order of members(). Blocks for two round trips or more for each;
    /// throws Error (unreachable: the deadline over all passed first).
    std::vector<LockView> participants(Deadline deadline = Deadline::never());

    /// Each path once, in the order in which they were given.
    const std::vector<Member>& members() const noexcept;

private:
    Deadline deadline_in(std::chrono::nanoseconds from_now) const;

    std::shared_ptr<internal::MultiLockImpl> impl_;
};

}  // namespace zkrecipes
