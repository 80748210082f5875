#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include <zkrecipes/testenv/zk_server.hpp>

namespace zkrecipes::testenv {

/// Options of a ZkEnsemble.
struct EnsembleOptions {
    /// At least 1. An even number survives no more failures than the odd number below it.
    int servers = 3;
    /// The options of every member. The default tick is 100 ms. ZooKeeper's sample configuration has tick 2000 ms, init
    /// limit 10, sync limit 5: see stock().
    ServerOptions server;
    /// The members connect to each other through gates, which isolate() and partition() can cut.
    bool gated_links = false;

    /// Tick, init and sync limits as in ZooKeeper's sample configuration, sessions from two ticks to twenty.
    static EnsembleOptions stock(int servers = 3);
};

/// A quorum of real servers. Members are counted from 0; member i has the id i + 1.
/// The constructor returns when all members serve. Not thread-safe.
class ZkEnsemble {
public:
    /// Starts the members, and returns when all of them serve. Throws Error.
    explicit ZkEnsemble(int servers = 3);
    explicit ZkEnsemble(EnsembleOptions options);
    ZkEnsemble(ZkEnsemble&&) noexcept;
    ZkEnsemble& operator=(ZkEnsemble&&) noexcept;
    ~ZkEnsemble();

    [[nodiscard]] int size() const;  ///< how many members
    /// One member, from 0.
    [[nodiscard]] ZkServer& member(int i);
    [[nodiscard]] const ZkServer& member(int i) const;
    [[nodiscard]] std::string connect_string() const;       ///< all members
    [[nodiscard]] std::string connect_string(int i) const;  ///< one member

    /// The leader that a quorum follows now; nothing while there is none. A deposed leader that has not noticed yet
    /// does not count when a newer one answers.
    [[nodiscard]] std::optional<int> leader() const;
    /// A running member that is neither isolated nor the leader.
    [[nodiscard]] int follower() const;
    /// Waits for a leader and until all members that run, are not frozen and not cut off serve; returns the leader.
    /// Throws Error.
    int wait_quorum(std::chrono::milliseconds within = std::chrono::milliseconds(120'000));

    /// As ZkServer::stop and ZkServer::kill.
    void stop(int i);
    void kill(int i);
    /// Kills the member if it runs, starts it with the same data and address, and waits until it serves (if there is a
    /// quorum).
    void restart(int i);
    void freeze(int i);
    void thaw(int i);

    /// Cuts a member off from all others; needs gated_links. It still answers its clients until it notices (after
    /// syncLimit ticks). No connection is reset: packets between the members are lost.
    void isolate(int i);
    /// Cuts all links between the members of the two groups.
    void partition(const std::set<int>& group, const std::set<int>& others);
    /// Packets from `from` to `to` are lost.
    void cut_link(int from, int to);
    /// Opens all links of this member.
    void heal(int i);
    /// Opens all links.
    void heal();

    /// Ends a session immediately, at the leader or another member that serves.
    void expire_session(std::int64_t session_id, const std::string& password) const;
    /// The last lines of all logs, for a failed test.
    [[nodiscard]] std::string log_tails(int lines = 20) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace zkrecipes::testenv
