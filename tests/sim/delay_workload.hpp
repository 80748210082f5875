#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>

#include "sim/history.hpp"
#include "sim/sim_world.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// ExclusiveMutexes with a delay after a holder that vanished.
class DelayWorkload final : public Workload {
public:
    DelayWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    /// What has become of a lock node, by ZooKeeper's own history.
    struct End {
        SimTime at = 0;
        bool said_so = false;  // together with the word, in the data of the directory, that the lock was given back
    };
    using Mutexes = std::vector<std::unique_ptr<ExclusiveMutex>>;  // one per path

    void one_round(Worker& worker) override;
    void drop_locks() noexcept override { mutexes_.clear(); }
    void lock_and_unlock(Worker& worker, std::size_t path);
    /// The call of `since` has just given the lock to its caller.
    void granted(const Worker& worker, std::size_t path, FencingToken token, SimTime since);
    void check_distance(const Worker& worker, FencingToken token, const End& former, SimTime since);
    void committed(const Txn& txn);

    const std::vector<std::string> paths_;
    const std::chrono::milliseconds delay_;
    History history_;
    std::vector<Mutexes> mutexes_;                   // by worker
    std::vector<std::set<FencingToken>> holders_;    // by path: all who were granted it
    std::map<FencingToken, End> ends_;               // of lock nodes, by their czxid
    std::vector<std::int64_t> directories_deleted_;  // by path: zxid of the last time, 0: never
};

}  // namespace zkrecipes::sim
