#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/fenced_register.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/transaction.hpp>

#include "sim/history.hpp"
#include "sim/ledger.hpp"
#include "sim/sim_world.hpp"
#include "sim/workload.hpp"

namespace zkrecipes::sim {

/// Values, counts and counters that many write, with and without marks, and values that are written under a grant.
class ValuesWorkload final : public Workload {
public:
    ValuesWorkload(SimWorld& world, const Plan& plan, RunResult& result);

private:
    enum class Kind { value, count, counter, guarded };
    struct Place {
        Kind kind = Kind::value;
        std::string path;
        std::string lock;     // guarded: whose grant is needed; of counters: where to go on after conflicts
        bool leader = false;  // guarded by a leadership
    };
    /// What one worker, or all of a process, have for one place.
    struct Objects {
        bool exactly_once = false;
        int attempts = 0;  // after so many conflicts a counter gives up; 0: never
        std::unique_ptr<SharedValue> value;
        std::unique_ptr<SharedCount> count;
        std::unique_ptr<AtomicCounter> counter;
        std::unique_ptr<ExclusiveMutex> mutex;
        std::unique_ptr<LeaderElection> election;
        std::size_t seen = 0;  // position in the history: get() has told nothing earlier
    };
    /// By which a write is guarded.
    struct LockNode {
        std::string path;
        FencingToken token;
    };
    /// What an observer was told last.
    struct Told {
        ClientProcess* process = nullptr;
        const Place* place = nullptr;
        std::string who;
        std::size_t position = 0;
        std::optional<VersionedValue> last;
    };
    /// A write as its caller sees it.
    struct Attempt {
        std::string what;
        bool exactly_once = false;
        bool limited = false;  // it may give up of its own will
        int attempts = 0;      // it gives up after so many conflicts; 0: never
    };

    static std::vector<Place> places_of(const Plan& plan);
    static std::vector<std::string> directories_of(const Plan& plan);
    void make_objects(ClientProcess& process, Rng& rng, std::vector<Objects>& all);
    void begin_to_record();
    void one_round(Worker& worker) override;
    void stop_watching() override;
    void drop_locks() noexcept override;
    Objects& objects(Worker& worker, std::size_t place);

    // ---- values and counts
    void use_value(Worker& worker, const Place& place, Objects& own);
    /// Empty: it took too long.
    std::optional<VersionedValue> get_value(Worker& worker, const Place& place, Objects& own, const Limits& limits);
    void put_text(Worker& worker, const Place& place, Objects& own);
    void put_count(Worker& worker, const Place& place, Objects& own);
    template <class Shared, class Data>
    bool put(Worker& worker, Shared& shared, std::optional<std::int32_t> version, const Data& data,
             const Limits& limits);
    void check_condition(const Worker& worker, const Place& place, std::uint64_t number, std::int32_t version,
                         std::size_t since, bool refused);
    void observe(ClientProcess& process, const Place& place, Objects& own);
    void told(Told& by, std::optional<VersionedValue> value);

    // ---- counters
    void use_counter(Worker& worker, const Place& place, Objects& own);
    std::int64_t get_counter(Worker& worker, const Place& place, AtomicCounter& counter);
    void add(Worker& worker, const Place& place, Objects& own);
    void compare_and_set(Worker& worker, const Place& place, Objects& own);
    void write_over(Worker& worker, const Place& place, Objects& own);
    void check_change(const Worker& worker, std::uint64_t number, const CounterChange& change);

    // ---- guarded writes
    int number_of(const Place& place) const { return static_cast<int>(&place - places_.data()); }
    void use_guarded(Worker& worker, const Place& place, Objects& own);
    std::optional<NodeContent> read_within(Worker& worker, const Place& place, const Grant& grant);
    void write_within(Worker& worker, const Place& place, const Grant& grant);
    void write_behind(Worker& worker, const Place& place, const Sequencer& former);
    void commit(Worker& worker, const Place& place, Transaction& transaction, const LockNode& guard,
                const std::optional<NodeContent>& content);
    void send_to_register(Worker& worker, const Place& place, const Fence& fence);

    // ---- every write
    /// Calls, tells the ledger, and judges the failure if there is one: an outcome is what the call says, not what is
    /// true. `call` answers whether it was written.
    std::uint64_t write(Worker& worker, const Place& place, Ledger::Write what, const Attempt& attempt,
                        const std::function<bool()>& call);
    /// Whether that failure is one to be expected.
    bool expected_failure(const Worker& worker, const Place& place, const Error& error, const Attempt& attempt,
                          std::int64_t session, std::size_t since);
    bool may_be_unknown(const Worker& worker, const Attempt& attempt, std::int64_t session);
    std::optional<std::size_t> find(const std::string& path, std::size_t from,
                                    const std::function<bool(const NodeState&)>& is) const;
    bool honest_leaders() const;
    bool all_told_the_latest() const;
    void check_values_at_the_end(ClientProcess& process);

    const std::vector<Place> places_;
    History history_;
    Ledger ledger_;
    std::vector<std::vector<Objects>> own_;     // by worker and place
    std::vector<std::vector<Objects>> shared_;  // by process and place
    std::list<Told> told_;
    std::vector<Subscription> observers_;
    FencedRegister register_;
    std::map<std::string, Fence> let_in_;
    struct Known {
        std::int64_t session = 0;
        std::size_t position = 0;
    };
    std::map<std::pair<int, std::string>, Known> known_;  // what a process has seen by get() of counters
    std::set<std::string> at_the_limit_;                  // counters that were set to where they overflow
};

}  // namespace zkrecipes::sim
