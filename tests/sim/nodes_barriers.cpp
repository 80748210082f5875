// The barriers of the workload of nodes.

#include <algorithm>
#include <utility>

#include "sim/nodes_workload.hpp"

namespace zkrecipes::sim {

/// Whether a server that answers reads may know much less than others do.
bool NodesWorkload::servers_lag() const {
    return plan_.has(Fault::freeze_server) || plan_.has(Fault::kill_server) || plan_.has(Fault::cut_servers) ||
           plan_.has(Fault::isolate_server) || plan_.has(Fault::slow_disk) || plan_.has(Fault::lease_attack) ||
           plan_.has(Fault::doubt_attack) || plan_.has(Fault::no_quorum);
}

std::size_t NodesWorkload::position_at(const std::string& path, SimTime at) const {
    const History::States& states = history_.of(path);
    const auto later = std::upper_bound(states.begin(), states.end(), at,
                                        [](SimTime time, const NodeState& state) { return time < state.at; });
    return later == states.begin() ? 0 : static_cast<std::size_t>(later - states.begin()) - 1;
}

// ---- barriers -----------------------------------------------------------------------------------------------------

void NodesWorkload::use_barrier(Worker& worker, const Place& place, Barrier& barrier) {
    switch (worker.rng.below(6)) {
        case 0:
        case 1: return set_or_remove(worker, place, barrier, true);
        case 2: return set_or_remove(worker, place, barrier, false);
        default: return wait_at(worker, place, barrier);
    }
}

void NodesWorkload::set_or_remove(Worker& worker, const Place& place, Barrier& barrier, bool closes) {
    const Limits limits = some_limits(worker);
    const std::int64_t session = worker.process.session().info().session_id;
    const std::size_t since = history_.latest(place.path);
    try {
        const Call call(judge_, worker, closes ? "set" : "remove");
        closes ? barrier.set(limits.deadline) : barrier.remove(limits.deadline);
    } catch (const Error& error) {
        const bool gave_up = error.errc() == Errc::unreachable || error.errc() == Errc::outcome_unknown;
        if (!gave_up || !limits.any()) throw;
        return;
    }
    const History::States& states = history_.of(place.path);
    std::size_t position = since;
    while (position < states.size() && states[position].exists != closes) ++position;
    if (position == states.size()) {
        judge_.violation("barrier",
                         worker.name + (closes ? ": closed it, but it was open" : ": opened it, but it stood"));
        return;
    }
    if (worker.process.session().info().session_id != session) return;
    Known& known = known_[{worker.process.number(), place.path}];
    known = {session, known.session == session ? std::max(known.position, position) : position};
}

void NodesWorkload::wait_at(Worker& worker, const Place& place, Barrier& barrier) {
    const Limits limits = some_limits(worker);
    const std::int64_t session = worker.process.session().info().session_id;
    const Known known = known_[{worker.process.number(), place.path}];
    const SimTime since = world_.now();
    const auto disturbed = worker.process.disturbances;
    bool passed = false;
    if (worker.rng.one_in(3)) {
        passed = later<BarrierResult>(worker, "wait_async", [&](std::function<void(BarrierResult)> done) {
                     barrier.wait_async(limits.deadline, limits.stop, std::move(done));
                 }).value;
    } else {
        const Call call(judge_, worker, "wait");
        passed = barrier.wait(limits.deadline, limits.stop);
        check_punctual(worker, limits, since, disturbed, !passed);
    }
    if (!passed) {
        if (!limits.any()) judge_.violation("deadline", worker.name + ": gave up without a limit");
        return;
    }
    const bool same = worker.process.session().info().session_id == session && known.session == session;
    check_passed(worker, place, since, same ? known.position : 0);
}

/// It was open at some time between the call and its return, as far as the server in use could know, and in any case
/// not before what this session knew of it.
void NodesWorkload::check_passed(const Worker& worker, const Place& place, SimTime since, std::size_t known) {
    const History::States& states = history_.of(place.path);
    std::size_t from = known;
    // The answer may be that to a question which another wait of this session had on its way, and an answer may be held
    // up for as long as a connection lives without one.
    const SimTime past = plan_.faults == 0 ? kSecond : plan_.timeout_ms * kMilli;
    if (!servers_lag()) from = std::max(from, position_at(place.path, since - past));
    const auto open = std::find_if(states.begin() + static_cast<std::ptrdiff_t>(from), states.end(),
                                   [](const NodeState& each) { return !each.exists; });
    if (open == states.end()) judge_.violation("barrier", worker.name + ": passes though it stood all the time");
    if (plan_.faults != 0) return;
    // Opened after the question, which may stand behind a write of the same session: what was open before that may have
    // been closed again when the server looked.
    constexpr SimTime kQuestion = kSecond / 10;
    const auto first = std::find_if(states.begin(), states.end(),
                                    [&](const NodeState& each) { return !each.exists && each.at > since + kQuestion; });
    if (first != states.end() && world_.now() - first->at > kSecond) {
        judge_.violation("barrier", worker.name + ": passes long after it was opened");
    }
}

/// Now and then, and for ever in the end, so that nobody waits in vain; only who has missed an opening still does.
void NodesWorkload::let_everybody_through(ClientProcess& process, const Place& place) {
    Worker porter{process, world_.fork("porter of " + process.name()), "porter of " + process.name(), 0};
    Barrier barrier(process.session(), place.path);
    while (workers_are_busy() && usable(process)) {
        world_.sleep(&process.actor(), porter.rng.between(kSecond, 12 * kSecond));
        try {
            set_or_remove(porter, place, barrier, false);
        } catch (const Error& error) {
            if (usable(process)) judge_.violation("error", porter.name + ": " + error.what());
        }
    }
}

// ---- double barriers ----------------------------------------------------------------------------------------------

void NodesWorkload::use_together(Worker& worker, const Place& place, Objects& own) {
    Rng& rng = worker.rng;
    Limits limits;
    limits.limit = rng.between(0, 2 * plan_.timeout_ms * kMilli);
    limits.deadline = worker.process.deadline_in(limits.limit);
    if (!enter(worker, place, *own.together, limits)) return;
    world_.sleep(&worker.process.actor(), hold_time(rng));
    if (rng.one_in(6)) {
        own.together = std::make_unique<DoubleBarrier>(worker.process.session(), place.path, place.members);
        return;
    }
    leave(worker, place, *own.together, rng.one_in(2) ? Limits() : some_limits(worker));
}

bool NodesWorkload::enter(Worker& worker, const Place& place, DoubleBarrier& barrier, const Limits& limits) {
    const SimTime since = world_.now();
    const auto disturbed = worker.process.disturbances;
    bool entered = false;
    if (worker.rng.one_in(4)) {
        entered = later<BarrierResult>(worker, "enter_async", [&](std::function<void(BarrierResult)> done) {
                      barrier.enter_async(limits.deadline, limits.stop, std::move(done));
                  }).value;
    } else {
        const Call call(judge_, worker, "enter");
        entered = barrier.enter(limits.deadline, limits.stop);
        check_punctual(worker, limits, since, disturbed, !entered);
    }
    if (entered) check_entered(worker, place, since);
    return entered;
}

/// So many have been inside, at a time since which it was never empty before we came.
void NodesWorkload::check_entered(const Worker& worker, const Place& place, SimTime since) {
    const auto& rooms = rooms_[place.path];
    int most = 0;
    for (auto room = rooms.rbegin(); room != rooms.rend(); ++room) {
        most = std::max(most, room->inside);
        if (room->at <= since && room->inside == 0) break;
    }
    if (most < place.members) {
        judge_.violation("together", worker.name + ": enters though only " + std::to_string(most) + " of " +
                                         std::to_string(place.members) + " were there");
    }
}

bool NodesWorkload::was_thrown_out(const Error& error) {
    return error.errc() == Errc::session_lost || error.errc() == Errc::lock_lost;
}

bool NodesWorkload::leave(Worker& worker, const Place& place, DoubleBarrier& barrier, const Limits& limits) {
    const SimTime since = world_.now();
    const auto disturbed = worker.process.disturbances;
    try {
        bool alone = false;
        if (worker.rng.one_in(4)) {
            alone = later<BarrierResult>(worker, "leave_async", [&](std::function<void(BarrierResult)> done) {
                        barrier.leave_async(limits.deadline, limits.stop, std::move(done));
                    }).value;
        } else {
            const Call call(judge_, worker, "leave");
            alone = barrier.leave(limits.deadline, limits.stop);
            check_punctual(worker, limits, since, disturbed, !alone);
        }
        if (!alone && !limits.any()) judge_.violation("deadline", worker.name + ": gave up without a limit");
        if (alone) check_left(worker, place, since);
        return alone;
    } catch (const Error& error) {
        if (!was_thrown_out(error) || plan_.faults == 0) throw;
        return false;
    }
}

/// Whoever was inside when we began to leave, as far as the server in use could know, is not inside any more.
void NodesWorkload::check_left(const Worker& worker, const Place& place, SimTime since) {
    if (servers_lag()) return;
    for (const std::string& path : history_.paths_below(place.path)) {
        const History::States& states = history_.of(path);
        const NodeState& then = states[position_at(path, since - kSecond)];
        if (name_of(path) == "ready" || !then.exists || !states.back().exists || then.czxid != states.back().czxid)
            continue;
        judge_.violation("together", worker.name + ": has left, but not all others have: " + path);
    }
}

/// Everything is whole: they come, they go, and nothing is left.
void NodesWorkload::a_last_round(const Place& place) {
    int members = 0;
    for (const auto& worker : workers_) {
        if (!usable(worker->process) || members == place.members) continue;
        ++members;
    }
    if (members < place.members) return;
    // Who gave up while it was cut off is counted until it is back and has taken its node away.
    const auto nobody_inside = [&] {
        return std::ranges::none_of(history_.paths_below(place.path), [&](const std::string& path) {
            return name_of(path) != "ready" && history_.of(path).back().exists;
        });
    };
    world_.run(world_.now() + plan_.patience, nobody_inside);
    if (!nobody_inside()) return judge_.violation("left-behind", "somebody is counted for ever in " + place.path);
    members = 0;
    for (const auto& worker : workers_) {
        if (!usable(worker->process) || members++ >= place.members) continue;
        spawn(worker->process, "the last round", [this, &worker = *worker, &place] {
            DoubleBarrier barrier(worker.process.session(), place.path, place.members);
            try {
                const bool all = enter(worker, place, barrier, {}) && leave(worker, place, barrier, {});
                if (!all) judge_.violation("together", worker.name + ": the last round was none");
            } catch (const Error& error) {
                judge_.violation("error", worker.name + ": " + error.what());
            }
        });
    }
    if (!all_done(plan_.patience)) judge_.violation("served", "in the last round, somebody waits:" + open_calls());
    world_.run(world_.now() + 3 * plan_.timeout_ms * kMilli, [&] { return history_.count_below(place.path) == 0; });
    if (history_.count_below(place.path) != 0) judge_.violation("left-behind", "something is left in " + place.path);
}

}  // namespace zkrecipes::sim
