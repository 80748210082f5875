#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include "sim/contender.hpp"
#include "sim/sim_world.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// All recipes: each path is one kind of lock, and is used through every recipe that may use that kind. Which kinds
/// there are follows from the name of the workload: read_write, semaphore, multi, election, mixed, strangers, numbers,
/// kazoo.
class RecipesWorkload final : public Workload {
public:
    RecipesWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    enum class Kind { mutex, read_write, semaphore, election };
    struct Place {
        Kind kind = Kind::mutex;
        std::string path;
        int leases = 1;  // of a semaphore
    };
    /// What one worker has for one place.
    struct Locks {
        std::unique_ptr<ExclusiveMutex> mutex;
        std::unique_ptr<ReadWriteLock> read_write;
        std::unique_ptr<Semaphore> semaphore;
        std::unique_ptr<SemaphoreMutex> single;  // where there is one lease
        std::unique_ptr<LeaderElection> election;
    };

    static std::vector<Place> places_of(const Plan& plan);
    static std::vector<std::string> directories_of(const Plan& plan);
    void one_round(Worker& worker) override;
    void trouble_begins() override;
    void trouble_ends() override;
    bool refuses(const std::string& path) const override { return used_up_.contains(path); }
    void use_up_numbers();
    void invite_contenders();
    void check_names(const Txn& txn);
    void stop_watching() override;
    void drop_locks() noexcept override {
        observers_.clear();
        locks_.clear();
    }

    void use_mutex(Worker& worker, int place);
    void use_read_write(Worker& worker, int place);
    void use_semaphore(Worker& worker, int place);
    void use_election(Worker& worker, int place);
    void lead(Worker& worker, int place, const Grant& leadership, const std::stop_token& stop);
    void observe(ClientProcess& process, LeaderElection& election);
    void use_several(Worker& worker);
    void alone_then_shared(Worker& worker, int place);
    void look_at(Worker& worker, int place);
    void ask_for_more(Worker& worker, ReadWriteLock& lock, const Grant& share);
    /// In one of the ways, then holds.
    void take_and_hold(Worker& worker, const Ways& ways, const std::vector<Claim>& claims,
                       const std::function<void(const Grant&)>& meanwhile = {});
    Locks& locks(const Worker& worker, int place) { return locks_[worker.number][static_cast<std::size_t>(place)]; }

    /// What an observer of an election was told last.
    struct Told {
        ClientProcess* process;
        std::string path;
        FencingToken latest = 0;    // of all leaders that it was told of
        bool nobody_leads = false;  // and so it was told
    };
    void expect_nobody_is_seen_to_lead();

    const std::vector<Place> places_;
    std::vector<std::vector<Locks>> locks_;  // by worker and place
    std::vector<Subscription> observers_;
    std::vector<std::shared_ptr<Told>> told_;
    std::set<std::string> used_up_;  // paths of locks whose numbers are near their end
    std::vector<std::unique_ptr<Contender>> contenders_;
};

}  // namespace zkrecipes::sim
