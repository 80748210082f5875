#pragma once

#include <map>
#include <memory>

#include "sim/client_process.hpp"
#include "sim/plan.hpp"
#include "testing/ensemble.hpp"

namespace zkrecipes::sim {

/// The thread that a client runs its callbacks on gets no processor, and none again right after it has told of a broken
/// connection; its I/O and the library's timers go on. What was asked meanwhile is sent and answered on the next
/// connection of that session, and nobody is told of either: by its own clock the library gives the session up and
/// begins another one. Then, best of all while that one waits for the answer to a write, the old "ok" arrives (H5).
class LateCallbacks {
public:
    LateCallbacks(SimEnsemble& ensemble, const Plan& plan);

    void begin(ClientProcess& process, Rng& rng);
    void stop();

private:
    void on_request(const Actor& client, const Request& request);

    struct Late {
        ClientProcess* process;
        std::weak_ptr<SimClient> client;
        bool at_next_write;  // of the next session; otherwise it ends at some time
    };
    SimEnsemble& ensemble_;
    World& world_;
    const SimTime timeout_;
    std::map<int, Late> late_;  // by the actor's id
};

}  // namespace zkrecipes::sim
