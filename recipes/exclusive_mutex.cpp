// ExclusiveMutex: one holder at a time, in the order of arrival.
//
// Layout (that of Curator's InterProcessMutex):
//   <path>                               container; made if it is missing
//   <path>/_c_<uuid>-lock-<sequence>     ephemeral, sequential; one for each contender; data: who it is, for people
// In the kazoo dialect <path> is persistent and the name is <uuid without dashes>__lock__<sequence>.
// Nodes of a ReadWriteLock on the same path are contenders, too.
//
// Steps (src/core/acquire/acquire_fsm.cpp runs them):
//   0. The calls of a session line up for one place in the queue (src/core/local/).
//   1. Create the own node, and send exists(<path>) directly after it. If the directory has one child, and its last
//      change was that create, the lock is held. One round trip.
//   2. Otherwise list <path>. If no contender has a lower number, the lock is held. Only the numbers decide (by
//      serial arithmetic), not the text before them. Children that are no lock nodes do not count.
//   3. Otherwise watch the predecessor: the nearest contender with a lower number. So a release wakes one waiter.
//      Meanwhile learn when the predecessor is the only contender before us, and watch the own node then.
//   4. When the predecessor is gone: if all of that was known, the lock is held at once. If only the predecessor was
//      before us, check the own node by a committed write; if the node exists, the lock is held. Otherwise go back to
//      2 and send that check along.
//   5. Release: delete the own node. The caller does not wait; the session makes sure that it happens.
//   With LockOptions::delay_after_loss there are further steps between 1, 2 or 4 and the grant, and before 5:
//   src/core/acquire/lock_delay_fsm.hpp.
//
//   A try lists first, and ends if there is any contender: one read, nothing written.
//   If the connection breaks, the next step depends on what is known of the own node (acquire_fsm.hpp).
//   If the session ends, its node is gone: start again at 1, at the tail of the queue, within the same deadline.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

#include <utility>

#include "core/acquire/acquire_async.hpp"
#include "core/hold/reentrant_lock.hpp"
#include "core/local/local_queue.hpp"
#include "core/queue/participants.hpp"

namespace zkrecipes {
namespace internal {

/// Copied by every call that waits, so that the mutex object may be destroyed meanwhile.
class ExclusiveMutexImpl {
public:
    ExclusiveMutexImpl(std::shared_ptr<SessionCore> session, const std::string& path, const LockOptions& options)
        : core(std::move(session)),
          queue(make_queue(*core, path, options, {"lock-", "__lock__", true, true}, rule_exclusive(options.dialect),
                           kName)),
          local(LocalQueue::of(core, queue)),
          holders(core, path) {}

    /// Waits in the queue.
    auto wait(Deadline deadline, const std::stop_token& stop) const {
        return [this, deadline, &stop] {
            holders.warn_of_own_hold("acquire", deadline);
            return acquire_blocking(core, local_acquisition(core, local, "acquire"), deadline, stop);
        };
    }
    std::shared_ptr<HoldRef> current_hold() const { return holders.of_caller(); }
    auto participants(const char* operation) const {
        return read_participants(core, operation, path(), queue->spec.directory);
    }

    static constexpr const char* kName = "ExclusiveMutex";
    const std::string& path() const noexcept { return queue->user_path; }

    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<const Queue> queue;
    const std::shared_ptr<LocalQueue> local;
    const ReentrantLock holders;
};

}  // namespace internal

using internal::ExclusiveMutexImpl;
using internal::SessionAccess;

ExclusiveMutex::ExclusiveMutex(Session& session, std::string path, LockOptions options)
    : impl_(std::make_shared<ExclusiveMutexImpl>(SessionAccess::core(session), path, options)) {}
ExclusiveMutex::ExclusiveMutex(std::shared_ptr<ExclusiveMutexImpl> impl) noexcept : impl_(std::move(impl)) {}
ExclusiveMutex ExclusiveMutex::in(const std::shared_ptr<internal::SessionCore>& core, const std::string& path,
                                  const LockOptions& options) {
    return ExclusiveMutex(std::make_shared<ExclusiveMutexImpl>(core, path, options));
}
ExclusiveMutex ExclusiveMutex::same() const { return ExclusiveMutex(impl_); }
// A waiter has a copy of the pointer; new copies come from same(), which is called under the registry's mutex.
bool ExclusiveMutex::unused() const noexcept { return impl_.use_count() == 1 && impl_->holders.unused(); }
ExclusiveMutex::ExclusiveMutex(ExclusiveMutex&&) noexcept = default;
ExclusiveMutex& ExclusiveMutex::operator=(ExclusiveMutex&&) noexcept = default;
ExclusiveMutex::~ExclusiveMutex() = default;

Grant ExclusiveMutex::try_acquire_for(Timeout timeout, std::stop_token stop) {
    return try_acquire_until(internal::deadline_in(impl_, timeout, "acquire"), std::move(stop));
}

Grant ExclusiveMutex::try_acquire_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return internal::to_grant(impl->holders.acquire(impl->wait(deadline, stop)));
}

void ExclusiveMutex::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "acquire_async";
    const auto impl = internal::usable(impl_, operation);
    internal::acquire_async(impl->core, internal::local_acquisition(impl->core, impl->local, operation), operation,
                            impl->path(), deadline, std::move(stop), std::move(done));
}

void ExclusiveMutex::lock() { internal::must_hold(try_lock_until(Deadline::never())); }

bool ExclusiveMutex::try_lock_for(Timeout timeout, std::stop_token stop) {
    return try_lock_until(internal::deadline_in(impl_, timeout, "lock"), std::move(stop));
}

bool ExclusiveMutex::try_lock_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    return impl->holders.lock("acquire", impl->wait(deadline, stop));
}

void ExclusiveMutex::unlock() noexcept {
    if (const auto impl = internal::usable_or_null(impl_)) impl->holders.unlock("unlock");
}

bool ExclusiveMutex::held_by_caller() const noexcept { return is_held(current_hold(impl_)); }
FencingToken ExclusiveMutex::token() const noexcept { return token_of(current_hold(impl_)); }
std::stop_token ExclusiveMutex::lost() const noexcept { return lost_of(current_hold(impl_)); }

std::vector<Participant> ExclusiveMutex::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return impl->participants("participants").get(deadline);
}

void ExclusiveMutex::participants_async(Deadline deadline, std::stop_token stop,
                                        std::function<void(Result<std::vector<Participant>>)> done) {
    constexpr const char* operation = "participants_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), impl->participants(operation), deadline, std::move(stop),
              std::move(done));
}

const std::string& ExclusiveMutex::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
