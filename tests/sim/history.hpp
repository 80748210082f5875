#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "testing/ensemble.hpp"

namespace zkrecipes::sim {

/// What a node was from one committed transaction on, until the next one that changed it.
struct NodeState {
    bool exists = false;
    std::string data;
    std::int32_t version = 0;
    SessionId owner = 0;     // 0: not ephemeral
    std::int64_t czxid = 0;  // of the node
    // ---- the transaction that made it so
    std::int64_t zxid = 0;
    SimTime at = 0;
    SessionId by = 0;  // who asked; of an operator: 0
    bool by_operator = false;
    bool session_end = false;  // the node went with its session
};

/// The nodes below some directories as ZooKeeper's own history has them, whatever any server or client has seen of it.
class History {
public:
    using States = std::vector<NodeState>;  // never empty: at first there is no node

    History(World& world, SimNetwork& network) : world_(world), network_(network) {}

    /// Before anything happens: nodes at or below it are recorded.
    void record(std::string directory) { directories_.push_back(std::move(directory)); }
    void committed(const Txn& txn);

    const States& of(const std::string& path) const;
    std::size_t latest(const std::string& path) const { return of(path).size() - 1; }
    /// All that were ever there.
    std::vector<std::string> paths_below(const std::string& directory) const;
    std::size_t count_below(const std::string& directory) const;

    std::int64_t last_zxid() const noexcept { return last_zxid_; }
    /// Of the process that opened it; -1: unknown.
    int actor_of(SessionId session) const;

private:
    void add(const std::string& path, NodeState state, const Txn& txn);

    World& world_;
    SimNetwork& network_;
    std::vector<std::string> directories_;
    std::map<std::string, States> nodes_;
    std::map<SessionId, int> actors_;
    std::int64_t last_zxid_ = 0;
};

}  // namespace zkrecipes::sim
