#include "sim/mutex_workload.hpp"

#include <algorithm>
#include <utility>

#include "base/wait_event.hpp"

namespace zkrecipes::sim {

namespace {

EnsembleOptions ensemble_options(const Plan& plan) {
    EnsembleOptions options;
    options.servers = plan.servers;
    options.tick_ms = plan.tick_ms;
    if (plan.has(Fault::reaper)) options.container_check_ms = 20;
    return options;
}

/// Failures that a caller has to expect when servers, networks and operators misbehave. Everything else is a bug.
bool expected(const Error& error, const ClientProcess& process) {
    switch (error.errc()) {
        case Errc::closed: return process.closing || process.dead();
        case Errc::connection_lost:
        case Errc::lock_lost: return true;
        default: return false;
    }
}

}  // namespace

MutexWorkload::MutexWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : world_(world),
      plan_(plan),
      result_(result),
      judge_(world, plan, result),
      ensemble_(world, ensemble_options(plan)) {
    for (int i = 0; i < plan.paths; ++i) paths_.push_back("/locks/" + std::string(1, static_cast<char>('a' + i)));
    for (int p = 0; p < plan.processes; ++p) {
        processes_.push_back(std::make_unique<ClientProcess>(ensemble_, plan, p));
        shared_.emplace_back();
        for (const std::string& path : paths_) {
            shared_.back().push_back(std::make_unique<ExclusiveMutex>(processes_.back()->session(), path));
        }
        for (int f = 0; f < plan.fibers; ++f) {
            const std::string name = "p" + std::to_string(p) + "." + std::to_string(f);
            workers_.push_back(
                std::make_unique<Worker>(Worker{*processes_.back(), world.fork("fiber " + name), {}, name}));
            for (const std::string& path : paths_) {
                workers_.back()->own.push_back(std::make_unique<ExclusiveMutex>(processes_.back()->session(), path));
            }
        }
    }
}

void MutexWorkload::run() {
    Nemesis nemesis(ensemble_, plan_, processes_, paths_, result_);
    ensemble_.on_operator_txn = [this](const Txn& txn) { judge_.operator_acts(txn); };
    for (auto& worker : workers_) {
        ++working_;
        world_.spawn(&worker->process.actor(), "fiber " + worker->name, [this, &worker = *worker] {
            world_.sleep(&worker.process.actor(), worker.rng.between(0, 2 * kSecond));
            work(worker);
            --working_;
        });
    }
    nemesis.start();
    world_.run(plan_.trouble);
    nemesis.stop();
    if (!world_.run(plan_.trouble + plan_.patience, [this] { return working_ == 0; })) {
        std::string who;
        for (const std::string& call : judge_.open_calls()) who += " " + call + ";";
        judge_.violation("served", "after healing, not everybody was served:" + who);
    } else {
        check_nothing_stays();
    }
    // Nothing may keep a session from closing, nor its waiting calls from returning then.
    for (auto& process : processes_) {
        process->closing = true;
        ++working_;
        world_.spawn(&process->actor(), "end", [this, &process = *process] {
            const SimTime start = world_.now();
            process.session().close();
            if (world_.now() - start > 30 * kSecond)
                judge_.violation("close", process.name() + ": close() took too long");
            --working_;
        });
    }
    if (!world_.run(world_.now() + plan_.patience, [this] { return working_ == 0; })) {
        std::string who;
        for (const std::string& call : judge_.open_calls()) who += " " + call + ";";
        judge_.violation("returns", "after close, calls have not returned:" + who);
        result_.stuck = true;
        return;
    }
    check_leftovers();
}

/// Nobody holds or waits any more, and the sessions are still open: what is on the servers now would stay for as long
/// as they live. Closing them would hide it.
void MutexWorkload::check_nothing_stays() {
    const SimTime limit = world_.now() + 3 * plan_.timeout_ms * kMilli + 60 * kSecond;
    if (world_.run(limit,
                   [this] { return ensemble_.committed().ephemeral_count() == 0 && ensemble_.watch_count() == 0; }))
        return;
    judge_.violation("stays", std::to_string(ensemble_.committed().ephemeral_count()) + " lock nodes and " +
                                  std::to_string(ensemble_.watch_count()) + " watches of open sessions are left");
}

void MutexWorkload::check_leftovers() {
    // Sessions of processes that died, or that could not say goodbye, end by themselves.
    world_.run(world_.now() + 3 * plan_.timeout_ms * kMilli + 60 * kSecond,
               [this] { return ensemble_.settled() && ensemble_.committed().sessions().empty(); });
    if (!ensemble_.committed().sessions().empty()) judge_.violation("left-behind", "sessions are left");
    if (ensemble_.committed().ephemeral_count() != 0) judge_.violation("left-behind", "lock nodes are left");
    if (ensemble_.watch_count() != 0) judge_.violation("left-behind", "watches are left on the servers");
    for (const std::string& call : judge_.open_calls()) judge_.violation("once", "never returned: " + call);
    workers_.clear();
    shared_.clear();
    for (auto& process : processes_) {
        ++working_;
        world_.spawn(&process->actor(), "drops its session", [this, &process = *process] {
            process.end_session();
            --working_;
        });
    }
    world_.run(world_.now() + 60 * kSecond);
    if (working_ != 0) {
        judge_.violation("close", "a session's destructor has not returned");
        result_.stuck = true;
        return;
    }
    for (auto& process : processes_) {
        if (const std::string leaks = process->leaks(); !leaks.empty()) {
            judge_.violation("left-behind", process->name() + " leaks" + leaks);
        }
    }
}

void MutexWorkload::work(Worker& worker) {
    while (!over() && !worker.process.dead()) {
        try {
            one_round(worker);
        } catch (const Error& error) {
            if (world_.tracing()) world_.note_text(&worker.process.actor(), std::string("throws ") + error.what());
            if (!expected(error, worker.process)) judge_.violation("error", worker.name + ": " + error.what());
            if (error.errc() == Errc::closed) return;
        } catch (const std::exception& error) {
            judge_.violation("error", worker.name + ": " + error.what());
        }
        world_.sleep(&worker.process.actor(), worker.rng.between(0, worker.rng.one_in(4) ? 2 * kSecond : 100 * kMilli));
    }
}

SimTime MutexWorkload::hold_time(Rng& rng) const {
    switch (rng.below(4)) {
        case 0: return 0;
        case 1: return rng.between(0, 50 * kMilli);
        case 2: return rng.between(0, 1500 * kMilli);
        default: return rng.between(0, plan_.timeout_ms * kMilli * 3 / 2);
    }
}

void MutexWorkload::one_round(Worker& worker) {
    Rng& rng = worker.rng;
    const int path = static_cast<int>(rng.below(paths_.size()));
    auto& mutex = rng.one_in(2)
                      ? *worker.own[static_cast<std::size_t>(path)]
                      : *shared_[static_cast<std::size_t>(worker.process.number())][static_cast<std::size_t>(path)];
    switch (rng.below(6)) {
        case 0: return take_async(worker, path, mutex);
        case 1: return lock_and_unlock(worker, path, mutex);
        default: return take_and_hold(worker, path, mutex);
    }
}

void MutexWorkload::take_and_hold(Worker& worker, int path, ExclusiveMutex& mutex) {
    Rng& rng = worker.rng;
    Actor* const actor = &worker.process.actor();
    const auto kind = rng.below(5);
    struct Ends {
        Judge& judge;
        std::uint64_t call;
        ~Ends() { judge.call_ends(call); }
    };
    Grant grant;
    if (kind == 0) {
        const Ends ends{judge_, judge_.call_begins(worker.process, worker.name + " acquire()")};
        grant = mutex.acquire();
    } else if (kind == 1) {
        const Ends ends{judge_, judge_.call_begins(worker.process, worker.name + " try")};
        grant = mutex.acquire_before(Deadline::passed());
    } else {
        const SimTime limit =
            rng.one_in(2) ? rng.between(0, 500 * kMilli) : rng.between(0, 3 * plan_.timeout_ms * kMilli);
        auto stop = std::make_shared<std::stop_source>();
        if (kind == 2) world_.in(rng.between(0, limit), actor, [stop] { stop->request_stop(); });
        const auto disturbed = worker.process.disturbances;
        const SimTime start = world_.now();
        {
            const Ends ends{judge_, judge_.call_begins(worker.process, worker.name + " acquire_before(" +
                                                                           std::to_string(limit / kMilli) + " ms)")};
            grant = mutex.acquire_before(worker.process.deadline_in(limit),
                                         kind == 2 ? stop->get_token() : std::stop_token());
        }
        // 1 % for the clock's rate; a grant may come from an answer that was on its way at the deadline.
        const bool punctual = world_.now() - start <= limit + limit / 100 + 100 * kMilli;
        if (!punctual && !plan_.has(Fault::pause_in_code) && disturbed == worker.process.disturbances && !grant) {
            judge_.violation("deadline", worker.name + " waited " + std::to_string((world_.now() - start) / kMilli) +
                                             " ms for a deadline of " + std::to_string(limit / kMilli));
        }
    }
    if (grant) hold(worker, path, mutex, std::move(grant), true);
}

void MutexWorkload::take_async(Worker& worker, int path, ExclusiveMutex& mutex) {
    struct State {
        AcquireResult result;
        internal::WaitEvent event;
        Grant grant;
    };
    const auto state = std::make_shared<State>();
    const SimTime limit = worker.rng.between(0, 2 * plan_.timeout_ms * kMilli);
    const auto call = judge_.call_begins(worker.process, worker.name + " acquire_async");
    try {
        mutex.acquire_async(worker.process.deadline_in(limit), {}, [this, state, call](AcquireResult result) {
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
    if (state->result.grant) hold(worker, path, mutex, std::move(state->result.grant), false);
}

void MutexWorkload::lock_and_unlock(Worker& worker, int path, ExclusiveMutex& mutex) {
    static_cast<void>(path);
    const auto call = judge_.call_begins(worker.process, worker.name + " try_lock_for");
    bool locked = false;
    try {
        locked = mutex.try_lock_for(Nanoseconds(worker.rng.between(0, 3 * kSecond)));
    } catch (...) {
        judge_.call_ends(call);
        throw;
    }
    judge_.call_ends(call);
    if (!locked) return;
    if (mutex.token() == 0) judge_.violation("owner", worker.name + ": locked, but the caller has no hold");
    world_.sleep(&worker.process.actor(), hold_time(worker.rng));
    mutex.unlock();
    if (mutex.token() != 0) judge_.violation("owner", worker.name + ": unlocked, but the caller still has a hold");
}

void MutexWorkload::hold(Worker& worker, int path, ExclusiveMutex& mutex, Grant grant, bool owned) {
    Rng& rng = worker.rng;
    const auto ticket = judge_.granted(path, worker.process, grant);
    const SimTime until = world_.now() + hold_time(rng);
    bool held = judge_.act(ticket);
    while (held && world_.now() < until) {
        world_.sleep(&worker.process.actor(), std::min(until - world_.now(), rng.between(kMilli, 400 * kMilli)));
        held = judge_.act(ticket);
        if (held && owned && rng.one_in(6)) {
            try {
                reenter(worker, mutex, grant);
            } catch (...) {
                judge_.ended(ticket);
                throw;
            }
        }
    }
    if (!held && !worker.process.dead()) {
        ++result_.losses;
        // Not in the beginning: a first connect that takes long leaves a short first lease when the timeout is short,
        // too.
        if (plan_.faults == 0 && world_.now() > 2 * plan_.timeout_ms * kMilli)
            judge_.violation("calm", worker.name + ": lost a hold though nothing went wrong");
        expect_lost_is_told(worker, grant);
        // Once lost, for ever lost: whoever goes on asking must not be told otherwise.
        if (judge_.act(ticket)) judge_.violation("sticky", worker.name + ": a lost hold came back");
    }
    judge_.ended(ticket);
    give_back(worker, grant);
}

void MutexWorkload::reenter(Worker& worker, ExclusiveMutex& mutex, const Grant& outer) {
    Grant inner;
    const auto call = judge_.call_begins(worker.process, worker.name + " re-entry");
    try {
        inner = mutex.acquire();
    } catch (const Error&) {
        judge_.call_ends(call);
        throw;
    }
    judge_.call_ends(call);
    if (inner.token() != outer.token() || inner.node() != outer.node()) {
        judge_.violation("re-entry", worker.name + ": another hold than the one it has");
    }
}

void MutexWorkload::expect_lost_is_told(Worker& worker, const Grant& grant) {
    const std::stop_token lost = grant.lost();
    // The lane may be slow and the process may be stopped again; its own time counts.
    for (int i = 0; i < 600 && !lost.stop_requested(); ++i) world_.sleep(&worker.process.actor(), 50 * kMilli);
    if (!lost.stop_requested() && !worker.process.dead()) {
        judge_.violation("lost-told", worker.name + ": held() is false, but lost() was not requested within 30 s");
    }
}

void MutexWorkload::give_back(Worker& worker, Grant& grant) {
    switch (worker.rng.below(3)) {
        case 0: grant.release(); break;
        case 1: {
            const auto call = judge_.call_begins(worker.process, worker.name + " release_and_wait");
            const bool gone = grant.release_and_wait(worker.process.deadline_in(worker.rng.between(0, 5 * kSecond)));
            judge_.call_ends(call);
            static_cast<void>(gone);
            break;
        }
        default: grant = Grant();
    }
    if (grant || grant.held()) judge_.violation("released", worker.name + ": released, but not empty");
}

const std::vector<std::string>& workload_names() {
    static const std::vector<std::string> names{"mutex"};
    return names;
}

RunResult run_plan(const Plan& plan, bool keep_trace) {
    RunResult result;
    auto* const world = new SimWorld(plan.seed, keep_trace);
    auto* const workload = new MutexWorkload(*world, plan, result);
    workload->run();
    result.hash = world->hash();
    result.events = world->events();
    result.simulated = world->now();
    result.trace.assign(world->trace().begin(), world->trace().end());
    if (!result.stuck) {  // otherwise fibers still refer to them
        delete workload;
        delete world;
    }
    return result;
}

}  // namespace zkrecipes::sim
