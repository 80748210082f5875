#include "sim/workload.hpp"

#include <algorithm>
#include <utility>

#include "sim/nemesis.hpp"

namespace zkrecipes::sim {

namespace {

EnsembleOptions ensemble_options(const Plan& plan) {
    EnsembleOptions options;
    options.servers = plan.servers;
    options.tick_ms = plan.tick_ms;
    options.most_ticks = std::max(options.most_ticks, plan.timeout_ms / plan.tick_ms);
    options.keeper = plan.keeper;
    options.containers = plan.containers;
    options.exists_needs_read = plan.exists_needs_read;
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

Workload::Workload(SimWorld& world, const Plan& plan, RunResult& result, std::vector<std::string> directories)
    : world_(world),
      plan_(plan),
      result_(result),
      judge_(world, plan, result),
      ensemble_(world, ensemble_options(plan)),
      directories_(std::move(directories)) {
    for (int p = 0; p < plan.processes; ++p) {
        processes_.push_back(std::make_unique<ClientProcess>(ensemble_, plan, p));
        for (int f = 0; f < plan.fibers; ++f) {
            const std::string name = "p" + std::to_string(p) + "." + std::to_string(f);
            workers_.push_back(std::make_unique<Worker>(
                Worker{*processes_.back(), world.fork("fiber " + name), name, workers_.size()}));
        }
    }
}

Workload::~Workload() = default;

std::vector<std::string> Workload::lock_paths(const Plan& plan) {
    std::vector<std::string> paths;
    for (int i = 0; i < plan.paths; ++i) paths.push_back("/locks/" + std::string(1, static_cast<char>('a' + i)));
    return paths;
}

void Workload::run() {
    Nemesis nemesis(world_, ensemble_, plan_, processes_, directories_, judge_, result_);
    ensemble_.on_operator_txn = [this](const Txn& txn) { judge_.operator_acts(txn); };
    ensemble_.on_told_gone = [this](const std::string& node, std::int64_t zxid, SimTime asked) {
        judge_.told_gone(node, zxid, asked);
    };
    ensemble_.on_told_over = [this](SessionId session) { judge_.told_over(session); };
    judge_.last_change_of = [this](SessionId session) { return ensemble_.last_change_of(session); };
    if (!plan_.containers) make_directories();
    for (auto& worker : workers_) {
        ++busy_workers_;
        spawn(worker->process, "fiber " + worker->name, [this, &worker = *worker] {
            world_.sleep(&worker.process.actor(), worker.rng.between(0, 2 * kSecond));
            work(worker);
            --busy_workers_;
        });
    }
    nemesis.start();
    trouble_begins();
    world_.run(plan_.trouble);
    trouble_ends();
    nemesis.stop();
    if (!world_.run(plan_.trouble + plan_.patience, [this] { return working_ == 0; })) {
        judge_.violation("served", "after healing, not everybody was served:" + open_calls());
    } else {
        // Somebody may still stand still in the middle of the library, with its mutex: this code is no fiber and would
        // wait for it for ever.
        const auto runs = [](const auto& process) { return !process->actor().paused(); };
        world_.run(world_.now() + plan_.patience,
                   [&] { return std::all_of(processes_.begin(), processes_.end(), runs); });
        stop_watching();
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
        judge_.violation("returns", "after close, calls have not returned:" + open_calls());
        result_.stuck = true;
    }
    judge_.check_intervals();
    if (!result_.stuck) check_leftovers();
}

/// As somebody has to do where the servers refuse what the library makes.
void Workload::make_directories() {
    const auto all_there = [this] {
        return std::ranges::all_of(directories_, [this](const auto& each) { return ensemble_.committed().find(each); });
    };
    while (!all_there()) {
        for (const std::string& directory : directories_) {
            ensemble_.make(parent_of(directory));
            ensemble_.make(directory);
        }
        world_.run(world_.now() + 100 * kMilli);
    }
}

std::string Workload::open_calls() const {
    std::string text;
    for (const std::string& call : judge_.open_calls()) text += " " + call + ";";
    return text;
}

/// Nobody holds or waits any more, and the sessions are still open: what is on the servers now would stay for as long
/// as they live. Closing them would hide it.
void Workload::check_nothing_stays() {
    const SimTime limit = world_.now() + 3 * plan_.timeout_ms * kMilli + 60 * kSecond;
    if (world_.run(limit,
                   [this] { return ensemble_.committed().ephemeral_count() == 0 && ensemble_.watch_count() == 0; })) {
        // What is repeated without an end leaves nothing, and is never done.
        // Who was stopped until now has still to find that out.
        world_.run(world_.now() + 3 * plan_.timeout_ms * kMilli + 10 * kSecond);
        const std::uint64_t changes = ensemble_.network().changes_sent();
        world_.run(world_.now() + 20 * kSecond);
        if (ensemble_.network().changes_sent() != changes)
            judge_.violation("quiet", "everything was given back, and sessions go on to change nodes");
        for (const auto& process : processes_) {
            if (const std::string left = process->leftovers(); !left.empty())
                judge_.violation("stays", process->name() + " keeps in its session" + left);
        }
        return;
    }
    std::string left;
    for (const auto& [session, timeout_ms] : ensemble_.committed().sessions()) {
        for (const std::string& node : ensemble_.committed().ephemerals_of(session))
            left += " " + node + " of session " + std::to_string(session) + ";";
    }
    judge_.violation("stays", std::to_string(ensemble_.committed().ephemeral_count()) + " lock nodes and " +
                                  std::to_string(ensemble_.watch_count()) +
                                  " watches of open sessions are left:" + left);
}

void Workload::check_leftovers() {
    // Sessions of processes that died, or that could not say goodbye, end by themselves.
    world_.run(world_.now() + 3 * plan_.timeout_ms * kMilli + 60 * kSecond,
               [this] { return ensemble_.settled() && ensemble_.committed().sessions().empty(); });
    if (!ensemble_.committed().sessions().empty()) judge_.violation("left-behind", "sessions are left");
    if (ensemble_.committed().ephemeral_count() != 0) judge_.violation("left-behind", "lock nodes are left");
    if (ensemble_.watch_count() != 0) judge_.violation("left-behind", "watches are left on the servers");
    for (const std::string& call : judge_.open_calls()) judge_.violation("once", "never returned: " + call);
    workers_.clear();
    drop_locks();
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

void Workload::work(Worker& worker) {
    while (!over() && !worker.process.dead()) {
        try {
            one_round(worker);
        } catch (const Error& error) {
            if (world_.tracing()) world_.note_text(&worker.process.actor(), std::string("throws ") + error.what());
            const bool refused = error.errc() == Errc::sequence_exhausted && refuses(error.path());
            if (!refused && !expected(error, worker.process))
                judge_.violation("error", worker.name + ": " + error.what());
            if (error.errc() == Errc::closed) return;
        } catch (const std::exception& error) {
            judge_.violation("error", worker.name + ": " + error.what());
        }
        world_.sleep(&worker.process.actor(), worker.rng.between(0, worker.rng.one_in(4) ? 2 * kSecond : 100 * kMilli));
    }
}

SimTime Workload::hold_time(Rng& rng) const {
    if (plan_.long_holds) return rng.between(plan_.timeout_ms * kMilli / 4, 4 * plan_.timeout_ms * kMilli);
    switch (rng.below(4)) {
        case 0: return 0;
        case 1: return rng.between(0, 50 * kMilli);
        case 2: return rng.between(0, 1500 * kMilli);
        default: return rng.between(0, plan_.timeout_ms * kMilli * 3 / 2);
    }
}

Grant Workload::take(Worker& worker, const Ways& ways) {
    Rng& rng = worker.rng;
    Actor* const actor = &worker.process.actor();
    const auto kind = rng.below(5);
    if (kind == 0) {
        const Call call(judge_, worker, "acquire()");
        return ways.wait();
    }
    if (kind == 1) {
        const SimTime start = world_.now();
        const Call call(judge_, worker, "try");
        Grant grant = ways.before(Deadline::passed(), {});
        check_prompt(worker, world_.now() - start);
        check_missed(worker, grant, 0, false);
        return grant;
    }
    Limits limits;
    limits.limit = rng.one_in(2) ? rng.between(0, 500 * kMilli) : rng.between(0, 3 * plan_.timeout_ms * kMilli);
    auto stop = std::make_shared<std::stop_source>();
    if (kind == 2) world_.in(rng.between(0, limits.limit), actor, [stop] { stop->request_stop(); });
    const auto disturbed = worker.process.disturbances;
    const SimTime start = world_.now();
    Grant grant;
    {
        const Call call(judge_, worker, "try_acquire_until(" + std::to_string(limits.limit / kMilli) + " ms)");
        grant =
            ways.before(worker.process.deadline_in(limits.limit), kind == 2 ? stop->get_token() : std::stop_token());
    }
    check_punctual(worker, limits, start, disturbed, !grant);
    check_missed(worker, grant, limits.limit, stop->stop_requested());
    return grant;
}

void Workload::check_missed(const Worker& worker, const Grant& grant, SimTime limit, bool stopped) {
    const auto wrong = [&](const char* expected) {
        judge_.violation("missed", worker.name + " was told " + to_string(grant.missed()) + ", " + expected);
    };
    const Missed missed = grant.missed();
    if ((missed == Missed::none) != static_cast<bool>(grant)) return wrong("and it depends on whether it was granted");
    if (missed == Missed::stopped && !stopped) return wrong("and nobody has stopped it");
    // A few round trips take 1.5 s at most.
    const bool answered = plan_.faults == 0 && !just_begun() && (limit == 0 || limit > 1500 * kMilli);
    if (missed == Missed::unreachable && answered) return wrong("and every server answers");
}

/// Where servers do nothing worse than leave an answer lying (ZOOKEEPER-4537), they are reminded of it.
void Workload::check_prompt(const Worker& worker, SimTime took) {
    constexpr std::uint32_t kStalls = 1U << static_cast<unsigned>(Fault::stalls);
    if ((plan_.faults & ~kStalls) == 0 && !just_begun() && took > 1500 * kMilli)
        judge_.violation("prompt", worker.name + ": a few round trips took " + std::to_string(took / kMilli) + " ms");
}

/// None, a deadline, or a deadline and a stop.
Workload::Limits Workload::some_limits(Worker& worker) {
    Rng& rng = worker.rng;
    Limits limits;
    if (rng.one_in(3)) return limits;
    limits.limit = rng.one_in(2) ? rng.between(0, 500 * kMilli) : rng.between(0, 2 * plan_.timeout_ms * kMilli);
    limits.deadline = worker.process.deadline_in(limits.limit);
    if (!rng.one_in(4)) return limits;
    const auto stop = std::make_shared<std::stop_source>();
    limits.stop = stop->get_token();
    world_.in(rng.between(0, limits.limit), &worker.process.actor(), [stop] { stop->request_stop(); });
    return limits;
}

void Workload::check_punctual(const Worker& worker, const Limits& limits, SimTime start, std::uint64_t disturbed,
                              bool empty_handed) {
    // 1 % for the clock's rate; what was asked for may come by an answer that was on its way at the deadline.
    const bool punctual = !limits.any() || world_.now() - start <= limits.limit + limits.limit / 100 + 100 * kMilli;
    if (punctual || !empty_handed || plan_.has(Fault::pause_in_code) || disturbed != worker.process.disturbances)
        return;
    judge_.violation("deadline", worker.name + " waited " + std::to_string((world_.now() - start) / kMilli) +
                                     " ms for a deadline of " + std::to_string(limits.limit / kMilli));
}

void Workload::spawn(ClientProcess& process, const std::string& name, std::function<void()> body) {
    ++working_;
    world_.spawn(&process.actor(), name, [this, body = std::move(body)] {
        body();
        --working_;
    });
}

Grant Workload::take_later(Worker& worker, const Ways& ways) {
    const SimTime limit = worker.rng.between(0, 2 * plan_.timeout_ms * kMilli);
    auto result = later<AcquireResult>(worker, "acquire_async", [&](std::function<void(AcquireResult)> done) {
        ways.later(worker.process.deadline_in(limit), std::move(done));
    });
    check_missed(worker, result.value, limit, false);
    return std::move(result.value);
}

/// A node of another session goes with that, whoever relies on it.
void Workload::check_owner(const Worker& worker, const Grant& grant) {
    if (plan_.has(Fault::impostor)) return;  // a check says that there is a node, not whose
    for (const std::string& node : grant.nodes()) {
        const Node* const there = ensemble_.committed().find(node);
        if (there != nullptr && there->owner != grant.session_id())
            judge_.violation("whose", worker.name + ": is granted " + node + ", which belongs to another session");
    }
}

/// Acts by every claim, whatever the others answer.
bool Workload::act(const std::vector<Judge::Ticket>& tickets) {
    bool held = true;
    for (const auto& ticket : tickets) held = judge_.act(ticket) && held;
    return held;
}

void Workload::hold(Worker& worker, Grant grant, const std::vector<Claim>& claims,
                    const std::function<void(const Grant&)>& meanwhile) {
    Rng& rng = worker.rng;
    std::vector<Judge::Ticket> tickets;
    for (const Claim& claim : claims) tickets.push_back(judge_.granted(claim, worker.process, grant));
    check_owner(worker, grant);
    // Also when `meanwhile` throws: the judge refers to the grant.
    struct Ends {
        Judge& judge;
        std::vector<Judge::Ticket>& tickets;
        void now() {
            for (const auto& ticket : std::exchange(tickets, {})) {
                judge.ended(ticket);
            }
        }
        ~Ends() { now(); }
    } ends{judge_, tickets};
    const SimTime since = world_.now();
    const SimTime until = since + hold_time(rng);
    check_fresh(worker, grant);
    bool held = act(tickets);
    while (held && world_.now() < until) {
        world_.sleep(&worker.process.actor(), std::min(until - world_.now(), rng.between(kMilli, 400 * kMilli)));
        held = act(tickets);
        if (held && plan_.has(Fault::others_hands)) judge_.check_revocation(tickets.front());
        if (held && meanwhile && rng.one_in(6)) meanwhile(grant);
    }
    if (!held && !worker.process.dead()) {
        ++result_.losses;
        const SimTime max_hold = SimTime{plan_.max_hold_of(worker.process.number()).count()} * kMilli;
        // From the grant, which it may have heard of late.
        const bool by_its_time = max_hold != 0 && world_.now() - since >= max_hold * 98 / 100 - kSecond;
        // Not in the beginning: a first connect that takes long leaves a short first lease when the timeout is short,
        // too.
        if (calm() && !by_its_time && world_.now() > 2 * plan_.timeout_ms * kMilli)
            judge_.violation("calm", worker.name + ": lost a hold though nothing went wrong that it could not outlive");
        expect_lost_is_told(worker, grant);
        // Once lost, for ever lost: whoever goes on asking must not be told otherwise.
        if (act(tickets)) judge_.violation("sticky", worker.name + ": a lost hold came back");
        lost(worker, grant);
    }
    ends.now();
    give_back(worker, grant);
}

/// Nothing at all goes wrong, or connections break, and a session lives long enough to make another.
bool Workload::calm() const {
    constexpr std::uint32_t kReset = 1U << static_cast<unsigned>(Fault::reset);
    // Of an election half of the candidates step down, and Keeper resumes no session.
    const bool outlived = plan_.timeout_ms >= 6000 && plan_.workload != "election" && !plan_.keeper;
    return plan_.faults == 0 || (plan_.faults == kReset && outlived);
}

/// A hold begins with a third of the timeout before it at least, or its owner could do nothing with it. On the way to
/// who asked for it some of that goes by; nobody may have stood still meanwhile.
void Workload::check_fresh(const Worker& worker, const Grant& grant) {
    for (const Fault late : {Fault::pause_in_code, Fault::pause, Fault::lease_attack, Fault::slow_listeners}) {
        if (plan_.has(late)) return;
    }
    if (plan_.max_hold_of(worker.process.number()).count() != 0) return;
    if (plan_.workload == "delay") return;  // whose holds last for some time before they are granted
    const auto left = grant.remaining_lease();
    if (left.count() == 0 || left.count() * 1000 >= plan_.timeout_ms * 1000 / 3 - 50'000) return;
    judge_.violation("fresh", worker.name + ": a hold began with a lease of " + std::to_string(left.count()) + " ms");
}

void Workload::expect_lost_is_told(Worker& worker, const Grant& grant) {
    const std::stop_token lost = grant.lost();
    // The lane may be slow and the process may be stopped again; its own time counts.
    const bool slow = plan_.has(Fault::slow_listeners) || plan_.has(Fault::pause_in_code);
    const SimTime limit = (slow ? 30 : 2) * kSecond;
    for (SimTime waited = 0; waited < limit && !lost.stop_requested(); waited += 50 * kMilli) {
        world_.sleep(&worker.process.actor(), 50 * kMilli);
        if (!grant.held()) continue;
        return judge_.violation("sticky", worker.name + ": a lost hold came back");
    }
    if (!lost.stop_requested() && !worker.process.dead()) {
        judge_.violation("lost-told", worker.name + ": held() is false, but lost() was not requested within " +
                                          std::to_string(limit / kSecond) + " s");
    }
}

void Workload::give_back(Worker& worker, Grant& grant) {
    switch (worker.rng.below(3)) {
        case 0: grant.release(); break;
        case 1: {
            const Call call(judge_, worker, "release_and_wait");
            static_cast<void>(grant.release_and_wait(worker.process.deadline_in(worker.rng.between(0, 5 * kSecond))));
            break;
        }
        default: grant = Grant();
    }
    if (grant || grant.held()) judge_.violation("released", worker.name + ": released, but not empty");
}

}  // namespace zkrecipes::sim
