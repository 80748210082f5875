#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/semaphore.hpp>

#include "sim/sim_world.hpp"
#include "sim/terms_history.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// Semaphores whose number of leases is changed while they are in use: up and down, by any of those who use them and by
/// operators; objects that were made for another number; more leases asked for than there are; data that are no number.
class TermsWorkload final : public Workload {
public:
    TermsWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    static constexpr int kMostLeases = 6;

    /// One object, and what its owner knows of its agreement with the others.
    struct Object {
        std::unique_ptr<Semaphore> semaphore;
        std::int32_t made_for = 1;
        SimTime made_at = 0;
        std::int64_t agreed_in = 0;  // the directory in which it surely follows the number; 0: none
    };
    /// One acquire, as far as it is to be judged.
    struct Asked {
        int place = 0;
        std::int32_t wanted = 1;
        SimTime since = 0;
        std::optional<SimTime> limit;  // none: it waits for ever, or not at all
    };

    void one_round(Worker& worker) override;
    void drop_locks() noexcept override { objects_.clear(); }

    Object& object(const Worker& worker, int place) { return objects_[worker.number][static_cast<std::size_t>(place)]; }
    void make(Worker& worker, int place, Object& object, std::int32_t number);
    /// The number by which somebody who is started now is configured.
    std::int32_t number_now(int place) const;

    void use(Worker& worker, int place);
    void use_another_number(Worker& worker, int place);
    void acquire_and_hold(Worker& worker, int place, Object& object);
    Grant acquire(Worker& worker, Object& object, Asked& asked);
    void agrees(Object& object, int place, SimTime since);
    void check_refusal(const Worker& worker, const Asked& asked, const Object& object, Errc why);
    void check_grant(const Worker& worker, const Asked& asked, const Object& object, const Grant& grant);
    void check_empty_hands(const Worker& worker, const Asked& asked, const Object& object);
    bool quiet() const noexcept { return plan_.faults == 0; }
    void change(Worker& worker, int place);
    void ask(Worker& worker, int place);

    // ---- operators
    void committed(const Txn& txn, const DataTree& tree);
    void taken(int place, const std::vector<std::string>& leases, const Txn& txn, const DataTree& tree);
    void write_nonsense(int place);
    void mend(int place, std::int32_t number);
    void lower(int place);
    void make_anew(int place);
    void clear_change(int place);
    void delete_behind_a_taking(const std::string& lease, SessionId owner);

    const std::vector<std::string> paths_;
    std::vector<std::int32_t> empty_at_version_;        // by place; -1: the directory is not empty
    std::vector<TermsHistory> terms_;                   // by place
    std::vector<std::vector<Object>> objects_;          // by worker and place
    std::map<std::int64_t, std::string> beyond_limit_;  // by zxid: takings that must not become a hold
    Rng operator_;
};

}  // namespace zkrecipes::sim
