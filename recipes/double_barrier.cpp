// DoubleBarrier: members that begin together and end together.
//
// Layout (that of Curator's DistributedDoubleBarrier):
//   <path>          container; made if it is missing, as are its parents
//   <path>/<uuid>   ephemeral, without data: one for each member inside; a new name each time
//   <path>/ready    persistent, without data: enough members are inside; made by the last member to enter, deleted by
//                   the last one to leave
//
// Enter:
//   1. Watch `ready`, whether it exists or not. Delete an earlier node of this member that may still be there, since it
//      would count as a further member, and wait for the answer. Create the own node; list.
//   2. If `ready` exists, and a member that was inside when it was made still is: we are inside. If there is none,
//      `ready` was left behind by members whose sessions have ended: delete it and go back to 1. (Curator does not
//      look.)
//   3. If there are enough members: create `ready`, in one transaction that checks that they still exist. We are
//      inside. If a member is gone: 1.
//   4. Otherwise wait, with a watch on the own node, too. When `ready` is made: inside. When the own node is gone: 1.
// Leave:
//   5. List. If we are the only member: delete the own node and `ready` in one transaction. We are outside. If one of
//      them is gone: delete the own node, 5.
//   6. If we are the first member by name: watch the last one by name; when it is gone: 5. (So one member stays until
//      all others have left.)
//   7. Otherwise delete the own node and watch the first member by name; when it is gone: list, until no member of
//      those found at 5 is left; delete `ready` if there is no member at all. We are outside.
#include <zkrecipes/barrier.hpp>

#include <utility>

#include "core/node/double_barrier.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {

/// Copied by every call that waits, so that the barrier object may be destroyed meanwhile.
class DoubleBarrierImpl {
public:
    using Where = BarrierMember::Where;
    DoubleBarrierImpl(std::shared_ptr<SessionCore> session, const std::string& path, int count, BarrierOptions options)
        : core(std::move(session)),
          place(make_barrier_place(*core, "DoubleBarrier", path, std::move(options))),
          members(count) {
        if (count < 1) {
            throw Error(Errc::bad_option, "DoubleBarrier", path,
                        std::to_string(count) + " members: there must be one at least");
        }
    }
    DoubleBarrierImpl(const DoubleBarrierImpl&) = delete;
    DoubleBarrierImpl& operator=(const DoubleBarrierImpl&) = delete;
    ~DoubleBarrierImpl() {
        core->run_locked_or_post([session = core, where = place, ours = member] {
            if (ours->where == Where::inside) abandon_barrier(*session, *where, ours);
        });
    }

    std::shared_ptr<ReadOp> entry(const char* operation) const {
        go_on_from(Where::outside, Where::entering, operation, "we are in already, or on the way");
        return make_barrier_entry(core, operation, place, member, static_cast<std::size_t>(members));
    }
    std::shared_ptr<ReadOp> exit(const char* operation) const {
        go_on_from(Where::inside, Where::leaving, operation, "we are not in");
        return make_barrier_exit(core, operation, place, member);
    }

    static constexpr const char* kName = "DoubleBarrier";
    const std::string& path() const noexcept { return place->user_path; }

    const std::shared_ptr<SessionCore> core;
    const std::shared_ptr<const BarrierPlace> place;
    const std::shared_ptr<BarrierMember> member = std::make_shared<BarrierMember>();
    const int members;

private:
    void go_on_from(Where from, Where to, const char* operation, const char* otherwise) const {
        bool misused = false;
        core->run_locked([&] {
            misused = member->where != from;
            if (!misused) member->where = to;
        });
        if (misused) throw Error(Errc::bad_option, operation, place->user_path, otherwise);
    }
};

namespace {

/// Keeps what it is about, so that it is in order when the object is destroyed meanwhile.
std::function<void(BarrierResult)> keeping(std::shared_ptr<DoubleBarrierImpl> impl,
                                           std::function<void(BarrierResult)> done) {
    return [impl = std::move(impl), done = std::move(done)](BarrierResult result) { done(std::move(result)); };
}

}  // namespace
}  // namespace internal

using internal::ReadOp;
using internal::SessionAccess;

DoubleBarrier::DoubleBarrier(Session& session, std::string path, int members, BarrierOptions options)
    : impl_(std::make_shared<internal::DoubleBarrierImpl>(SessionAccess::core(session), path, members,
                                                          std::move(options))) {}
DoubleBarrier::DoubleBarrier(DoubleBarrier&&) noexcept = default;
DoubleBarrier& DoubleBarrier::operator=(DoubleBarrier&&) noexcept = default;
DoubleBarrier::~DoubleBarrier() = default;

bool DoubleBarrier::enter(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "enter");
    return impl->entry("enter")->run(deadline, std::move(stop)) == ReadOp::Outcome::done;
}

bool DoubleBarrier::leave(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "leave");
    return impl->exit("leave")->run(deadline, std::move(stop)) == ReadOp::Outcome::done;
}

void DoubleBarrier::enter_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done) {
    const auto impl = internal::usable(impl_, "enter_async");
    constexpr const char* operation = "enter_async";
    check_barrier_callback(*impl->core, operation, *impl->place, done);
    run_barrier_later(impl->entry(operation), deadline, std::move(stop), internal::keeping(impl, std::move(done)));
}

void DoubleBarrier::leave_async(Deadline deadline, std::stop_token stop, std::function<void(BarrierResult)> done) {
    const auto impl = internal::usable(impl_, "leave_async");
    constexpr const char* operation = "leave_async";
    check_barrier_callback(*impl->core, operation, *impl->place, done);
    run_barrier_later(impl->exit(operation), deadline, std::move(stop), internal::keeping(impl, std::move(done)));
}

const std::string& DoubleBarrier::path() const noexcept { return internal::path_of(impl_); }
int DoubleBarrier::members() const noexcept { return impl_ ? impl_->members : 0; }

}  // namespace zkrecipes
