#pragma once

#include <map>

#include "sim/client_process.hpp"
#include "testing/ensemble.hpp"

namespace zkrecipes::sim {

/// A write whose outcome nobody knows, and that happens late: the leader has proposed it and waits for disks; its
/// client has lost the connection, is back at another server, and looks for what it has made before that is anywhere to
/// be seen.
class DoubtAttack {
public:
    explicit DoubtAttack(SimEnsemble& ensemble);

    /// At this client's next request that makes or takes away nodes.
    void begin(ClientProcess& process, Rng& rng);
    void stop() noexcept { armed_.clear(); }

private:
    struct Attack {
        SimTime reset_after, disks_take, slow_for;
    };
    void on_request(Actor& client, const Request& request);

    SimEnsemble& ensemble_;
    std::map<int, Attack> armed_;  // by the actor's id
};

}  // namespace zkrecipes::sim
