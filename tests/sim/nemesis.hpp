#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/client_process.hpp"
#include "sim/doubt_attack.hpp"
#include "sim/impostor.hpp"
#include "sim/late_callbacks.hpp"
#include "sim/lease_attack.hpp"
#include "sim/plan.hpp"
#include "sim/sim_world.hpp"
#include "testing/ensemble.hpp"

namespace zkrecipes::sim {

/// Makes things go wrong, by the plan, until it is told to stop; then everything is whole again.
class Nemesis {
public:
    Nemesis(SimWorld& world, SimEnsemble& ensemble, const Plan& plan,
            std::vector<std::unique_ptr<ClientProcess>>& processes, std::vector<std::string> paths, Judge& judge,
            RunResult& result);
    void start();
    void stop();

private:
    using Act = void (Nemesis::*)(Rng&);
    void every(Fault fault, SimTime mean, Act act);
    void schedule(Fault fault, SimTime mean, Act act, std::shared_ptr<Rng> rng);
    ClientProcess& victim(Rng& rng);
    ClientProcess* holder_of(const std::string& path);
    int any_server(Rng& rng) { return static_cast<int>(rng.below(static_cast<std::uint64_t>(ensemble_.size()))); }
    int lead_or_any(Rng& rng);
    SimTime span(Rng& rng);  // from short to far beyond the session timeout

    void reset(Rng& rng);
    void silence(Rng& rng, bool to_server, bool from_server, bool all);
    void silent_server(Rng& rng) { silence(rng, true, true, false); }
    void silent_all(Rng& rng) { silence(rng, true, true, true); }
    void one_way(Rng& rng);
    void pause(Rng& rng);
    void freeze(Rng& rng);
    void kill(Rng& rng);
    void cut(Rng& rng);
    void isolate(Rng& rng);
    void take_quorum_away(Rng& rng);
    void expire(Rng& rng);
    void delete_node(Rng& rng);
    void delete_all(Rng& rng);
    void slow_disk(Rng& rng);
    void death(Rng& rng);
    void early_close(Rng& rng);
    void others_hands(Rng& rng);
    void put_in_doubt(Rng& rng);
    void attack_lease(Rng& rng);
    void delay_callbacks(Rng& rng);
    void put_far_number(Rng& rng);
    void take_a_place(Rng& rng) { impostor_.begin(victim(rng), rng); }

    SimEnsemble& ensemble_;
    SimWorld& world_;
    const Plan& plan_;
    std::vector<std::unique_ptr<ClientProcess>>& processes_;
    const std::vector<std::string> paths_;
    RunResult& result_;
    DoubtAttack doubt_attack_;
    LeaseAttack lease_attack_;
    LateCallbacks late_callbacks_;
    Impostor impostor_;
    bool stopped_ = false;
};

}  // namespace zkrecipes::sim
