#pragma once

#include <chrono>
#include <cstdint>
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
class SemaphoreImpl;
}

/// At most so many leases at the same time, for whom it may concern: the same semaphore as Curator's
/// InterProcessSemaphoreV2 on that path.
///
/// Fair: whoever comes first is served first, also when it wants several leases and somebody behind it wants fewer.
/// Several are taken at once or not at all, so that nobody keeps some while it waits for more. A lease that is given
/// back is free for the next one, whichever it was. A grant is owned by nobody in particular: any fiber or thread may
/// give it back. Safe for concurrent use. Calls wait for the connection within their deadline; when the session is lost
/// while waiting, the wait goes on at the back of the queue of the new session, within the same deadline.
///
/// The number of leases is agreed on in ZooKeeper, by the first that takes one; an object that was made for another
/// number gets Errc::bad_option when it acquires.
class ZKRECIPES_API Semaphore {
public:
    /// `leases`: how many there are, at least one. Throws Error bad_path and bad_option. Does not block and sends
    /// nothing.
    Semaphore(Session& session, std::string path, std::int32_t leases, LockOptions options = {});
    Semaphore(Semaphore&&) noexcept;
    Semaphore& operator=(Semaphore&&) noexcept;
    ~Semaphore();  ///< Grants and waiting calls live on; nothing is released.

    /// Blocks until all `count` leases are held. The grant is lost when one of them is. Its data in ZooKeeper are those
    /// of LockOptions. Throws Error: bad_option (a count below 1, above 1000, or above the number of leases; another
    /// number of leases was agreed on), bad_data, connection_lost (retry policy gave up), closed, no_permission,
    /// budget_exceeded, and others of Errc.
    Grant acquire(std::int32_t count = 1);
    /// Empty: the deadline passed or a stop was requested; nothing is left behind. Throws as acquire() does.
    Grant acquire_before(Deadline deadline, std::stop_token stop = {}, std::int32_t count = 1);
    /// One attempt: empty when there are too few free leases, when somebody stands in the queue, and when no server
    /// answers. Failing costs one round trip of two reads.
    Grant try_acquire(std::int32_t count = 1);
    template <class Rep, class Period>
    Grant try_acquire_for(const std::chrono::duration<Rep, Period>& wait, std::int32_t count = 1) {
        return acquire_before(deadline_in(internal::saturated(wait)), {}, count);
    }
    template <class Clock, class Duration>
    Grant try_acquire_until(const std::chrono::time_point<Clock, Duration>& at, std::int32_t count = 1) {
        return acquire_before(Deadline(at), {}, count);
    }
    /// As acquire_before without blocking; the result comes on the session's notifier thread, exactly once. Throws
    /// Error at once where nothing can follow: closed; bad_option for an empty callback or a bad count. What the
    /// callback throws is logged.
    void acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done,
                       std::int32_t count = 1);

    /// The number agreed on; the object's own while there is none. Blocks for a round trip; throws Error (unreachable:
    /// the deadline passed first).
    std::int32_t leases(Deadline deadline = Deadline::never());
    /// Changes the number, and wakes who waits: when there are more, they get them; when there are fewer, nobody loses
    /// what it holds. Objects that have acquired before follow; those made later must be made for the new number, and
    /// waiting calls that want more than that fail. Blocks for two round trips; throws Error (unreachable: the deadline
    /// passed first, and whether the number was changed is not known; leases() tells).
    void set_leases(std::int32_t leases, Deadline deadline = Deadline::never());

    /// Who holds leases (one entry for each, the oldest first), then who waits, in the order of the queue. Blocks for
    /// four round trips or more; throws Error (unreachable: the deadline passed first).
    std::vector<Participant> participants(Deadline deadline = Deadline::never());

    const std::string& path() const noexcept;

private:
    Deadline deadline_in(std::chrono::nanoseconds from_now) const;

    std::shared_ptr<internal::SemaphoreImpl> impl_;
};

}  // namespace zkrecipes
