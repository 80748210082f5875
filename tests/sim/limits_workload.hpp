#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <zkrecipes/read_write_lock.hpp>

#include "sim/sim_world.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// ReadWriteLocks of which most processes hold for max_hold at most, and change their labels meanwhile. Who reaches
/// that end does not release: the session has to.
class LimitsWorkload final : public Workload {
public:
    LimitsWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    using Locks = std::vector<std::unique_ptr<ReadWriteLock>>;  // one per path

    void one_round(Worker& worker) override;
    void drop_locks() noexcept override { locks_.clear(); }
    void lost(Worker& worker, const Grant& grant) override;
    void relabel(Worker& worker, const Grant& grant);
    void committed(const Txn& txn);

    std::vector<Locks> locks_;  // by process
    std::map<std::string, std::string> data_;
};

}  // namespace zkrecipes::sim
