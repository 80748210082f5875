// Group, GroupMember: the living members of a group and their payloads.
//
// Layout (that of Curator's GroupMember):
//   <path>        container; made if it is missing, as are its parents
//   <path>/<id>   ephemeral, one for each member; data: its payload
//
// Steps:
//   Join, set the payload, leave: the member is a PersistentNode (persistent_node.cpp, 1 to 4).
//   Observe (src/core/node/group_watch_fsm.cpp runs it):
//   1. List <path> with a watch. If it is missing, watch for its creation.
//   2. Read each new child with a watch. When all have been read, tell the observer.
//   3. When the watch on <path> fires: 1. When that on a child fires: read it again, or drop it if it was deleted.
//   A new session: sync, 1.
#include <zkrecipes/group_member.hpp>

#include <utility>

#include "base/paths.hpp"
#include "core/node/group_watch.hpp"
#include "core/node/persistent_node.hpp"
#include "core/operation/to_result.hpp"
#include "session/usable.hpp"

namespace zkrecipes {
namespace internal {

class GroupImpl {
public:
    GroupImpl(std::shared_ptr<SessionCore> session, std::string group, const char* operation)
        : core(std::move(session)), user_path(std::move(group)), directory(core->server_path(user_path, operation)) {}

    Subscription observe(Group::Observer observer) const {
        constexpr const char* operation = "observe";
        check_callable(observer, operation, user_path);
        return watch_group(core, operation, user_path, directory, std::move(observer));
    }
    GroupMembers members(Deadline deadline) const {
        return read_group(core, "members", user_path, directory).get(deadline);
    }
    void members_async(Deadline deadline, std::stop_token stop, std::function<void(Result<GroupMembers>)> done) const {
        constexpr const char* operation = "members_async";
        run_later(core, operation, user_path, read_group(core, operation, user_path, directory), deadline,
                  std::move(stop), std::move(done));
    }

    static constexpr const char* kName = "Group";
    const std::string& path() const noexcept { return user_path; }

    const std::shared_ptr<SessionCore> core;
    const std::string user_path;
    const std::string directory;
};

/// Copied by every call that waits, so that the member object may be destroyed meanwhile.
class GroupMemberImpl {
public:
    GroupMemberImpl(std::shared_ptr<SessionCore> session, std::string path, std::string own_id, std::string payload,
                    GroupMemberOptions options)
        : group(std::move(session), std::move(path), kName),
          core(group.core),
          id(std::move(own_id)),
          node(std::make_shared<PersistentNodeOp>(
              core, kName, join_path(this->path(), id), node_path(),
              PersistentNodeOptions{std::move(payload), std::move(options.acl), options.create_parents})) {
        node->start();
    }

    static constexpr const char* kName = "GroupMember";
    const std::string& path() const noexcept { return group.path(); }

    const GroupImpl group;
    const std::shared_ptr<SessionCore> core;
    const std::string id;
    const std::shared_ptr<PersistentNodeOp> node;

private:
    std::string node_path() const {
        if (id.empty() || id.find('/') != std::string::npos) {
            throw Error(Errc::bad_option, kName, path(),
                        "the id \"" + id + "\" cannot be the name of a node; choose one without a slash");
        }
        return core->server_path(join_path(path(), id), kName);
    }
};

}  // namespace internal

using internal::SessionAccess;

Group::Group(Session& session, std::string path)
    : impl_(std::make_shared<internal::GroupImpl>(SessionAccess::core(session), std::move(path), "Group")) {}
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;
Group::~Group() = default;

GroupMembers Group::members(Deadline deadline) {
    const auto impl = internal::usable(impl_, "members");
    return impl->members(deadline);
}

void Group::members_async(Deadline deadline, std::stop_token stop, std::function<void(Result<GroupMembers>)> done) {
    const auto impl = internal::usable(impl_, "members_async");
    impl->members_async(deadline, std::move(stop), std::move(done));
}

Subscription Group::observe(Observer observer) {
    const auto impl = internal::usable(impl_, "observe");
    return impl->observe(std::move(observer));
}

const std::string& Group::path() const noexcept { return internal::path_of(impl_); }

GroupMember::GroupMember(Session& session, std::string path, std::string id, std::string payload,
                         GroupMemberOptions options)
    : impl_(std::make_shared<internal::GroupMemberImpl>(SessionAccess::core(session), std::move(path), std::move(id),
                                                        std::move(payload), std::move(options))) {}
GroupMember::GroupMember(GroupMember&&) noexcept = default;
GroupMember& GroupMember::operator=(GroupMember&& other) noexcept {
    if (this == &other) return *this;
    leave();
    impl_ = std::move(other.impl_);
    return *this;
}
GroupMember::~GroupMember() { leave(); }

bool GroupMember::wait_joined(Deadline deadline, std::stop_token stop) {
    const auto impl = internal::usable(impl_, "wait_joined");
    return impl->node->wait_present(*impl->core, "wait_joined", deadline, std::move(stop));
}

void GroupMember::wait_joined_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done) {
    const auto impl = internal::usable(impl_, "wait_joined_async");
    impl->node->wait_later(impl->core, "wait_joined_async", internal::PersistentNodeOp::Until::present, deadline,
                           std::move(stop), std::move(done));
}

void GroupMember::set_payload(std::string payload) {
    const auto impl = internal::usable(impl_, "set_payload");
    impl->node->set_data(*impl->core, "set_payload", std::move(payload));
}

std::string GroupMember::payload() const {
    const auto impl = internal::usable(impl_, "payload");
    return impl->node->data(*impl->core);
}

PersistentNodeState GroupMember::state() const noexcept {
    const auto impl = internal::usable_or_null(impl_);
    return impl ? impl->node->state() : PersistentNodeState::closed;
}

Subscription GroupMember::watch_state(PersistentNode::Listener listener) {
    const auto impl = internal::usable(impl_, "watch_state");
    internal::check_callable(listener, "watch_state", path());
    return impl->node->watch_state(impl->core, std::move(listener));
}

GroupMembers GroupMember::members(Deadline deadline) {
    const auto impl = internal::usable(impl_, "members");
    return impl->group.members(deadline);
}

void GroupMember::members_async(Deadline deadline, std::stop_token stop,
                                std::function<void(Result<GroupMembers>)> done) {
    const auto impl = internal::usable(impl_, "members_async");
    impl->group.members_async(deadline, std::move(stop), std::move(done));
}

Subscription GroupMember::observe(Group::Observer observer) {
    const auto impl = internal::usable(impl_, "observe");
    return impl->group.observe(std::move(observer));
}

void GroupMember::leave() noexcept {
    if (const auto impl = internal::usable_or_null(impl_)) impl->node->close(*impl->core);
}

bool GroupMember::leave_and_wait(Deadline deadline) {
    const auto impl = internal::usable(impl_, "leave_and_wait");
    return impl->node->close_and_wait(*impl->core, deadline);
}

void GroupMember::leave_and_wait_async(Deadline deadline, std::stop_token stop,
                                       std::function<void(Result<bool>)> done) {
    const auto impl = internal::usable(impl_, "leave_and_wait_async");
    impl->node->wait_later(impl->core, "leave_and_wait_async", internal::PersistentNodeOp::Until::gone, deadline,
                           std::move(stop), std::move(done));
}

const std::string& GroupMember::path() const noexcept { return internal::path_of(impl_); }
const std::string& GroupMember::id() const noexcept {
    static const auto& none = *new std::string;
    return impl_ ? impl_->id : none;
}

}  // namespace zkrecipes
