// ExclusiveMutex: one holder at a time, in the order of arrival.
//
// Layout (that of Curator's InterProcessMutex):
//   <path>                                    container, made when missing
//   <path>/_c_<uuid>-lock-<sequence>          ephemeral, sequential; one per contender; data: who it is, for people
// In the kazoo dialect <path> is persistent and the name <uuid without dashes>__lock__<sequence>; nothing else differs.
// Nodes of a ReadWriteLock on the same path are contenders too.
//
// Steps (src/core/acquire/acquire_fsm.cpp runs them):
//   1. Create the own node, and exists(<path>) right behind it. The directory has one child, and its last change was
//      that create: held. One round trip.
//   2. Otherwise list <path>. No contender with a lower number: held. The order is that of the numbers (serial
//      arithmetic), whatever stands before them. Children that are no lock nodes do not count.
//   3. Otherwise watch the nearest lower contender, and only that one: a release wakes one waiter.
//   4. It is gone. It had been the only one before us: check the own node by a committed write; the node is there:
//      held. It had not been: back to 2, with that check sent along.
//   5. Release: delete the own node. Nobody waits for that; the session sees to it that it happens.
//   With LockOptions::delay_after_loss: lock_delay_fsm.hpp says what stands between 1, 2 or 4 and the grant, and
//   before 5.
//
//   A try lists first, and ends there if anybody stands in the queue: one read, nothing written.
//   The connection breaks: what is known of the own node decides where to go on (acquire_fsm.hpp).
//   The session ends: its node is gone, and the call starts again at 1, at the back of the queue, in the same deadline.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

#include <spdlog/spdlog.h>

#include <cassert>
#include <utility>

#include "core/acquire/acquire.hpp"
#include "core/acquire/lock_delay.hpp"
#include "core/hold/owner_table.hpp"
#include "core/queue/participants.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {

/// Copied by every call that waits, so that the mutex object may be destroyed meanwhile.
class ExclusiveMutexImpl {
public:
    ExclusiveMutexImpl(std::shared_ptr<SessionCore> session, const std::string& path, const LockOptions& options)
        : core(std::move(session)),
          queue(make_queue(*core, path, options, {"lock-", "__lock__", true}, rule_exclusive(options.dialect),
                           "ExclusiveMutex")),
          holds(std::make_shared<OwnerTable>()) {}

    /// Null: timed out or stopped. Otherwise entered once more by the calling agent.
    std::shared_ptr<HoldRef> acquire(Deadline deadline, std::stop_token stop) {
        const auto agent = this_owner();
        std::shared_ptr<HoldRef> share;
        switch (holds->enter(agent, share)) {
            case OwnerTable::Entered::again: return share;
            case OwnerTable::Entered::lost:
                throw Error(Errc::lock_lost, "acquire", queue->user_path,
                            "this fiber or thread still holds it, but the hold was lost; give it back first");
            case OwnerTable::Entered::fresh: break;
        }
        share = delayed() ? acquire_blocking(core, make_delayed(core, queue, "acquire"), deadline, std::move(stop))
                          : acquire_blocking(core, queue, "acquire", deadline, std::move(stop));
        if (share) holds->add(agent, share);
        return share;
    }

    bool delayed() const { return queue->options.delay_after_loss.count() > 0; }

    static constexpr const char* kName = "ExclusiveMutex";
    const std::string& path() const noexcept { return queue->user_path; }

    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<const Queue> queue;
    const std::shared_ptr<OwnerTable> holds;
};

}  // namespace internal

using internal::AcquireAnswer;
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
// Whoever waits has a copy of the pointer; new copies come from same(), which is called under the same mutex.
bool ExclusiveMutex::unused() const noexcept { return impl_.use_count() == 1 && impl_->holds->empty(); }
ExclusiveMutex::ExclusiveMutex(ExclusiveMutex&&) noexcept = default;
ExclusiveMutex& ExclusiveMutex::operator=(ExclusiveMutex&&) noexcept = default;
ExclusiveMutex::~ExclusiveMutex() = default;

Grant ExclusiveMutex::acquire() { return acquire_before(Deadline::never()); }

Grant ExclusiveMutex::acquire_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return Grant(impl->acquire(deadline, std::move(stop)));
}

void ExclusiveMutex::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    const auto impl = internal::usable(impl_, "acquire_async");
    if (!done) {
        throw Error(Errc::bad_option, "acquire_async", impl->queue->user_path,
                    "the callback is empty; pass a callable");
    }
    impl->core->throw_if_closed("acquire_async", impl->queue->user_path);
    auto tell = [done = std::move(done)](AcquireAnswer answer) {
        AcquireResult result;
        if (answer.share) result.grant = Grant(std::move(answer.share));
        if (answer.error) result.error = std::make_exception_ptr(*answer.error);
        done(std::move(result));
    };
    constexpr const char* operation = "acquire_async";
    if (impl->delayed()) {
        return internal::acquire_later(impl->core, internal::make_delayed(impl->core, impl->queue, operation), deadline,
                                       std::move(stop), std::move(tell));
    }
    internal::acquire_later(impl->core, impl->queue, operation, deadline, std::move(stop), std::move(tell));
}

void ExclusiveMutex::lock() {
    [[maybe_unused]] const bool locked = lock_before(Deadline::never());
    assert(locked);  // without a hold a wait ends only by its deadline, a stop, or an exception
}

bool ExclusiveMutex::try_lock() { return lock_before(Deadline::passed()); }

bool ExclusiveMutex::lock_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    if (!impl->acquire(deadline, std::move(stop))) return false;
    impl->holds->lock(internal::this_owner());
    return true;
}

void ExclusiveMutex::unlock() noexcept {
    const auto impl = internal::usable_or_null(impl_);
    if (!impl) return;
    if (impl->holds->leave_locked(internal::this_owner())) return;
    impl->core->log().error("unlock {}: not locked by this fiber or thread; ignored", impl->queue->user_path);
    assert(!"ExclusiveMutex::unlock by a fiber or thread that has not locked it");
}

bool ExclusiveMutex::held_by_caller() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->holds->of(internal::this_owner()) : nullptr;
    return share && share->hold().held();
}

FencingToken ExclusiveMutex::token() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->holds->of(internal::this_owner()) : nullptr;
    return share ? share->hold().czxid() : 0;
}

std::stop_token ExclusiveMutex::lost() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->holds->of(internal::this_owner()) : nullptr;
    return share ? share->hold().lost() : std::stop_token();
}

std::vector<Participant> ExclusiveMutex::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return internal::read_queue(impl->core, "participants", impl->queue->user_path, impl->queue->spec.directory,
                                deadline, false)
        .participants;
}

Deadline ExclusiveMutex::deadline_in(std::chrono::nanoseconds from_now) const {
    return Deadline::after(internal::usable(impl_, "deadline_in")->core->runtime().steady_now(), from_now);
}

const std::string& ExclusiveMutex::path() const noexcept { return internal::path_of(impl_); }

}  // namespace zkrecipes
