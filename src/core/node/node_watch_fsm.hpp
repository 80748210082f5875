#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "client/client.hpp"
#include "core/operation/types.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// What one node was seen to be.
struct SeenNode {
    bool exists = false;
    std::string data{};  // empty where it does not exist, as the stat is
    NodeStat stat{};

    /// The same node with the same data.
    bool same_as(const SeenNode& other) const noexcept {
        return exists == other.exists && stat.czxid == other.stat.czxid && stat.mzxid == other.stat.mzxid;
    }
};

/// What the watcher of a node asks of its surroundings. A request is answered by the function of NodeWatchFsm named
/// beside it, exactly once, never from inside the request, with the ticket that it was given.
class NodeWatchPort {
public:
    virtual ~NodeWatchPort() = default;
    virtual bool connected() const = 0;
    virtual std::uint64_t random() = 0;

    virtual void sync(Ticket ticket) = 0;  // on_synced
    // on_node, also where it does not exist, and then perhaps on_fired. False: the budget of watches is used up,
    // nothing was done.
    virtual bool watch(Ticket ticket) = 0;
    virtual void unwatch() = 0;  // harmless without a watch

    virtual void start_timer(std::chrono::milliseconds delay) = 0;  // on_timer
    virtual void stop_timer() = 0;
    virtual void refused(const char* why, int times) = 0;  // something for the log; it is tried again
    virtual void tell(const SeenNode& node) = 0;
};

/// Follows one node, whether it exists and what its data are, with one watch and one read for each change. Pure.
///
/// What is told only goes forward. Within a session ZooKeeper's reads do; a new session may be with a server that is
/// behind the one before (where localSessionsEnabled makes sessions without a transaction), so it begins with a sync.
/// Nothing is told twice, and nothing at all while no server answers: what was told last is then the last that was
/// known. Changes that follow each other fast may be told as one.
class NodeWatchFsm {
public:
    explicit NodeWatchFsm(NodeWatchPort& port) : port_(port) {}

    void start();

    // ---- the session ----
    void on_connected(bool same_session);
    void on_suspended();
    void on_session_lost();

    // ---- answers ----
    void on_synced(Ticket ticket, Rc rc);
    void on_node(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_fired(Ticket ticket);
    void on_timer();

    /// What was told last is how it is, as far as the connected server knows; false: it is being read, or cannot be.
    bool is_watching() const noexcept { return step_ == Step::watching; }
    const std::optional<SeenNode>& told() const noexcept { return told_; }  // empty: nothing yet

private:
    enum class Step : std::uint8_t { away, pausing, syncing, reading, watching };

    void look();
    void read();
    void pause(const char* why);  // null: nothing that anybody can do something about
    Ticket next_ticket() noexcept { return ++ticket_; }
    bool current(Ticket ticket, Step step) const noexcept { return ticket == ticket_ && step_ == step; }

    NodeWatchPort& port_;
    Step step_ = Step::away;
    Ticket ticket_ = 0;
    bool behind_ = false;  // the server may be behind what was told
    int failures_ = 0;
    ExponentialBackoff pace_{std::chrono::milliseconds(100), std::chrono::seconds(5)};
    std::optional<SeenNode> told_;
};

}  // namespace zkrecipes::internal
