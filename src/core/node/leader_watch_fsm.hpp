#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "core/node/single_watch_fsm.hpp"

namespace zkrecipes::internal {

/// The leader, as an observer was told. Two are the same leadership when the node is.
struct SeenLeader {
    std::string node;  // name; "": nobody leads
    std::string data;
    NodeStat stat;
    bool readable = true;  // false: an access list forbids to read and to watch the node, so it is looked at again
};

class LeaderWatchPort : public SingleWatchPort {
public:
    virtual void list(Ticket ticket) = 0;  // on_children
    // Then perhaps on_fired. False: the budget of watches is used up, nothing was done.
    virtual bool watch_leader(Ticket ticket, const std::string& name) = 0;  // on_leader
    virtual bool watch_directory(Ticket ticket) = 0;                        // on_directory; also if it is missing
    virtual void tell(const SeenLeader& leader) = 0;
};

/// Follows which candidate leads, with a watch on the leader's node or, if nobody leads, on the directory. Pure.
class LeaderWatchFsm final : public SingleWatchFsm {
public:
    explicit LeaderWatchFsm(LeaderWatchPort& port) : SingleWatchFsm(port), port_(port) {}

    void on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names, const NodeStat& stat);
    void on_leader(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_directory(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_fired(Ticket ticket);

private:
    void read() override { port_.list(next_ticket()); }
    bool has_told() const override { return told_.has_value(); }
    void tell(SeenLeader leader);

    LeaderWatchPort& port_;
    std::string candidate_;       // first in the list
    std::int64_t listed_at_ = 0;  // last change of the children when nobody was there; 0: no directory either
    std::optional<SeenLeader> told_;
};

}  // namespace zkrecipes::internal
