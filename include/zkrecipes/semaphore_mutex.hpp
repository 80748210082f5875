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

namespace internal {
class SemaphoreMutexImpl;
}

/// A fair lock without an owner: one fiber or thread may call lock() and another one unlock(). A Grant of any lock can
/// be released by another thread: you need a SemaphoreMutex only if unlock() must be called by another thread than
/// lock(). The same lock as Curator's InterProcessSemaphoreMutex on that path.
///
/// Not re-entrant: locking it twice deadlocks. It does not exclude the holder of an ExclusiveMutex on the same path.
/// Safe for concurrent use. Meets the std requirements TimedLockable.
///
/// A call that waits for the lock also waits for a connection. If the session is lost meanwhile, the call goes on at
/// the tail of the queue with a new session, within the same deadline.
///
/// Algorithm: a Semaphore with one lease. Costs without contention: two round trips with four requests to acquire; one
/// request to release, for which the caller does not wait.
class ZKRECIPES_API SemaphoreMutex {
public:
    /// Does not block and sends nothing. Throws Error: bad_path; bad_option if the labels need more than 512 bytes or
    /// the access list is empty.
    SemaphoreMutex(Session& session, std::string path, LockOptions options = {});
    SemaphoreMutex(SemaphoreMutex&&) noexcept;
    SemaphoreMutex& operator=(SemaphoreMutex&&) noexcept;
    ~SemaphoreMutex();  ///< Releases nothing: grants and waiting calls go on.

    /// Blocks until the lock is held. Throws Error: bad_option (the path is used by a semaphore with several leases),
    /// bad_data, connection_lost (the retry policy gave up), closed, no_permission, budget_exceeded, and others of
    /// Errc.
    Grant acquire() { return try_acquire_until(Deadline::never()); }
    /// One attempt. Returns an empty grant if another client holds the lock or waits for it, which costs one round trip
    /// with two reads, or if no server answers. Throws as acquire().
    Grant try_acquire() { return try_acquire_until(Deadline::passed()); }
    /// Blocks until the lock is held. Returns an empty grant if the deadline passes or a stop is requested before; then
    /// nothing is left in the queue. Throws as acquire().
    Grant try_acquire_for(Timeout timeout, std::stop_token stop = {});
    Grant try_acquire_until(Deadline deadline, std::stop_token stop = {});
    /// As try_acquire_until, without blocking: `done` is called exactly once, on the session's notifier thread. If the
    /// call cannot be started, throws immediately: closed; bad_option for an empty callback. An exception thrown by the
    /// callback is logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);

    /// As the calls above, but without a Grant: unlock() by any fiber or thread releases the lock. The tries return
    /// false where the calls above return an empty grant.
    void lock();
    [[nodiscard]] bool try_lock() { return try_lock_until(Deadline::passed()); }
    [[nodiscard]] bool try_lock_for(Timeout timeout, std::stop_token stop = {});
    [[nodiscard]] bool try_lock_until(Deadline deadline, std::stop_token stop = {});
    /// Undoes the oldest lock() of this object. After a loss, another caller may lock through this object before the
    /// first has called unlock(). Then each of the two locks needs one unlock(). Does not block. If lock() was not
    /// called before (grants do not count), an assertion fails in debug builds; otherwise the call is logged and
    /// ignored.
    void unlock() noexcept;

    /// These three describe the hold of the latest lock() of this object. held(): see Grant::held().
    bool held() const noexcept;
    FencingToken token() const noexcept;    ///< 0: none
    std::stop_token lost() const noexcept;  ///< empty: none

    /// The holder, then the waiters, in the order of the queue. Blocks for four round trips or more. Throws Error
    /// (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());
    /// The same without blocking. Called back as acquire_async. If a stop is requested before the answer, the error is
    /// unreachable.
    void participants_async(Deadline deadline, std::stop_token stop,
                            std::function<void(Result<std::vector<Participant>>)> done);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    std::shared_ptr<internal::SemaphoreMutexImpl> impl_;
};

}  // namespace zkrecipes
