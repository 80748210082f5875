#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/client_process.hpp"
#include "sim/plan.hpp"
#include "testing/ensemble.hpp"

namespace zkrecipes::sim {

/// The one sequence that a lease rule has to be right for: a client falls silent for less than its session lives, its
/// write is committed or answered at the edge of that silence, and then nobody carries its pings to the leader any
/// more. Chance alone brings these together in one of thousands of runs.
///
/// The silence begins anywhere, so that a write goes out at its end; or when the client has just sent a write or its
/// connect request, so that the answer is old when it is read. Then its server is frozen, is cut off from the others
/// (and goes on answering reads and pings), or the client reaches nobody. In that moment an operator may delete what it
/// holds, and where it reaches nobody it may learn only later that its requests have failed.
class LeaseAttack {
public:
    /// `paths`: whose nodes operators delete.
    LeaseAttack(SimEnsemble& ensemble, const Plan& plan, const std::vector<std::string>& paths);

    void begin(ClientProcess& process, Rng& rng);
    void stop() noexcept { armed_.clear(); }

private:
    enum class Begin { now, at_write, at_connect };
    enum class Gone { frozen, isolated, unreachable, deleted_and_isolated, deleted_and_unreachable };
    struct Attack {
        ClientProcess* process;
        Begin begin;
        Gone gone;
        SimTime silence, margin, absence, unaware;
    };
    bool outlived_by_followers() const;
    void make_sharp(Attack& attack, Rng& rng);
    void on_request(const Actor& client, Op op);
    void fall_silent(const Attack& attack);
    void take_server_away(const Attack& attack);
    void make_unreachable(const Attack& attack);
    void delete_nodes_of(const Attack& attack);

    SimEnsemble& ensemble_;
    World& world_;
    const SimTime timeout_;
    const std::vector<std::string>& paths_;
    std::map<int, Attack> armed_;  // by the actor's id: waiting for a request of that client
};

}  // namespace zkrecipes::sim
