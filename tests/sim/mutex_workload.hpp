#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/client_process.hpp"
#include "sim/judge.hpp"
#include "sim/nemesis.hpp"
#include "sim/plan.hpp"

namespace zkrecipes::sim {

/// A crowd of fibers in several processes that take, hold, re-enter and give back ExclusiveMutexes on a few shared
/// paths, in every way that the interface offers.
class MutexWorkload {
public:
    MutexWorkload(SimWorld& world, const Plan& plan, RunResult& result);
    void run();

private:
    struct Worker {
        ClientProcess& process;
        Rng rng;
        std::vector<std::unique_ptr<ExclusiveMutex>> own;  // one per path
        std::string name;
    };
    void work(Worker& worker);
    void one_round(Worker& worker);
    void take_and_hold(Worker& worker, int path, ExclusiveMutex& mutex);
    void take_async(Worker& worker, int path, ExclusiveMutex& mutex);
    void lock_and_unlock(Worker& worker, int path, ExclusiveMutex& mutex);
    void hold(Worker& worker, int path, ExclusiveMutex& mutex, Grant grant, bool owned);
    void reenter(Worker& worker, ExclusiveMutex& mutex, const Grant& outer);
    void expect_lost_is_told(Worker& worker, const Grant& grant);
    void give_back(Worker& worker, Grant& grant);
    SimTime hold_time(Rng& rng) const;
    bool over() const { return world_.now() >= plan_.trouble; }
    void check_nothing_stays();
    void check_leftovers();

    SimWorld& world_;
    const Plan& plan_;
    RunResult& result_;
    Judge judge_;
    SimEnsemble ensemble_;
    std::vector<std::unique_ptr<ClientProcess>> processes_;
    std::vector<std::string> paths_;
    std::vector<std::vector<std::unique_ptr<ExclusiveMutex>>> shared_;  // by process and path
    std::vector<std::unique_ptr<Worker>> workers_;
    int working_ = 0;
};

}  // namespace zkrecipes::sim
