// MultiLock: several locks as one, all or none.
//
// Layout: in each member's directory <path> one node, as the recipe writes it that the path is used by:
//   <path>/_c_<uuid>-lock-<sequence>          as a mutex
//   <path>/_c_<uuid>-__WRIT__<sequence>       as a read-write lock that is held alone
//   <path>/_c_<uuid>-__READ__<sequence>       as a share of it
// All nodes of one acquire have the same <uuid> and the same czxid, which is the token.
//
// Steps (src/core/acquire/multi_acquire_fsm.cpp runs them):
//   1. One transaction creates all nodes, and exists of every directory right behind it. A directory is missing: none
//   was
//      created; make those that exists did not find, one by one, and begin again.
//   2. exists of the first own node, for the czxid, and right behind it a list of each directory that has more than one
//      child. Nobody before us anywhere: held. Two round trips, however many members.
//   3. Otherwise watch, in each queue where somebody is before us, the nearest of those. All at the same time.
//   4. All of these are gone. Check all own nodes by one committed write, with a list of each queue where it had not
//   been
//      the head: held, or back to 3.
//   5. Release: one transaction deletes all nodes; where it is refused, because a node is gone already, each by itself.
//   A try lists all directories first and ends there if anybody is in the way: one round trip, nothing written.
//
// Why no set of these can deadlock, and where that ends: docs/recipes/multi_lock.md.
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/session.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/acquire/multi_acquire.hpp"
#include "core/hold/owner_table.hpp"
#include "core/queue/participants.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {
namespace {

using As = MultiLock::As;
using Member = MultiLock::Member;

/// The rule of the recipe that the path is used by.
std::shared_ptr<const QueueRule> rule_of(As as) { return as == As::shared ? rule_shared() : rule_exclusive(); }

const char* base_of(As as) {
    switch (as) {
        case As::mutex: return "lock-";
        case As::alone: return "__WRIT__";
        case As::shared: return "__READ__";
    }
    return "";
}

constexpr const char* kMultiLock = "MultiLock";

/// Each path once.
std::vector<Member> merged(std::vector<Member> members) {
    std::vector<Member> unique;
    for (Member& member : members) {
        if (base_of(member.as)[0] == '\0') {
            throw Error(Errc::bad_option, kMultiLock, member.path, "it is asked for as none of mutex, alone, shared");
        }
        const auto same =
            std::find_if(unique.begin(), unique.end(), [&](const Member& other) { return other.path == member.path; });
        if (same == unique.end()) {
            if (unique.size() == MultiLock::max_members) {
                throw Error(
                    Errc::bad_option, kMultiLock, member.path,
                    "the set has more than " + std::to_string(MultiLock::max_members) + " paths; use fewer at a time");
            }
            unique.push_back(std::move(member));
            continue;
        }
        if ((same->as == As::mutex) != (member.as == As::mutex)) {
            throw Error(
                Errc::bad_option, kMultiLock, member.path,
                "it is asked for both as a mutex and as a read-write lock, of which Curator peers see one only; use "
                "one of them for this path, everywhere");
        }
        if (member.as == As::alone) same->as = As::alone;
    }
    if (unique.empty()) throw Error(Errc::bad_option, kMultiLock, "", "the set is empty; name at least one path");
    return unique;
}

std::shared_ptr<const MultiQueue> queue_of(const SessionCore& core, const std::vector<Member>& members,
                                           const LockOptions& options) {
    std::vector<std::shared_ptr<const Queue>> queues;
    for (const Member& member : members) {
        queues.push_back(make_queue(core, member.path, options, base_of(member.as), rule_of(member.as), kMultiLock));
    }
    return make_multi_queue(core, std::move(queues), options, kMultiLock);
}

}  // namespace

/// Copied by every call that waits, so that the lock object may be destroyed meanwhile.
class MultiLockImpl {
public:
    MultiLockImpl(std::shared_ptr<SessionCore> session, std::vector<Member> wanted, const LockOptions& options)
        : core(std::move(session)), members(merged(std::move(wanted))), queue(queue_of(*core, members, options)) {}

    /// Null: timed out or stopped. Otherwise entered once more by the calling agent.
    std::shared_ptr<HoldRef> acquire(Deadline deadline, std::stop_token stop, bool while_holding = false) {
        const auto agent = this_owner();
        std::shared_ptr<HoldRef> share;
        switch (holds->enter(agent, share)) {
            case OwnerTable::Entered::again: return share;
            case OwnerTable::Entered::lost:
                throw Error(Errc::lock_lost, "acquire", queue->name,
                            "this fiber or thread still holds it, but the hold was lost; give it back first");
            case OwnerTable::Entered::fresh: break;
        }
        if (!while_holding && holds_anything(agent) && !deadline.is_passed(core->runtime().steady_now())) {
            throw Error(Errc::would_deadlock, "acquire", queue->name,
                        "this fiber or thread holds another lock, for which those may be waiting who are in the way "
                        "here; acquire everything by one MultiLock, give the other one back first, or use "
                        "acquire_while_holding with a deadline");
        }
        share = acquire_blocking(core, maker("acquire"), deadline, std::move(stop));
        if (share) holds->add(agent, share);
        return share;
    }

