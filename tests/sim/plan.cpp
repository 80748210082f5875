#include "sim/plan.hpp"

#include <algorithm>
#include <string_view>

namespace zkrecipes::sim {

const char* to_string(Fault fault) noexcept {
    switch (fault) {
        case Fault::reset: return "reset";
        case Fault::silent_server: return "silent_server";
        case Fault::one_way: return "one_way";
        case Fault::silent_all: return "silent_all";
        case Fault::pause: return "pause";
        case Fault::pause_in_code: return "pause_in_code";
        case Fault::freeze_server: return "freeze_server";
        case Fault::kill_server: return "kill_server";
        case Fault::cut_servers: return "cut_servers";
        case Fault::isolate_server: return "isolate_server";
        case Fault::expire: return "expire";
        case Fault::delete_node: return "delete_node";
        case Fault::delete_all: return "delete_all";
        case Fault::reaper: return "reaper";
        case Fault::slow_disk: return "slow_disk";
        case Fault::lost_messages: return "lost_messages";
        case Fault::stalls: return "stalls";
        case Fault::slow_listeners: return "slow_listeners";
        case Fault::skewed_clocks: return "skewed_clocks";
        case Fault::process_dies: return "process_dies";
        case Fault::early_close: return "early_close";
        case Fault::others_hands: return "others_hands";
        case Fault::doubt_attack: return "doubt_attack";
        case Fault::lease_attack: return "lease_attack";
        case Fault::no_quorum: return "no_quorum";
        case Fault::late_callbacks: return "late_callbacks";
        case Fault::impostor: return "impostor";
        case Fault::end_of_numbers: return "end_of_numbers";
        case Fault::contenders: return "contenders";
        case Fault::count_: break;
    }
    return "?";
}

std::string Plan::describe() const {
    std::string text = "workload " + workload + " seed " + std::to_string(seed) + ": " + std::to_string(servers) +
                       " servers, tick " + std::to_string(tick_ms) + " ms, session timeout " +
                       std::to_string(timeout_ms) + " ms, " + std::to_string(processes) + " processes x " +
                       std::to_string(fibers) + " fibers, " + std::to_string(paths) + " paths, " +
                       (keeper              ? "Keeper, "
                        : exists_needs_read ? ""
                                            : "exists without READ, ") +
                       (containers ? "" : "no containers, ") + "faults:";
    for (unsigned i = 0; i < kFaults; ++i) {
        if (has(static_cast<Fault>(i))) text += std::string(" ") + to_string(static_cast<Fault>(i));
    }
    if (faults == 0) text += " none";
    if (locks.local_handovers != 0) text += ", local_handovers " + std::to_string(locks.local_handovers);
    if (locks.local_handovers != 0) text += " within " + std::to_string(locks.local_turn.count()) + " ms";
    if (locks.keep_for.count() != 0) text += ", keep_for " + std::to_string(locks.keep_for.count()) + " ms";
    if (locks.max_hold.count() != 0) text += ", max_hold " + std::to_string(locks.max_hold.count()) + " ms";
    return text;
}

LockOptions Plan::locks_of(int process) const {
    LockOptions options = locks;
    options.max_hold = max_hold_of(process);
    return options;
}

LockOptions Plan::limits_of(int process) const {
    LockOptions options;
    options.max_hold = max_hold_of(process);
    return options;
}

namespace {

/// Few clients that hold for long, somebody who waits for the end of each hold, and little else that goes wrong.
void aim_at_leases(Plan& plan, Rng& rng) {
    static constexpr Fault kBesides[] = {Fault::delete_node,   Fault::expire,         Fault::pause_in_code,
                                         Fault::skewed_clocks, Fault::isolate_server, Fault::silent_all,
                                         Fault::reset,         Fault::slow_listeners, Fault::others_hands};
    plan.servers = rng.one_in(4) ? 5 : 3;
    plan.processes = static_cast<int>(rng.between(2, 3));
    plan.fibers = rng.one_in(3) ? 2 : 1;  // the second one reads while the first one holds
    plan.paths = 1;
    plan.timeout_ms = plan.tick_ms * rng.between(2, plan.fibers == 2 ? 5 : 10);
    // As an administrator may set it: the tick that ends are rounded up to is so small that every hundredth counts.
    const bool to_the_edge = rng.one_in(4);
    if (to_the_edge) plan.tick_ms = 200, plan.timeout_ms = 60 * plan.tick_ms;
    plan.trouble = std::max(plan.trouble, plan.timeout_ms * (to_the_edge ? 20 : 8) * kMilli);
    plan.long_holds = true;
    plan.faults = 1U << static_cast<unsigned>(Fault::lease_attack);
    for (auto i = rng.between(0, 2); i > 0; --i)
        plan.faults |= 1U << static_cast<unsigned>(kBesides[rng.below(std::size(kBesides))]);
    if (rng.one_in(8)) plan.faults = 1U << static_cast<unsigned>(kBesides[rng.below(std::size(kBesides))]);
    if (to_the_edge) plan.faults |= 1U << static_cast<unsigned>(Fault::skewed_clocks);
}

/// Not those that cut a process off, as an impostor does: what its victim cannot have seen would not be known.
void aim_with_strangers(Plan& plan, Rng& rng) {
    static constexpr Fault kBesides[] = {Fault::reset,         Fault::delete_node,   Fault::expire,
                                         Fault::slow_disk,     Fault::skewed_clocks, Fault::slow_listeners,
                                         Fault::early_close,   Fault::lost_messages, Fault::kill_server,
                                         Fault::pause_in_code, Fault::reaper};
    plan.processes = static_cast<int>(rng.between(2, 3));
    plan.fibers = static_cast<int>(rng.between(1, 2));
    plan.paths = static_cast<int>(rng.between(1, 4));
    plan.long_holds = rng.one_in(3);
    plan.faults = 1U << static_cast<unsigned>(Fault::impostor);
    for (auto i = rng.between(0, 2); i > 0; --i)
        plan.faults |= 1U << static_cast<unsigned>(kBesides[rng.below(std::size(kBesides))]);
}

/// Sessions hand their locks over, and keep them.
void hand_over(Plan& plan, Rng& rng) {
    using std::chrono::milliseconds;
    if (!rng.one_in(3)) plan.locks.local_handovers = static_cast<std::uint32_t>(rng.between(2, 6));
    plan.locks.local_turn = milliseconds(rng.one_in(3) ? rng.between(50, 500) : 60'000);
    if (!rng.one_in(3) || plan.locks.local_handovers == 0) plan.locks.keep_for = milliseconds(rng.between(100, 20'000));
}

void limit_holds(Plan& plan, Rng& rng) {
    plan.locks.max_hold =
        std::chrono::milliseconds(rng.one_in(2) ? rng.between(1, 1000) : rng.between(500, 2 * plan.timeout_ms));
}

/// Many fibers of few processes want one lock.
void stay_local(Plan& plan, Rng& rng) {
    plan.processes = static_cast<int>(rng.between(2, 3));
    plan.fibers = static_cast<int>(rng.between(2, 5));
    plan.paths = rng.one_in(4) ? 2 : 1;
    hand_over(plan, rng);
}

/// In all workloads that are not about these options, too. By numbers of their own: the rest of the plan is the same.
void add_local_options(Plan& plan) {
    Rng rng = Rng(plan.seed).fork("local options " + plan.workload);
    if (rng.one_in(2)) hand_over(plan, rng);
    if (rng.one_in(4)) limit_holds(plan, rng);
    if (plan.workload == "delay") plan.locks.keep_for = std::chrono::milliseconds(0);  // not both
}

/// Most processes hold for some time at most, and want to hold for longer.
void end_by_time(Plan& plan, Rng& rng) {
    if (rng.one_in(2)) stay_local(plan, rng);
    if (rng.one_in(2)) plan.processes = static_cast<int>(rng.between(3, 4));
    plan.long_holds = rng.one_in(2);
    limit_holds(plan, rng);
    if (rng.one_in(3)) plan.faults |= 1U << static_cast<unsigned>(Fault::others_hands);
}

/// Servers that are asked by few, so that nobody else wakes them.
void leave_answers(Plan& plan) {
    plan.faults = 1U << static_cast<unsigned>(Fault::stalls);
    plan.processes = 2;
    plan.fibers = 1;
    plan.tick_ms = 2000;
    plan.timeout_ms = 20'000;                     // pings are rare
    plan.trouble = 3 * plan.timeout_ms * kMilli;  // in the beginning a try may have to wait for its first lease
}

/// Refusals are to come at once where nothing else is wrong; `often`: what some callers are to meet.
void let_callers_fail(Plan& plan, Rng& rng, Fault often) {
    plan.trouble = std::min(plan.trouble, 25 * kSecond);
    if (rng.one_in(2)) plan.faults = 0;
    if (plan.faults != 0 && rng.one_in(2)) plan.faults |= 1U << static_cast<unsigned>(often);
}

/// Keeper before version 26.7 has no containers, so nobody can make the directory of a lock again.
void meet_keeper(Plan& plan, Rng& rng) {
    static constexpr std::string_view kPlain[] = {"mutex", "lease", "local", "limits"};
    plan.keeper = true;
    plan.exists_needs_read = false;
    plan.containers = std::ranges::find(kPlain, plan.workload) == std::end(kPlain) || rng.one_in(2);
    if (!plan.containers) plan.faults &= ~(1U << static_cast<unsigned>(Fault::delete_all));
}

}  // namespace

Plan make_plan(std::uint64_t seed, const std::string& workload, bool keeper) {
    Rng rng = Rng(seed).fork("plan " + workload);
    Plan plan;
    plan.seed = seed;
    plan.workload = workload;
    static constexpr int kServers[] = {1, 3, 3, 3, 3, 5};
    plan.servers = kServers[rng.below(std::size(kServers))];
    static constexpr std::int64_t kTicks[] = {500, 1000, 2000, 2000};
    plan.tick_ms = kTicks[rng.below(std::size(kTicks))];
    // From the shortest that the servers grant to five times that; the lease rule changes at three ticks.
    plan.timeout_ms = rng.one_in(3) ? plan.tick_ms * 2 : rng.between(plan.tick_ms * 2, plan.tick_ms * 10);
    plan.processes = static_cast<int>(rng.between(2, 5));
    plan.fibers = static_cast<int>(rng.between(1, 3));
    plan.paths = static_cast<int>(rng.between(1, 2));
    if (workload == "multi" || workload == "mixed") plan.paths = static_cast<int>(rng.between(2, 5));
    if (workload == "values" || workload == "nodes") plan.paths = static_cast<int>(rng.between(2, 4));
    plan.trouble = rng.between(15, 45) * kSecond;
    plan.poll_beliefs = rng.one_in(2);
    plan.probe = !rng.one_in(4);
    // Few kinds at a time: all of them together keep everybody from ever holding anything.
    const auto kinds = rng.between(0, 5);
    for (std::int64_t i = 0; i < kinds; ++i) plan.faults |= 1U << rng.below(kFaultsByChance);
    if (workload == "delay" && kinds != 0) {
        static constexpr Fault kVanish[] = {Fault::expire, Fault::delete_node, Fault::process_dies, Fault::early_close};
        plan.faults |= 1U << static_cast<unsigned>(kVanish[rng.below(std::size(kVanish))]);
    }
    // What is asked of a write whose answer was lost needs a second lost answer to go wrong.
    if (workload == "values" && rng.one_in(3)) plan.faults |= 1U << static_cast<unsigned>(Fault::doubt_attack);
    if (plan.has(Fault::late_callbacks)) plan.trouble += 8 * plan.timeout_ms * kMilli;
    if (plan.has(Fault::no_quorum)) plan.trouble += 12 * plan.timeout_ms * kMilli;
    plan.tick_known = !rng.one_in(3);
    // Whose judges count every write, and so know no others.
    if (workload == "values" || workload == "nodes") plan.faults &= ~(1U << static_cast<unsigned>(Fault::others_hands));
    if (workload == "lease") aim_at_leases(plan, rng);
    if (workload == "local") stay_local(plan, rng);
    if (workload == "limits") end_by_time(plan, rng);
    if (workload == "strangers" || workload == "keeper") aim_with_strangers(plan, rng);
    if (workload == "misuse") let_callers_fail(plan, rng, Fault::silent_all);
    if (workload == "misuse" && rng.one_in(8)) leave_answers(plan);
    if (workload == "terms") let_callers_fail(plan, rng, Fault::delete_node);
    if (workload == "numbers") {
        plan.paths = static_cast<int>(rng.between(1, 4));
        plan.faults |= 1U << static_cast<unsigned>(Fault::end_of_numbers);
    }
    if (workload == "kazoo") {
        plan.processes = static_cast<int>(rng.between(1, 3));
        plan.faults &= ~(1U << static_cast<unsigned>(Fault::others_hands));
    }
    if (workload == "numbers" || workload == "kazoo") plan.faults |= 1U << static_cast<unsigned>(Fault::contenders);
    if (workload != "local" && workload != "limits") add_local_options(plan);
    plan.exists_needs_read = seed % 4 != 0;
    if (keeper || workload == "keeper") meet_keeper(plan, rng);
    // All of them may want one lock when the trouble ends, and hold it one after the other (Workload::hold_time).
    const SimTime longest_hold = (plan.long_holds ? 5 : 2) * plan.timeout_ms * kMilli;
    plan.patience = std::max(plan.patience, (plan.processes * plan.fibers + 1) * longest_hold);
    return plan;
}

}  // namespace zkrecipes::sim
