#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

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

/// Takes several locks, a *set*, as one: all of them or none. One transaction enters all queues, and one releases all
/// locks. Sets that overlap cannot deadlock, in whatever order their members are written, as long as no caller waits
/// for a lock or a set while it holds another one.
///
///     MultiLock transfer(session, {"/accounts/1", "/accounts/2", {"/rates", MultiLock::As::shared}});
///
/// Each member is an ordinary lock on its path: it excludes clients that use only that path,
/// and they exclude it. A hold belongs to its Grant object; lock() is re-entrant, as that of ExclusiveMutex.
/// Safe for concurrent use. Meets the std requirements TimedLockable.
///
/// If the calling fiber or thread has locked another lock of this library by lock(), it must not wait for a set: the
/// call throws Error would_deadlock at once. A try is allowed, and so is try_acquire_while_holding. The check does not
/// see grants and semaphores. If the caller has one and waits for a set, use a deadline: the wait can deadlock.
///
/// A call that waits for the set also waits for a connection. If the session is lost meanwhile, the call goes on at the
/// tail of all queues with a new session, within the same deadline.
///
/// Algorithm: docs/recipes/multi_lock.md. Costs without contention for n paths: one round trip with n + 1 requests to
/// acquire; one request to release; one round trip with n reads for a try that fails.
class ZKRECIPES_API MultiLock {
public:
    /// Which lock a path is. All clients that use a path must agree on it.
    enum class As {
        mutex,      ///< an ExclusiveMutex
        exclusive,  ///< a ReadWriteLock in exclusive mode
        shared      ///< a ReadWriteLock in shared mode
    };
    /// A path alone is the member of a mutex.
    struct Member {
        Member() = default;
        /// A path converts to it.
        template <std::convertible_to<std::string> Path>
        Member(Path&& of_lock, As use = As::mutex)  // NOLINT: a path is a member
            : path(std::forward<Path>(of_lock)), as(use) {}

        std::string path;   ///< of the lock
        As as = As::mutex;  ///< which lock it is
    };
    static constexpr std::size_t max_members = 256;  ///< of one set

    /// If a path occurs twice, it counts once; it is `exclusive` if one of its members is. Does not block and sends
    /// nothing. Throws Error: bad_path; bad_option (no member, too many members, one path both as a mutex and as a
    /// read-write lock, and the reasons of ExclusiveMutex); too_large (more than one transaction can hold); unsupported
    /// (the kazoo dialect).
    MultiLock(Session& session, std::vector<Member> members, LockOptions options = {});
    MultiLock(MultiLock&&) noexcept;
    MultiLock& operator=(MultiLock&&) noexcept;
    ~MultiLock();  ///< Releases nothing: grants and waiting calls go on.

    /// Blocks until all locks are held. The grant is lost if any of them is lost. It has one token for all members, and
    /// node() is that of the first member. Throws Error: would_deadlock, connection_lost (the retry policy gave up),
    /// closed, no_permission, budget_exceeded, and others of Errc. Warns as ExclusiveMutex::acquire().
    Grant acquire() { return try_acquire_until(Deadline::never()); }
    /// One attempt, which is allowed also if the caller has locked other locks. Returns an empty grant if another
    /// client is in the way, which costs one read for each member, or if no server answers. Throws as acquire().
    Grant try_acquire() { return try_acquire_until(Deadline::passed()); }
    /// Blocks until all locks are held. Returns an empty grant if the deadline passes or a stop is requested before;
    /// then nothing is left in any queue. Throws as acquire().
    Grant try_acquire_for(Timeout timeout, std::stop_token stop = {});
    Grant try_acquire_until(Deadline deadline, std::stop_token stop = {});
    /// As try_acquire_until, also if the caller has locked other locks. This can deadlock: if the holder of a member
    /// waits for a lock of the caller, only the deadline ends the wait. Throws bad_option for a deadline that never
    /// passes.
    Grant try_acquire_while_holding(Deadline deadline, std::stop_token stop = {});
    /// As try_acquire_until, without blocking: `done` is called exactly once, on the session's notifier thread. It
    /// does not check what the caller has locked, so it can deadlock as try_acquire_while_holding. If the call cannot
    /// be started, throws immediately: closed; bad_option for an empty callback. An exception thrown by the callback is
    /// logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// As the calls above, but without a Grant: unlock() by the same fiber or thread releases the locks. The tries
    /// return false where the calls above return an empty grant. If the caller's hold was lost and it has not called
    /// unlock() yet, these calls throw lock_lost.
    void lock();
    [[nodiscard]] bool try_lock() { return try_lock_until(Deadline::passed()); }
    [[nodiscard]] bool try_lock_for(Timeout timeout, std::stop_token stop = {});
    [[nodiscard]] bool try_lock_until(Deadline deadline, std::stop_token stop = {});
    /// Undoes one lock() of the calling fiber or thread; needed also if the hold was lost. Does not block. If the
    /// caller has not called lock() before (grants do not count), an assertion fails in debug builds; otherwise the
    /// call is logged and ignored.
    void unlock() noexcept;

    /// True if the calling fiber or thread holds the set by lock() of this object or its tries, and the hold is still
    /// guaranteed, as Grant::held() says. Grants do not count.
    bool held_by_caller() const noexcept;
    FencingToken token() const noexcept;    ///< of the caller's hold by lock(), one for all members; 0 if it has none
    std::stop_token lost() const noexcept;  ///< of the hold that the caller got by lock(); empty if it has none

    /// The holders and the waiters of each member, in the order of members(). Blocks for two round trips or more for
    /// each member. Throws Error (unreachable: the deadline of the whole call passed first).
    std::vector<LockView> participants(Deadline deadline = Deadline::never());
    /// The same without blocking. Called back as acquire_async. If a stop is requested before the answer, the error is
    /// unreachable.
    void participants_async(Deadline deadline, std::stop_token stop,
                            std::function<void(Result<std::vector<LockView>>)> done);

    /// Each path once, in the order in which they were given.
    const std::vector<Member>& members() const noexcept;

private:
    std::shared_ptr<internal::MultiLockImpl> impl_;
};

}  // namespace zkrecipes
