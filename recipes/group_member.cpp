// Group, GroupMember: who is alive, and what each has to say.
//
// Layout (that of Curator's GroupMember):
//   <path>        container, with its ancestors, made when missing
//   <path>/<id>   ephemeral, one per member; data: its payload
//
// Steps:
//   Join, set the payload, leave: the member is a PersistentNode (persistent_node.cpp, 1 to 4).
//   Observe (src/core/group_watch_fsm.cpp runs it):
//   1. List <path> with a watch; missing: watch for its being made.
//   2. Read each child that is new with a watch. When all have been read the membership is told.
//   3. The watch on <path> fires: 1. That on a child: read it again, or, where it was deleted, leave it out.
//   A new session: sync, 1.
#include <zkrecipes/group_member.hpp>

#include <utility>

#include "base/paths.hpp"
#include "core/group_watch.hpp"
#include "core/persistent_node.hpp"

namespace zkrecipes {
namespace internal {

class GroupImpl {
public:
    GroupImpl(std::shared_ptr<SessionCore> session, std::string group, const char* operation)
        : core(std::move(session)), path(std::move(group)), directory(core->server_path(path, operation)) {}

    StateSubscription observe(Group::Observer observer) const {
        constexpr const char* operation = "observe";
        if (!observer) throw Error(Errc::bad_option, operation, path, "the observer is empty; pass a callable");
        return watch_group(core, operation, path, directory, std::move(observer));
    }
    GroupMembers members(Deadline deadline) const { return read_group(core, "members", path, directory, deadline); }

    const std::shared_ptr<SessionCore> core;
    const std::string path;  // as the user names it
    const std::string directory;
};

/// Copied by every call that waits, so that the member object may be destroyed meanwhile.
class GroupMemberImpl {
public:
    GroupMemberImpl(std::shared_ptr<SessionCore> session, std::string path, std::string own_id, std::string payload,
                    GroupMemberOptions options)
        : group(std::move(session), std::move(path), kOperation),
          id(std::move(own_id)),
          node(std::make_shared<PersistentNodeOp>(
              group.core, kOperation, join_path(group.path, id), node_path(),
              PersistentNodeOptions{std::move(payload), std::move(options.acl), options.create_parents})) {
        node->start();
    }

    const GroupImpl group;
    const std::string id;
    const std::shared_ptr<PersistentNodeOp> node;

private:
    static constexpr const char* kOperation = "GroupMember";
    std::string node_path() const {
        if (id.empty() || id.find('/') != std::string::npos) {
            throw Error(Errc::bad_option, kOperation, group.path,
                        "the id \"" + id + "\" cannot be the name of a node; choose one without a slash");
        }
        return group.core->server_path(join_path(group.path, id), kOperation);
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
    const auto impl = impl_;
    return impl->members(deadline);
}

StateSubscription Group::observe(Observer observer) {
    const auto impl = impl_;
    return impl->observe(std::move(observer));
}

const std::string& Group::path() const noexcept { return impl_->path; }

GroupMember::GroupMember(Session& session, std::string path, std::string id, std::string payload,
                         GroupMemberOptions options)
    : impl_(std::make_shared<internal::GroupMemberImpl>(SessionAccess::core(session), std::move(path), std::move(id),
                                                        std::move(payload), std::move(options))) {}
GroupMember::GroupMember(GroupMember&&) noexcept = default;
GroupMember& GroupMember::operator=(GroupMember&& other) noexcept {
    if (this == &other) return *this;
    if (impl_) leave();
    impl_ = std::move(other.impl_);
    return *this;
}
GroupMember::~GroupMember() {
    if (impl_) leave();
}

bool GroupMember::wait_joined(Deadline deadline, std::stop_token stop) {
    const auto impl = impl_;
    return impl->node->wait_present(*impl->group.core, "wait_joined", deadline, std::move(stop));
}

void GroupMember::set_payload(std::string payload) {
    const auto impl = impl_;
    impl->node->set_data(*impl->group.core, "set_payload", std::move(payload));
}

std::string GroupMember::payload() const {
    const auto impl = impl_;
    return impl->node->data(*impl->group.core);
}

PersistentNodeState GroupMember::state() const noexcept { return impl_->node->state(); }

StateSubscription GroupMember::watch_state(PersistentNode::Listener listener) {
    const auto impl = impl_;
    if (!listener) throw Error(Errc::bad_option, "watch_state", path(), "the listener is empty; pass a callable");
    return impl->node->watch_state(impl->group.core, std::move(listener));
}

GroupMembers GroupMember::members(Deadline deadline) {
    const auto impl = impl_;
    return impl->group.members(deadline);
}

StateSubscription GroupMember::observe(Group::Observer observer) {
    const auto impl = impl_;
    return impl->group.observe(std::move(observer));
}

void GroupMember::leave() noexcept {
    const auto impl = impl_;
    impl->node->close(*impl->group.core);
}

bool GroupMember::leave_and_wait(Deadline deadline) {
    const auto impl = impl_;
    return impl->node->close_and_wait(*impl->group.core, deadline);
}

const std::string& GroupMember::path() const noexcept { return impl_->group.path; }
const std::string& GroupMember::id() const noexcept { return impl_->id; }

}  // namespace zkrecipes
