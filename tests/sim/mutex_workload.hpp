#pragma once

#include <memory>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>

#include "sim/sim_world.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// ExclusiveMutexes on a few paths, some of them shared by the fibers of a process; re-entered now and then.
class MutexWorkload final : public Workload {
public:
    MutexWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    using Mutexes = std::vector<std::unique_ptr<ExclusiveMutex>>;  // one per path

    void one_round(Worker& worker) override;
    void check_wake_ups(const Txn& txn);
    void drop_locks() noexcept override;
    void look_on(Worker& worker, ExclusiveMutex& mutex);
    void lock_and_unlock(Worker& worker, ExclusiveMutex& mutex);
    void lock_again(Worker& worker, ExclusiveMutex& mutex);
    void ask_beside_a_grant(Worker& worker, ExclusiveMutex& mutex, const Grant& outer);

    std::vector<Mutexes> own_;     // by worker
    std::vector<Mutexes> shared_;  // by process
};

}  // namespace zkrecipes::sim
