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
class ReadWriteLockImpl;
class SessionCore;
}  // namespace internal

/// A fair, re-entrant lock on a znode path that many may share, or one may have alone: the same lock as Curator's
/// InterProcessReadWriteLock on that path.
///
/// Fair: who shares waits for whoever came earlier and wants it alone. The owner is the Boost fiber, or the thread
/// where no fibers run; each side is re-entrant. Safe for concurrent use. Meets the std requirements
/// SharedTimedLockable and TimedLockable, so std::unique_lock and std::shared_lock work. Calls wait for the connection
/// within their deadline; when the session is lost while waiting, the wait goes on at the back of the queue of the new
/// session, within the same deadline.
///
/// Who holds it alone may take a share besides, at once, and then give up the rest: nobody gets in between but other
/// shares. The other way round, asking for it alone with a share throws Error would_deadlock at once, also of a try: it
/// would wait for itself. What acquire_async gave belongs to nobody and is not seen by this.
///
/// An ExclusiveMutex on the same path excludes it, as if it were one who wants it alone.
///
/// Costs, uncontended: acquire one round trip and two requests, beside other shares a list more; release one request
/// that nobody waits for, re-entry none.
class ZKRECIPES_API ReadWriteLock {
public:
    /// Throws Error bad_path, and bad_option (labels that do not fit into 512 bytes, an empty access list). Does not
    /// block and sends nothing.
    ReadWriteLock(Session& session, std::string path, LockOptions options = {});
    ReadWriteLock(ReadWriteLock&&) noexcept;
    ReadWriteLock& operator=(ReadWriteLock&&) noexcept;
    ~ReadWriteLock();  ///< Holds and waiting calls live on; nothing is released.

    // ---- alone ---------------------------------------------------------------------------------------------------
    /// Blocks until held. Throws Error: connection_lost (retry policy gave up), closed, no_permission, lock_lost
    /// (re-entry into a hold that was lost), would_deadlock, budget_exceeded, and others of Errc.
    Grant acquire();
    /// Empty: the deadline passed or a stop was requested; nothing is left in the queue. A passed deadline makes
    /// one attempt that costs one read when somebody holds the lock or waits for it. Throws as acquire() does.
    Grant acquire_before(Deadline deadline, std::stop_token stop = {});
    /// As acquire_before without blocking; the result comes on the session's notifier thread, exactly once. Throws
    /// Error at once where nothing can follow: closed; bad_option for an empty callback. What it throws is logged.
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

    // ---- shared: as above ----------------------------------------------------------------------------------------
    Grant acquire_shared();  ///< throws lock_lost, too, when what the caller holds alone is lost meanwhile
    /// A passed deadline: one read when somebody has the lock alone or waits for that.
    Grant acquire_shared_before(Deadline deadline, std::stop_token stop = {});
    void acquire_shared_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    void lock_shared();
    [[nodiscard]] bool try_lock_shared();
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
        return lock_shared_before(deadline_in(internal::saturated(wait)));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& at) {
        return lock_shared_before(Deadline(at));
    }
    [[nodiscard]] bool lock_shared_before(Deadline deadline, std::stop_token stop = {});
    void unlock_shared() noexcept;

    // ---- what the calling fiber or thread holds, by lock or by grants that it acquired -----------------------------
    bool held_by_caller() const noexcept;         ///< alone
    bool shared_held_by_caller() const noexcept;  ///< a share
    /// Of the caller's hold, alone if both; 0: none. A resource refuses a holder alone whose token is smaller than the
    /// largest seen, and a share whose token is not larger than that of any holder alone: FencedRegister.
    FencingToken token() const noexcept;
    std::stop_token lost() const noexcept;  ///< of the caller's hold, alone if both; empty: none

    /// Who holds and who waits, and in which mode, in the order of the queue. Blocks for two round trips or more;
    /// throws Error (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());

    const std::string& path() const noexcept;

private:
    friend class LockRegistryOf<ReadWriteLock>;
    explicit ReadWriteLock(std::shared_ptr<internal::ReadWriteLockImpl> impl) noexcept;
    static ReadWriteLock in(const std::shared_ptr<internal::SessionCore>& core, const std::string& path,
                            const LockOptions& options);
    ReadWriteLock same() const;  // another object for the same lock, of which the fibers and threads share their holds
    bool unused() const noexcept;  // nobody holds, waits, or has another object for it

    Deadline deadline_in(std::chrono::nanoseconds from_now) const;

    std::shared_ptr<internal::ReadWriteLockImpl> impl_;
};

}  // namespace zkrecipes
