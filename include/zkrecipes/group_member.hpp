#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
class GroupImpl;
class GroupMemberImpl;
}  // namespace internal

/// The members of a group, as the connected server knows them: from the id of each member to its payload.
using GroupMembers = std::map<std::string, std::string>;

/// Shows the members of a group to a client that need not be a member. The group of Curator's GroupMember on that path.
/// Safe for concurrent use.
class ZKRECIPES_API Group {
public:
    /// Is called with all members and their payloads.
    using Observer = std::function<void(const GroupMembers&)>;

    /// Does not block and sends nothing. Throws Error bad_path.
    Group(Session& session, std::string path);
    Group(Group&&) noexcept;
    Group& operator=(Group&&) noexcept;
    ~Group();

    /// Reads the members: one list, and one read for each member. If an access list forbids reading a payload, it is
    /// empty. Blocks. Throws Error (unreachable: the deadline passed first).
    GroupMembers members(Deadline deadline = Deadline::never());
    /// The same without blocking: `done` is called exactly once, on the session's notifier thread. A stop before the
    /// answer is unreachable, too. If the call cannot be started, throws immediately: closed; bad_option for an empty
    /// callback. An exception thrown by the callback is logged.
    void members_async(Deadline deadline, std::stop_token stop, std::function<void(Result<GroupMembers>)> done);

    /// Calls `observer` on the session's notifier thread with the members, and then after each change of the members or
    /// their payloads. It continues in later sessions, until the subscription ends or the session is closed. A slow
    /// observer gets the latest members; no observer gets an earlier state after a later one. While no server answers,
    /// the observer is not called; see Session::watch_state. Costs one watch on the group and one on each member; one
    /// list for each member that comes or goes; one read for each new member or payload. Does not block. Throws Error:
    /// closed; bad_option for an empty observer.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept;  ///< as given to the constructor

private:
    std::shared_ptr<internal::GroupImpl> impl_;
};

/// Options of a GroupMember.
struct GroupMemberOptions {
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing group is Errc::no_parent
};

/// One member of a group, as long as this object exists. If the session is lost, it joins again with the next one.
/// Another session may have a member of this id, for example that of this process before a restart. Then this member
/// joins when that one is gone.
class ZKRECIPES_API GroupMember {
public:
    /// Starts to join. Does not block. Throws Error bad_path; bad_option for an empty id, one with a slash, or an empty
    /// access list; too_large; closed.
    GroupMember(Session& session, std::string path, std::string id, std::string payload = {},
                GroupMemberOptions options = {});
    GroupMember(GroupMember&&) noexcept;
    GroupMember& operator=(GroupMember&&) noexcept;
    ~GroupMember();  ///< leave()

    /// Blocks until the servers have confirmed membership and payload. Returns false if the deadline passes or a stop
    /// is requested before. Throws as PersistentNode::wait_present.
    bool wait_joined(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// As PersistentNode::wait_present_async.
    void wait_joined_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done);

    /// Does not block; see PersistentNode::set_data. Throws Error too_large; closed.
    void set_payload(std::string payload);
    std::string payload() const;  ///< the one that was set last

    PersistentNodeState state() const noexcept;  ///< of this member's node
    /// As PersistentNode::watch_state.
    [[nodiscard]] Subscription watch_state(PersistentNode::Listener listener);

    GroupMembers members(Deadline deadline = Deadline::never());  ///< as Group::members
    /// As Group::members_async.
    void members_async(Deadline deadline, std::stop_token stop, std::function<void(Result<GroupMembers>)> done);
    [[nodiscard]] Subscription observe(Group::Observer observer);  ///< as Group::observe

    /// Leaves the group, also if this member has not joined yet. Does not block.
    void leave() noexcept;
    /// Leaves the group and blocks, as PersistentNode::close_and_wait.
    bool leave_and_wait(Deadline deadline = Deadline::never());
    /// As PersistentNode::close_and_wait_async.
    void leave_and_wait_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done);

    const std::string& path() const noexcept;  ///< of the group
    const std::string& id() const noexcept;    ///< of this member

private:
    std::shared_ptr<internal::GroupMemberImpl> impl_;
};

}  // namespace zkrecipes
