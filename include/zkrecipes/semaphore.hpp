#pragma once

#include <cstdint>
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
class SemaphoreImpl;
}

/// A limit of N leases that clients may hold at the same time: the same semaphore as Curator's InterProcessSemaphoreV2
/// on that path.
///
/// Fair: requests are served in the order of arrival, also if the first one needs several leases and a later one needs
/// fewer. Several leases are taken at once or not at all, so no client holds some of them while it waits for more. A
/// grant has no owner: any fiber or thread may release it. Safe for concurrent use.
///
/// The first client that takes a lease stores the number of leases in ZooKeeper. If an object was made with another
/// number, acquiring by it throws Error bad_option.
///
/// A call that waits for leases also waits for a connection. If the session is lost meanwhile, the call goes on at the
/// tail of the queue with a new session, within the same deadline.
///
/// Algorithm and costs: docs/recipes/semaphore.md. Curator's node names.
class ZKRECIPES_API Semaphore {
public:
    /// `leases`: how many leases there are, at least one. Does not block and sends nothing. Throws Error bad_path,
    /// bad_option.
    Semaphore(Session& session, std::string path, std::int32_t leases, LockOptions options = {});
    Semaphore(Semaphore&&) noexcept;
    Semaphore& operator=(Semaphore&&) noexcept;
    ~Semaphore();  ///< Releases nothing: grants and waiting calls go on.

    /// Blocks until all `count` leases are held. The grant is lost if one of them is lost. Throws Error: bad_option
    /// (the count is below 1, above 1000 or above the number of leases; or another number of leases is stored),
    /// bad_data (what is stored is no number of leases), connection_lost (the retry policy gave up), closed,
    /// no_permission, budget_exceeded, and others of Errc.
    Grant acquire(std::int32_t count = 1) { return try_acquire_until(count, Deadline::never()); }
    /// One attempt. Returns an empty grant if too few leases are free or another client waits, which costs one round
    /// trip with two reads, or if no server answers. Throws as acquire().
    Grant try_acquire(std::int32_t count = 1) { return try_acquire_until(count, Deadline::passed()); }
    /// Blocks until the leases are held. Returns an empty grant if the deadline passes or a stop is requested before;
    /// then nothing is left in the queue. Throws as acquire().
    Grant try_acquire_for(Timeout timeout, std::stop_token stop = {});
    Grant try_acquire_for(std::int32_t count, Timeout timeout, std::stop_token stop = {});
    Grant try_acquire_until(Deadline deadline, std::stop_token stop = {});
    Grant try_acquire_until(std::int32_t count, Deadline deadline, std::stop_token stop = {});
    /// As try_acquire_until, without blocking: `done` is called exactly once, on the session's notifier thread. Throws
    /// immediately if the call cannot be started: closed; bad_option for an empty callback or a bad count. An exception
    /// thrown by the callback is logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done);
    void acquire_async(std::int32_t count, Deadline deadline, std::stop_token stop,
                       std::function<void(AcquireResult)> done);

    /// The number of leases that is stored in ZooKeeper, or that of this object if none is stored. Blocks for one round
    /// trip. Throws Error (unreachable: the deadline passed first).
    std::int32_t leases(Deadline deadline = Deadline::never());
    /// Changes the stored number and wakes the waiters. If the new number is smaller, no holder loses its leases.
    /// Objects that have acquired before use the new number; objects that are made later must be given it. If a waiting
    /// call needs more leases than the new number, it throws bad_option when its turn comes. Blocks for two round
    /// trips. Throws Error (unreachable: the deadline passed first; the number may have been changed or not, see
    /// leases()).
    void set_leases(std::int32_t leases, Deadline deadline = Deadline::never());
    /// The same without blocking; the value of set_leases_async is true. Called back as acquire_async; a stop before
    /// the answer is unreachable, too.
    void leases_async(Deadline deadline, std::stop_token stop, std::function<void(Result<std::int32_t>)> done);
    void set_leases_async(std::int32_t leases, Deadline deadline, std::stop_token stop,
                          std::function<void(Result<bool>)> done);

    /// The holders, one entry for each lease, oldest first; then the waiters, in the order of the queue. Blocks for
    /// four round trips or more. Throws Error (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());
    /// The same without blocking. Called back as acquire_async. If a stop is requested before the answer, the error is
    /// unreachable.
    void participants_async(Deadline deadline, std::stop_token stop,
                            std::function<void(Result<std::vector<Participant>>)> done);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    std::shared_ptr<internal::SemaphoreImpl> impl_;
};

}  // namespace zkrecipes
