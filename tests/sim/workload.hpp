#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/grant.hpp>

#include "base/wait_event.hpp"
#include "sim/client_process.hpp"
#include "sim/judge.hpp"
#include "sim/plan.hpp"
#include "sim/sim_world.hpp"

namespace zkrecipes::sim {

/// A crowd of fibers in several processes that take, hold and give back locks while things go wrong, and what must be
/// true of any such crowd: everybody is served after healing, every call returns, nothing is left behind. A subclass
/// says what is locked, and how.
class Workload {
public:
    virtual ~Workload();
    void run();

protected:
    struct Worker {
        ClientProcess& process;
        Rng rng;
        std::string name;
        std::size_t number = 0;
    };
    /// The ways that a lock's interface offers to acquire it.
    struct Ways {
        std::function<Grant()> wait;
        std::function<Grant(Deadline, std::stop_token)> before;
        std::function<void(Deadline, std::function<void(AcquireResult)>)> later;
    };

    /// `directories`: whose nodes operators delete.
    Workload(SimWorld& world, const Plan& plan, RunResult& result, std::vector<std::string> directories);

    static std::vector<std::string> lock_paths(const Plan& plan);

    virtual void one_round(Worker& worker) = 0;
    virtual void lost(Worker&, const Grant&) {}  // its owner was told, and has not given it back yet
    virtual void trouble_begins() {}
    virtual void trouble_ends() {}
    virtual void stop_watching() {}          // everybody was served, the sessions are still open
    virtual void drop_locks() noexcept = 0;  // before their sessions

    /// By wait(), by a try, or by before() with and without a stop.
    Grant take(Worker& worker, const Ways& ways);
    Grant take_later(Worker& worker, const Ways& ways);
    /// Holds for a while and gives back. `meanwhile` is called now and then, while it is held.
    void hold(Worker& worker, Grant grant, const std::vector<Claim>& claims,
              const std::function<void(const Grant&)>& meanwhile = {});
    SimTime hold_time(Rng& rng) const;

    /// How long a call may take at most, of its own will.
    struct Limits {
        SimTime limit = kForever;
        Deadline deadline{};
        std::stop_token stop{};
        bool any() const noexcept { return limit != kForever; }
    };
    Limits some_limits(Worker& worker);
    /// `empty_handed`: it returned without what was asked for.
    void check_punctual(const Worker& worker, const Limits& limits, SimTime start, std::uint64_t disturbed,
                        bool empty_handed);

    /// Why nothing was granted. `limit`: 0 for a try.
    void check_missed(const Worker& worker, const Grant& grant, SimTime limit, bool stopped);

    /// Of a call that is a few round trips.
    void check_prompt(const Worker& worker, SimTime took);

    /// Starts a call that answers by a callback, and waits for that.
    template <class Result, class Start>
    Result later(Worker& worker, const std::string& what, Start start) {
        struct State {
            Result result{};
            internal::WaitEvent event;
        };
        const auto state = std::make_shared<State>();
        const auto call = judge_.call_begins(worker.process, worker.name + " " + what);
        try {
            start([this, state, call](Result result) {
                judge_.call_ends(call);
                state->result = std::move(result);
                state->event.set();
            });
        } catch (...) {
            judge_.call_ends(call);  // refused at once: nobody will be called
            throw;
        }
        state->event.wait();
        if (state->result.error) std::rethrow_exception(state->result.error);
        return std::move(state->result);
    }

    /// A fiber beside the workers', which must end as they do.
    void spawn(ClientProcess& process, const std::string& name, std::function<void()> body);
    bool all_done(SimTime within) {
        return world_.run(world_.now() + within, [this] { return working_ == 0; });
    }
    std::string open_calls() const;
    bool workers_are_busy() const noexcept { return busy_workers_ != 0; }
    bool over() const { return world_.now() >= plan_.trouble; }
    /// The first touch that a lease can build on may have to be waited for.
    bool just_begun() const { return world_.now() <= 2 * plan_.timeout_ms * kMilli; }
    /// The directory's numbers may be used up.
    virtual bool refuses(const std::string&) const { return false; }
    static bool usable(const ClientProcess& process) { return !process.dead() && !process.closing; }

    /// One call that must return, once.
    class Call {
    public:
        Call(Judge& judge, Worker& worker, const std::string& what)
            : judge_(judge), call_(judge.call_begins(worker.process, worker.name + " " + what)) {}
        ~Call() { judge_.call_ends(call_); }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;

    private:
        Judge& judge_;
        const std::uint64_t call_;
    };

    SimWorld& world_;
    const Plan& plan_;
    RunResult& result_;
    Judge judge_;
    SimEnsemble ensemble_;
    std::vector<std::unique_ptr<ClientProcess>> processes_;
    std::vector<std::unique_ptr<Worker>> workers_;

private:
    void make_directories();
    void work(Worker& worker);
    bool calm() const;
    void check_fresh(const Worker& worker, const Grant& grant);
    void expect_lost_is_told(Worker& worker, const Grant& grant);
    void give_back(Worker& worker, Grant& grant);
    bool act(const std::vector<Judge::Ticket>& tickets);
    void check_owner(const Worker& worker, const Grant& grant);
    void check_nothing_stays();
    void check_leftovers();

    const std::vector<std::string> directories_;
    int busy_workers_ = 0;
    int working_ = 0;  // fibers that have not ended
};

}  // namespace zkrecipes::sim
