#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

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

/// A fair lock on a znode path with an exclusive and a shared mode: the same lock as Curator's
/// InterProcessReadWriteLock on that path.
///
/// Fair: a shared request waits for earlier exclusive requests. A hold belongs to its Grant object. lock(),
/// lock_shared() and their tries are re-entrant, as those of ExclusiveMutex; the same rule for coroutines applies.
/// Fibers and threads may share one object. Meets the std requirements SharedTimedLockable and TimedLockable, so
/// std::unique_lock and std::shared_lock work.
///
/// Downgrade: an exclusive holder may take a shared hold as well, without waiting for others, and then release the
/// exclusive one. No exclusive holder comes in between. For a Grant, call downgrade() and then release the exclusive
/// grant. After lock(), call lock_shared() and then unlock().
///
/// Upgrade: there is none. After lock_shared(), lock() and its tries would wait for their own caller, so they throw
/// Error would_deadlock at once. acquire() waits for all shared grants, also for those of the caller. A second
/// acquire_shared() waits for writers that came in between, and these wait for the first grant: use Grant::again().
///
/// An ExclusiveMutex on the same path counts as an exclusive request.
///
/// A call that waits for the lock also waits for a connection. If the session is lost meanwhile, the call goes on at
/// the tail of the queue with a new session, within the same deadline.
///
/// Algorithm: Apache ZooKeeper, "Recipes and Solutions", Shared Locks; Curator's node names. Costs without contention:
/// one round trip with two requests to acquire, and one more with a list if there are other shared holders; one request
/// to release, for which the caller does not wait; none to lock again.
class ZKRECIPES_API ReadWriteLock {
public:
    /// Does not block and sends nothing. Throws Error: bad_path; bad_option if the labels need more than 512 bytes or
    /// the access list is empty.
    ReadWriteLock(Session& session, std::string path, LockOptions options = {});
    ReadWriteLock(ReadWriteLock&&) noexcept;
    ReadWriteLock& operator=(ReadWriteLock&&) noexcept;
    ~ReadWriteLock();  ///< Releases nothing: grants and waiting calls go on.

    // ---- exclusive mode ------------------------------------------------------------------------------------------
    /// Blocks until the lock is held. Warns as ExclusiveMutex::acquire(). Throws Error: connection_lost (the retry
    /// policy gave up), closed, no_permission, budget_exceeded, and others of Errc.
    Grant acquire() { return try_acquire_until(Deadline::never()); }
    /// One attempt. Returns an empty grant if another client holds the lock or waits for it, which costs one read, or
    /// if no server answers. Throws as acquire().
    Grant try_acquire() { return try_acquire_until(Deadline::passed()); }
    /// Blocks until the lock is held. Returns an empty grant if the deadline passes or a stop is requested before; then
    /// nothing is left in the queue. Throws as acquire().
    Grant try_acquire_for(Timeout timeout, std::stop_token stop = {});
    Grant try_acquire_until(Deadline deadline, std::stop_token stop = {});
    /// As try_acquire_until, without blocking: `done` is called exactly once, on the session's notifier thread. If the
    /// call cannot be started, throws immediately: closed; bad_option for an empty callback. An exception thrown by the
    /// callback is logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// As the calls above, but without a Grant: unlock() by the same fiber or thread releases the lock. The tries
    /// return false where the calls above return an empty grant. If the caller's hold was lost and it has not called
    /// unlock() yet, these calls throw lock_lost. If it has locked it in shared mode, they throw would_deadlock.
    void lock();
    [[nodiscard]] bool try_lock() { return try_lock_until(Deadline::passed()); }
    [[nodiscard]] bool try_lock_for(Timeout timeout, std::stop_token stop = {});
    [[nodiscard]] bool try_lock_until(Deadline deadline, std::stop_token stop = {});
    /// Undoes one lock() of the calling fiber or thread; needed also if the hold was lost. Does not block. If the
    /// caller has not called lock() before (grants do not count), an assertion fails in debug builds; otherwise the
    /// call is logged and ignored.
    void unlock() noexcept;

    // ---- shared mode -----------------------------------------------------------------------------------------------
    /// As acquire(), its tries and acquire_async(), in shared mode: a call waits only for exclusive holders and earlier
    /// exclusive requests.
    Grant acquire_shared() { return try_acquire_shared_until(Deadline::never()); }
    Grant try_acquire_shared() { return try_acquire_shared_until(Deadline::passed()); }
    Grant try_acquire_shared_for(Timeout timeout, std::stop_token stop = {});
    Grant try_acquire_shared_until(Deadline deadline, std::stop_token stop = {});
    void acquire_shared_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// As lock(), its tries and unlock(), in shared mode. If the caller has called lock(), lock_shared() and its tries
    /// downgrade.
    void lock_shared();
    [[nodiscard]] bool try_lock_shared() { return try_lock_shared_until(Deadline::passed()); }
    [[nodiscard]] bool try_lock_shared_for(Timeout timeout, std::stop_token stop = {});
    [[nodiscard]] bool try_lock_shared_until(Deadline deadline, std::stop_token stop = {});
    void unlock_shared() noexcept;

    /// Takes a shared hold beside the exclusive hold `exclusive`. Does not release `exclusive`: the caller then has
    /// both holds; readers come in when all grants of the exclusive hold are released. Blocks until a server has
    /// answered, not for other clients. An empty grant: the deadline passed or a stop was requested before. Throws
    /// Error: bad_option (`exclusive` is not an exclusive grant of this path and session, or is empty), lock_lost (it
    /// is lost, or gets lost during the call), and as acquire().
    Grant downgrade(const Grant& exclusive, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// The same without blocking. Called back as acquire_async; `exclusive` is not used after the call has returned.
    void downgrade_async(const Grant& exclusive, Deadline deadline, std::stop_token stop,
                         std::function<void(AcquireResult)> done);

    // ---- what the calling fiber or thread has locked by lock() or lock_shared(); grants do not count ----------------
    bool held_by_caller() const noexcept;         ///< in exclusive mode
    bool shared_held_by_caller() const noexcept;  ///< in shared mode
    /// The token of the caller's hold; of the exclusive one if it has both. 0: it has no hold. A resource must refuse
    /// an exclusive holder whose token is smaller than the largest that it has seen. It must refuse a shared holder
    /// whose token is not larger than those of all exclusive holders that it has seen. FencedRegister does this.
    FencingToken token() const noexcept;
    std::stop_token lost() const noexcept;  ///< of the caller's hold, the exclusive one if there are both

    /// The holders and the waiters with their modes, in the order of the queue. Blocks for two round trips or more.
    /// Throws Error (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());
    /// The same without blocking. Called back as acquire_async. If a stop is requested before the answer, the error is
    /// unreachable.
    void participants_async(Deadline deadline, std::stop_token stop,
                            std::function<void(Result<std::vector<Participant>>)> done);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    friend class LockRegistryOf<ReadWriteLock>;
    explicit ReadWriteLock(std::shared_ptr<internal::ReadWriteLockImpl> impl) noexcept;
    static ReadWriteLock in(const std::shared_ptr<internal::SessionCore>& core, const std::string& path,
                            const LockOptions& options);
    ReadWriteLock same() const;    // another object for the same lock, by which fibers and threads can unlock
    bool unused() const noexcept;  // nobody holds the lock, waits for it, or has another object for it

    std::shared_ptr<internal::ReadWriteLockImpl> impl_;
};

}  // namespace zkrecipes
