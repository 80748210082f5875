// MultiLock: several locks as one, all or none.
//
// Layout: one node in the directory <path> of each member, as the recipe of that path writes it:
//   <path>/_c_<uuid>-lock-<sequence>        mutex
//   <path>/_c_<uuid>-__WRIT__<sequence>     read-write lock in exclusive mode
//   <path>/_c_<uuid>-__READ__<sequence>     read-write lock in shared mode
// All nodes of one acquire have the same <uuid> and the same czxid, which is the token.
//
// Steps (src/core/acquire/multi_acquire_fsm.cpp runs them):
//   1. One transaction creates all nodes, and a marker in the first directory, sets the data of the marker and deletes
//      it; send exists of every directory directly after it. The setData answers the zxid of the transaction. If
//      every directory has one child and was last changed by that zxid, the set is held. One round trip, however
//      many members. If a directory is missing, no node was created: make the directories that exists did not find,
//      one by one, and start again. If the marker is refused, leave it out, and add exists of the first own node to
//      step 2, for the czxid.
//   2. List each directory with more than one child. If no contender is before us in any queue, the set is held.
//   3. Otherwise watch the predecessor in each queue that has one, all at the same time.
//   4. When all of these are gone: check all own nodes by one committed write, with a list of each queue where the
//      predecessor had not been the head. The set is held, or go back to 3.
//   5. Release: one transaction deletes all nodes. If it is refused because a node is gone already, delete each
//      by itself.
//   A try lists all directories first, and ends if a contender is in the way: one round trip, nothing written.
//
// Why sets cannot deadlock, and the limits of that: docs/recipes/multi_lock.md.
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/session.hpp>

#include <algorithm>
#include <utility>

#include "core/acquire/acquire_async.hpp"
#include "core/acquire/multi_acquire.hpp"
#include "core/hold/reentrant_lock.hpp"
#include "core/queue/participants.hpp"

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
        case As::exclusive: return "__WRIT__";
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
            throw Error(Errc::bad_option, kMultiLock, member.path,
                        "it is asked for as none of mutex, exclusive, shared");
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
        if (member.as == As::exclusive) same->as = As::exclusive;
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
        : core(std::move(session)),
          members(merged(std::move(wanted))),
          queue(queue_of(*core, members, options)),
          holders(core, queue->name) {}

    /// Waits in all queues.
    auto wait(Deadline deadline, const std::stop_token& stop, bool while_holding = false) const {
        return [this, deadline, &stop, while_holding] {
            if (!while_holding && has_locked_anything(this_owner()) &&
                !deadline.is_passed(core->runtime().steady_now())) {
                throw Error(Errc::would_deadlock, "acquire", queue->name,
                            "this fiber or thread has locked another lock, and a holder of these may wait for that "
                            "one; acquire everything by one MultiLock, unlock the other lock first, or use "
                            "try_acquire_while_holding with a deadline");
            }
            holders.warn_of_own_hold("acquire", deadline);
            return acquire_blocking(core, maker("acquire"), deadline, stop);
        };
    }
    std::shared_ptr<HoldRef> current_hold() const { return holders.of_caller(); }

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
    const ReentrantLock holders;
};

namespace {

Steps<std::vector<LockView>> read_members(std::shared_ptr<MultiLockImpl> impl, const char* operation) {
    std::vector<LockView> views;
    for (std::size_t i = 0; i < impl->members.size(); ++i) {
        auto view = co_await read_queue(impl->core, operation, impl->members[i].path,
                                        impl->queue->spec.members[i].directory, false);
        views.push_back(std::move(view));
    }
    co_return views;
}

}  // namespace
}  // namespace internal

using internal::MultiLockImpl;
using internal::SessionAccess;

MultiLock::MultiLock(Session& session, std::vector<Member> members, LockOptions options)
    : impl_(std::make_shared<MultiLockImpl>(SessionAccess::core(session), std::move(members), options)) {}
MultiLock::MultiLock(MultiLock&&) noexcept = default;
MultiLock& MultiLock::operator=(MultiLock&&) noexcept = default;
MultiLock::~MultiLock() = default;

Grant MultiLock::try_acquire_for(Timeout timeout, std::stop_token stop) {
    return try_acquire_until(internal::deadline_in(impl_, timeout, "acquire"), std::move(stop));
}

Grant MultiLock::try_acquire_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "acquire");
    return internal::to_grant(impl->holders.acquire(impl->wait(deadline, stop)));
}

Grant MultiLock::try_acquire_while_holding(Deadline deadline, std::stop_token stop) {
    constexpr const char* operation = "try_acquire_while_holding";
    const auto impl = internal::usable(impl_, operation);
    if (deadline.is_never()) {
        throw Error(Errc::bad_option, operation, impl->path(),
                    "the deadline never passes, and nothing else may end this wait; give one that does");
    }
    return internal::to_grant(impl->holders.acquire(impl->wait(deadline, stop, true)));
}

void MultiLock::acquire_async(Deadline deadline, std::stop_token stop, std::function<void(AcquireResult)> done) {
    constexpr const char* operation = "acquire_async";
    const auto impl = internal::usable(impl_, operation);
    internal::acquire_async(impl->core, impl->maker(operation), operation, impl->path(), deadline, std::move(stop),
                            std::move(done));
}

void MultiLock::lock() { internal::must_hold(try_lock_until(Deadline::never())); }

bool MultiLock::try_lock_for(Timeout timeout, std::stop_token stop) {
    return try_lock_until(internal::deadline_in(impl_, timeout, "lock"), std::move(stop));
}

bool MultiLock::try_lock_until(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "lock");
    return impl->holders.lock("acquire", impl->wait(deadline, stop));
}

void MultiLock::unlock() noexcept {
    if (const auto impl = internal::usable_or_null(impl_)) impl->holders.unlock("unlock");
}

bool MultiLock::held_by_caller() const noexcept { return is_held(current_hold(impl_)); }
FencingToken MultiLock::token() const noexcept { return token_of(current_hold(impl_)); }
std::stop_token MultiLock::lost() const noexcept { return lost_of(current_hold(impl_)); }

std::vector<LockView> MultiLock::participants(Deadline deadline) {
    const auto impl = internal::usable(impl_, "participants");
    return internal::read_members(impl, "participants").get(deadline);
}

void MultiLock::participants_async(Deadline deadline, std::stop_token stop,
                                   std::function<void(Result<std::vector<LockView>>)> done) {
    constexpr const char* operation = "participants_async";
    const auto impl = internal::usable(impl_, operation);
    run_later(impl->core, operation, impl->path(), internal::read_members(impl, operation), deadline, std::move(stop),
              std::move(done));
}

const std::vector<MultiLock::Member>& MultiLock::members() const noexcept {
    static const auto& none = *new std::vector<Member>;
    return impl_ ? impl_->members : none;
}

}  // namespace zkrecipes
