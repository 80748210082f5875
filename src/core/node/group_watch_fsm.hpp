#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "core/operation/continuous_fsm.hpp"
#include "core/operation/types.hpp"

namespace zkrecipes::internal {

/// One child of a directory, as it was seen.
struct SeenMember {
    std::string data{};
    std::int64_t czxid = 0;
    std::int64_t mzxid = 0;
};
using SeenGroup = std::map<std::string, SeenMember>;  // by name

class GroupWatchPort : public virtual ContinuousPort {
public:
    virtual void sync(Ticket ticket) = 0;  // on_synced
    // Then perhaps on_directory_fired, on_member_fired. False: the budget of watches is used up, nothing was done.
    virtual bool watch_directory(Ticket ticket) = 0;                        // on_directory; also if it is missing
    virtual bool watch_member(Ticket ticket, const std::string& name) = 0;  // on_member
    virtual void unwatch_member(const std::string& name) = 0;               // harmless without a watch
    virtual void unwatch_all() = 0;
    virtual void refused(const char* why, int times) = 0;  // something for the log; it is tried again
    virtual void tell(const SeenGroup& group) = 0;
};

/// Follows the children of a directory and their data: one watch on the directory, one on each child. A child that
/// comes or goes costs one list, and a new child one read. Changed data costs one read. Pure.
///
/// A membership is told when nothing of it is still being read. What is told only goes forward: within a session
/// ZooKeeper's reads do, and a new session begins with a sync, as SingleWatchFsm explains. Nothing is told twice.
class GroupWatchFsm final : public ContinuousFsm {
public:
    static constexpr std::size_t kReadsAtOnce = 64;

    explicit GroupWatchFsm(GroupWatchPort& port) : port_(port) {}

    void start() override { begin(); }
    void on_connected(bool same_session) override;
    void on_session_lost() override { begin(); }  // not connected: nothing is sent
    void on_timer() override;

    // ---- answers ----
    void on_synced(Ticket ticket, Rc rc);
    void on_directory(Ticket ticket, Rc rc, const std::vector<std::string>& names);
    void on_directory_fired(Ticket ticket);
    void on_member(Ticket ticket, const std::string& name, Rc rc, const std::string& data, const NodeStat& stat);
    void on_member_fired(Ticket ticket, const std::string& name, WatchEventType type);

private:
    enum class Known : std::uint8_t { no, asking, yes };
    struct Member {
        Known known = Known::no;
        SeenMember seen{};
    };
    using Members = std::map<std::string, Member>;

    void begin();
    void go_on();
    void read_members();
    void want(Members::iterator member);
    void tell_if_complete();
    void trouble(Rc rc);
    void pause(const char* why);  // null: nothing that a user can do something about

    GroupWatchPort& port_;
    // One for each session: within a session every request is answered in the end, and the answer counts.
    Ticket ticket_ = 0;
    Known synced_ = Known::yes;  // no: the server may be behind what was told
    Known listed_ = Known::no;
    bool pausing_ = false;
    Members members_;
    std::deque<std::string> to_read_;
    std::size_t reading_ = 0;
    std::optional<SeenGroup> told_;
};

}  // namespace zkrecipes::internal
