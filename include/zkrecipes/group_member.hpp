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
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
class GroupImpl;
class GroupMemberImpl;
}  // namespace internal

/// Who is in a group, as the servers know it: id and payload.
using GroupMembers = std::map<std::string, std::string>;

/// A group, seen from outside: who is alive, without joining.
///
/// The group of Curator's GroupMember on the same path. Safe for concurrent use.
class ZKRECIPES_API Group {
public:
    using Observer = std::function<void(const GroupMembers&)>;

    /// Throws Error bad_path. Does not block and sends nothing.
    Group(Session& session, std::string path);
    Group(Group&&) noexcept;
    Group& operator=(Group&&) noexcept;
    ~Group();

    /// Reads who is there: one list, and one read for each member. Blocks; throws Error (unreachable when the deadline
    /// passes without an answer). A payload that may not be read is empty.
    GroupMembers members(Deadline deadline = Deadline::never());

    /// Calls `observer` on the session's notifier thread with who is there, and then with each change of it or of a
    /// payload, also across sessions, until the subscription ends or the session is closed. A slow observer is told the
    /// latest, none is told an older membership after a newer one. While no server answers nothing is told: see
    /// Session::watch_state. Costs one watch on the group and one on each member; a member that comes or goes costs one
    /// list, and a new member or payload one read. Does not block. Throws Error: closed; bad_option for an empty
    /// observer.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept;

private:
    std::shared_ptr<internal::GroupImpl> impl_;
};

struct GroupMemberOptions {
    std::optional<std::vector<Acl>> acl{};  ///< empty: the session's
    bool create_parents = true;             ///< false: a missing group is Errc::no_parent
};

/// One member of a group: there as long as this object and its session are, and again in the next session when one is
/// lost. A member of that id of another session, as of this process before it was restarted, is waited out.
class ZKRECIPES_API GroupMember {
public:
    /// Begins to join. Does not block. Throws Error bad_path, bad_option (an empty id or one with a slash, an empty
    /// access list), too_large, closed.
    GroupMember(Session& session, std::string path, std::string id, std::string payload = {},
                GroupMemberOptions options = {});
    GroupMember(GroupMember&&) noexcept;
    GroupMember& operator=(GroupMember&&) noexcept;
    ~GroupMember();  ///< leave()

    /// Blocks the fiber or thread until the servers have confirmed membership and payload. False: the deadline passed
    /// or a stop was requested. Throws as PersistentNode::wait_present.
    bool wait_joined(Deadline deadline = Deadline::never(), std::stop_token stop = {});

    /// Does not block; see PersistentNode::set_data. Throws Error too_large; closed.
    void set_payload(std::string payload);
    std::string payload() const;  ///< what was set last

    PersistentNodeState state() const noexcept;
    /// As PersistentNode::watch_state.
    [[nodiscard]] Subscription watch_state(PersistentNode::Listener listener);

    GroupMembers members(Deadline deadline = Deadline::never());   ///< as Group::members
    [[nodiscard]] Subscription observe(Group::Observer observer);  ///< as Group::observe

    /// The member goes, also where the answer to a create is still to come. Does not wait.
    void leave() noexcept;
    /// leave(), and block until the servers have confirmed it. False: the deadline passed; it goes behind.
    bool leave_and_wait(Deadline deadline);

    const std::string& path() const noexcept;  ///< of the group
    const std::string& id() const noexcept;

private:
    std::shared_ptr<internal::GroupMemberImpl> impl_;
};

}  // namespace zkrecipes