    MakeAcquisition maker(const char* operation) const {
        return [this, operation](Patience patience, Acquisition::Done done) {
            return std::make_shared<MultiAcquireOp>(core, queue, operation, patience, std::move(done));
        };
    }

    static constexpr const char* kName = "MultiLock";
    const std::string& path() const noexcept { return queue->name; }

    const std::shared_ptr<SessionCore> core;
    const std::vector<Member> members;
    const std::shared_ptr<const MultiQueue> queue;
    const std::shared_ptr<OwnerTable> holds = std::make_shared<OwnerTable>();
};

}  // namespace internal

using internal::AcquireAnswer;
using internal::MultiLockImpl;
using internal::SessionAccess;

MultiLock::MultiLock(Session& session, std::vector<Member> members, LockOptions options)
    : impl_(std::make_shared<MultiLockImpl>(SessionAccess::core(session), std::move(members), options)) {}
MultiLock::MultiLock(MultiLock&&) noexcept = default;
MultiLock& MultiLock::operator=(MultiLock&&) noexcept = default;
MultiLock::~MultiLock() = default;

Grant MultiLock::acquire() { return acquire_before(Deadline::never()); }

Grant MultiLock::acquire_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return Grant(impl->acquire(deadline, std::move(stop)));
}

Grant MultiLock::acquire_while_holding(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire_while_holding");
    if (deadline.is_never()) {
        throw Error(Errc::bad_option, "acquire_while_holding", impl->queue->name,
                    "the deadline never passes, and nothing else may end this wait; give one that does");
    }
    return Grant(impl->acquire(deadline, std::move(stop), true));
}

void MultiLock::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    const auto impl = internal::usable(impl_, "acquire_async");
    if (!done) {
        throw Error(Errc::bad_option, "acquire_async", impl->queue->name, "the callback is empty; pass a callable");
    }
    impl->core->throw_if_closed("acquire_async", impl->queue->name);
    internal::acquire_later(impl->core, impl->maker("acquire_async"), deadline, std::move(stop),
                            [done = std::move(done)](AcquireAnswer answer) {
                                AcquireResult result;
                                if (answer.share) result.grant = Grant(std::move(answer.share));
                                if (answer.error) result.error = std::make_exception_ptr(*answer.error);
                                done(std::move(result));
                            });
}

void MultiLock::lock() {
    [[maybe_unused]] const bool locked = lock_before(Deadline::never());
    assert(locked);  // without a hold a wait ends only by its deadline, a stop, or an exception
}

bool MultiLock::try_lock() { return lock_before(Deadline::passed()); }

bool MultiLock::lock_before(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    if (!impl->acquire(deadline, std::move(stop))) return false;
    impl->holds->lock(internal::this_owner());
    return true;
}

void MultiLock::unlock() noexcept {
    const auto impl = internal::usable_or_null(impl_);
    if (!impl) return;
    if (impl->holds->leave_locked(internal::this_owner())) return;
    impl->core->log().error("unlock {}: not locked by this fiber or thread; ignored", impl->queue->name);
    assert(!"MultiLock::unlock by a fiber or thread that has not locked it");
}

bool MultiLock::held_by_caller() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->holds->of(internal::this_owner()) : nullptr;
    return share && share->hold().held();
}

FencingToken MultiLock::token() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->holds->of(internal::this_owner()) : nullptr;
    return share ? share->hold().czxid() : 0;
}

std::stop_token MultiLock::lost() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    const auto share = impl ? impl->holds->of(internal::this_owner()) : nullptr;
    return share ? share->hold().lost() : std::stop_token();
}

std::vector<LockView> MultiLock::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    std::vector<LockView> views;
    for (std::size_t i = 0; i < impl->members.size(); ++i) {
        views.push_back(internal::read_queue(impl->core, "participants", impl->members[i].path,
                                             impl->queue->spec.members[i].directory, deadline, false));
    }
    return views;
}

Deadline MultiLock::deadline_in(std::chrono::nanoseconds from_now) const {
    return Deadline::after(internal::usable(impl_, "deadline_in")->core->runtime().steady_now(), from_now);
}

const std::vector<MultiLock::Member>& MultiLock::members() const noexcept {
    static const auto& none = *new std::vector<Member>;
    return impl_ ? impl_->members : none;
}

}  // namespace zkrecipes
