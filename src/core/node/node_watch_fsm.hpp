#pragma once

#include <optional>
#include <string>

#include "client/client.hpp"
#include "core/node/single_watch_fsm.hpp"

namespace zkrecipes::internal {

/// The state of one node, as it was seen.
struct SeenNode {
    bool exists = false;
    std::string data{};  // empty if it does not exist, as the stat is
    NodeStat stat{};

    /// The same node with the same data.
    bool same_as(const SeenNode& other) const noexcept {
        return exists == other.exists && stat.czxid == other.stat.czxid && stat.mzxid == other.stat.mzxid;
    }
};

class NodeWatchPort : public SingleWatchPort {
public:
    // on_node, also if it does not exist, and then perhaps on_fired. False: the budget of watches is used up, nothing
    // was done.
    virtual bool watch(Ticket ticket) = 0;
    virtual void tell(const SeenNode& node) = 0;
};

/// Follows one node, whether it exists and what its data are: one read for each change. Pure.
class NodeWatchFsm final : public SingleWatchFsm {
public:
    explicit NodeWatchFsm(NodeWatchPort& port) : SingleWatchFsm(port), port_(port) {}

    void on_node(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_fired(Ticket ticket);

    const std::optional<SeenNode>& told() const noexcept { return told_; }  // empty: nothing yet

private:
    void read() override;
    bool has_told() const override { return told_.has_value(); }

    NodeWatchPort& port_;
    std::optional<SeenNode> told_;
};

}  // namespace zkrecipes::internal
