#pragma once

#include <memory>
#include <string>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include "sim/sim_world.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// Callers who do what they should not, and are told so: give back what they have not locked, wait while they hold, go
/// on with what they have lost, name a path twice, ask where they have no permission, or listen too late.
class MisuseWorkload final : public Workload {
public:
    MisuseWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    enum Path { kMutex, kReadWrite };
    struct Locks {
        std::unique_ptr<ExclusiveMutex> mutex;
        std::unique_ptr<ReadWriteLock> read_write;
        std::unique_ptr<SemaphoreMutex> private_one;  // nobody else uses its path
    };
    /// Of a hold that is not used by Workload::hold().
    struct Ended {
        Judge& judge;
        Judge::Ticket ticket;
        ~Ended() { judge.ended(ticket); }
    };

    void one_round(Worker& worker) override;
    void drop_locks() noexcept override {
        locks_.clear();
        shared_.clear();
    }

    ExclusiveMutex& some_mutex(Worker& worker);
    Locks& locks(const Worker& worker) { return locks_[worker.number]; }
    static Ways ways(ExclusiveMutex& mutex);
    /// Nothing goes wrong but what callers do.
    bool quiet() const noexcept { return plan_.faults == 0; }

    void ask_who_holds(Worker& worker);
    void hold_and_misuse(Worker& worker);
    void unlock_the_grant(Worker& worker, ExclusiveMutex& mutex, const Grant& grant);
    void wait_beside_a_grant(Worker& worker);
    void wait_for_more(Worker& worker);
    void lock_and_unlock(Worker& worker);
    void unlock_anyway(Worker& worker);
    void enter_what_was_lost(Worker& worker);
    void share_what_was_lost(Worker& worker);
    void lose_connections_for(Worker& worker, SimTime duration);
    void lock_twice(Worker& worker);
    void name_a_path_twice(Worker& worker);
    void listen_late(Worker& worker);
    void make_closed_directory(const std::string& path, int permissions);
    void be_refused(Worker& worker);
    Grant ask_closed(Worker& worker, const std::string& path, Deadline deadline);

    std::vector<Locks> locks_;                             // by worker
    std::vector<std::unique_ptr<ExclusiveMutex>> shared_;  // by process
};

}  // namespace zkrecipes::sim
