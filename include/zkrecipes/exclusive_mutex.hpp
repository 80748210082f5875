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
class ExclusiveMutexImpl;
class SessionCore;
}  // namespace internal

/// A lock on a znode path, with one holder at a time: the same lock as Curator's InterProcessMutex on that path. Fair:
/// clients get the lock in the order of their requests.
///
/// A hold that was acquired as a Grant belongs to the Grant: every other acquire waits or finds the lock busy, also
/// if the same thread calls it. lock() and its tries are re-entrant: their owner is the Boost fiber that called them,
/// or the thread if no fibers run on it. The owner may lock again at no cost, and must unlock as often. Fibers and
/// threads may share one object: they exclude each other. Meets the std requirements TimedLockable, so std::unique_lock
/// and std::lock_guard work. A coroutine must not be suspended between lock() and unlock(), because another coroutine
/// on the same thread could enter the lock: use acquire_async.
///
/// A call that waits for the lock also waits for a connection. If the session is lost meanwhile, the call goes on at
/// the tail of the queue with a new session, within the same deadline.
///
/// Algorithm: Apache ZooKeeper, "Recipes and Solutions", Locks; Curator's node names. Costs without contention: one
/// round trip with two requests to acquire; one request to release, for which the caller does not wait; none to
/// lock again.
class ZKRECIPES_API ExclusiveMutex {
public:
    /// Does not block and sends nothing. Throws Error: bad_path; bad_option if the labels need more than 512 bytes or
    /// the access list is empty.
    ExclusiveMutex(Session& session, std::string path, LockOptions options = {});
    ExclusiveMutex(ExclusiveMutex&&) noexcept;
    ExclusiveMutex& operator=(ExclusiveMutex&&) noexcept;
    ~ExclusiveMutex();  ///< Releases nothing: grants and waiting calls go on.

    /// Blocks until the lock is held. If the calling fiber or thread waits for its own Grant, a warning is logged, once
    /// for each lock object. Throws Error: connection_lost (the retry policy gave up), closed, no_permission,
    /// budget_exceeded, and others of Errc.
    Grant acquire() { return try_acquire_until(Deadline::never()); }
    /// One attempt. Returns an empty grant if another client holds the lock or waits for it, which costs one read, or
    /// if no server answers. Throws as acquire().
    Grant try_acquire() { return try_acquire_until(Deadline::passed()); }
    /// Blocks until the lock is held. Returns an empty grant if the deadline passes or a stop is requested before; then
    /// nothing is left in the queue. Throws as acquire().
    Grant try_acquire_for(Timeout timeout, std::stop_token stop = {});
    Grant try_acquire_until(Deadline deadline, std::stop_token stop = {});
    /// As try_acquire_until, without blocking: `done` is called exactly once, on the session's notifier thread. Throws
    /// immediately if the call cannot be started: closed; bad_option for an empty callback. An exception thrown by the
    /// callback is logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// As the calls above, but without a Grant: unlock() by the same fiber or thread releases the lock. The tries
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

    /// True if the calling fiber or thread holds the lock by lock() or its tries, and the hold is still guaranteed, as
    /// Grant::held() says. Grants do not count.
    bool held_by_caller() const noexcept;
    FencingToken token() const noexcept;    ///< of the hold that the caller got by lock(); 0 if it has none
    std::stop_token lost() const noexcept;  ///< of the hold that the caller got by lock(); empty if it has none

    /// The holder and the waiters, in the order of the queue. Blocks for two round trips or more. Throws Error
    /// (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());
    /// The same without blocking. Called back as acquire_async. If a stop is requested before the answer, the error is
    /// unreachable.
    void participants_async(Deadline deadline, std::stop_token stop,
                            std::function<void(Result<std::vector<Participant>>)> done);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    friend class LockRegistryOf<ExclusiveMutex>;
    explicit ExclusiveMutex(std::shared_ptr<internal::ExclusiveMutexImpl> impl) noexcept;
    static ExclusiveMutex in(const std::shared_ptr<internal::SessionCore>& core, const std::string& path,
                             const LockOptions& options);
    ExclusiveMutex same() const;   // another object for the same lock, by which fibers and threads can unlock
    bool unused() const noexcept;  // nobody holds the lock, waits for it, or has another object for it

    std::shared_ptr<internal::ExclusiveMutexImpl> impl_;
};

}  // namespace zkrecipes
