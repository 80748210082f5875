#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include "core/operation/types.hpp"

namespace zkrecipes::internal {

/// What can go wrong at one request of a protocol.
enum class Fault { none, lost_before, lost_after, expired_before, expired_after, stopped, timed_out, closed };
inline constexpr Fault kFaults[] = {Fault::lost_before, Fault::lost_after, Fault::expired_before, Fault::expired_after,
                                    Fault::stopped,     Fault::timed_out,  Fault::closed};

inline const char* name_of(Fault fault) {
    switch (fault) {
        case Fault::none: return "Nothing";
        case Fault::lost_before: return "LostBefore";
        case Fault::lost_after: return "LostAfter";
        case Fault::expired_before: return "ExpiredBefore";
        case Fault::expired_after: return "ExpiredAfter";
        case Fault::stopped: return "Stopped";
        case Fault::timed_out: return "TimedOut";
        case Fault::closed: return "Closed";
    }
    return "";
}
inline bool ends_the_call(Fault fault) {
    return fault == Fault::stopped || fault == Fault::timed_out || fault == Fault::closed;
}

/// That the request with this number, counted from 0, meets this fault.
struct PlannedFault {
    int at = -1;
    Fault fault = Fault::none;
};
using PlannedFaults = std::vector<PlannedFault>;

inline Fault fault_at(const PlannedFaults& plans, int request) {
    for (const auto& plan : plans) {
        if (plan.at == request) return plan.fault;
    }
    return Fault::none;
}

struct Variant {
    static constexpr int kForever = 1'000'000;

    bool suspended_first = true;  // the state is told before the answers of what was on its way
    bool lingering = false;       // nodes of an ended session stay for a while
    int attempts = kForever;      // of the retry policy
    int stay_away = 0;            // so many attempts find no server
};

/// One row × one column of the table.
template <class Scenario>
struct Cell {
    const Scenario* scenario;
    Fault fault;
};
template <class Scenario, std::size_t size>
std::vector<Cell<Scenario>> cells(const Scenario (&scenarios)[size]) {
    std::vector<Cell<Scenario>> all;
    for (const auto& scenario : scenarios) {
        for (const Fault fault : kFaults) all.push_back({&scenario, fault});
    }
    return all;
}
struct NameOfCell {
    template <class Info>
    std::string operator()(const Info& cell) const {
        return std::string(cell.param.scenario->name) + "_" + name_of(cell.param.fault);
    }
};

/// Runs one cell in a world that is made for it. `World` has the members of Variant, plans, script, trace, session,
/// executed, fsm and delete_nodes_of(). `check` is told whether a fault ended the call, and whether one broke the
/// connection. How many requests the run took.
template <class World, class Scenario, class Check>
int play_cell(World& w, const Scenario& scenario, const PlannedFaults& plans, const Variant& variant, Check check) {
    w.suspended_first = variant.suspended_first;
    w.lingering = variant.lingering;
    w.attempts_allowed = variant.attempts;
    w.stay_away = variant.stay_away;
    scenario.prepare(w);
    const auto end_former_sessions = [&w] {
        for (std::int64_t s = 1; s < w.session; ++s) w.delete_nodes_of(s);
    };
    if (variant.lingering) w.script.push_back(end_former_sessions);
    if constexpr (requires { w.flush_reaper(); }) {
        w.script.push_back([&w] { w.flush_reaper(); });
        if (variant.lingering) w.script.push_back(end_former_sessions);
    }
    w.plans = plans;
    w.fsm.start();
    w.run();
    if (variant.lingering) end_former_sessions();

    std::ostringstream cell;
    cell << scenario.name;
    bool ended_by_fault = false, broken = false;
    for (const auto& plan : plans) {
        cell << " " << plan.at << ":" << name_of(plan.fault);
        if (plan.at < w.executed) (ends_the_call(plan.fault) ? ended_by_fault : broken) = true;
    }
    cell << " [";
    for (const auto& step : w.trace) cell << step << ' ';
    cell << "]" << (variant.suspended_first ? "" : " answers first") << (variant.lingering ? " lingering" : "");
    SCOPED_TRACE(cell.str());
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.finishes, 1);
    EXPECT_FALSE(w.timer);
    check(w);
    if constexpr (requires { w.others_came; }) {
        const auto met = [&](Fault fault) {
            return std::ranges::any_of(
                plans, [&](const PlannedFault& plan) { return plan.fault == fault && plan.at < w.executed; });
        };
        const bool tried_in_vain = scenario.patience == Patience::try_once && (broken || met(Fault::closed));
        EXPECT_TRUE(w.ended != Ended::stopped || met(Fault::stopped));
        EXPECT_TRUE(w.ended != Ended::busy || w.others_came);
        EXPECT_TRUE(w.ended != Ended::unreachable || met(Fault::timed_out) || tried_in_vain);
    }
    // Nothing but the fault may have kept it from what it wanted.
    const bool excused = ended_by_fault || (scenario.patience == Patience::try_once && broken) ||
                         std::string(scenario.name).ends_with("Busy") ||
                         (broken && variant.attempts < Variant::kForever);
    EXPECT_TRUE(excused || !w.holds.empty())
        << "ended " << (w.ended ? static_cast<int>(*w.ended) : -1) << ": " << w.text;
    return w.executed;
}

/// The fault at each step of a run, in every variant. `play` runs one cell: (faults, variant) -> requests it took.
template <class Play>
void one_fault_at_every_step(Fault fault, Play play) {
    const int steps = play(PlannedFaults{}, Variant{});
    for (int at = 0; at < steps; ++at) {
        const PlannedFaults plan{{at, fault}};
        for (const bool suspended_first : {true, false}) {
            for (const bool lingering : {false, true}) {
                play(plan, Variant{suspended_first, lingering, Variant::kForever, 0});
                play(plan, Variant{suspended_first, lingering, Variant::kForever, 3});
                play(plan, Variant{suspended_first, lingering, 0, 0});   // a policy that never retries
                play(plan, Variant{suspended_first, lingering, 2, 10});  // one that gives up in the outage
            }
        }
    }
}

/// The fault at each step, and any fault at each step after it.
template <class Play>
void two_faults_at_any_steps(Fault fault, Play play) {
    const int steps = play(PlannedFaults{}, Variant{});
    for (int at = 0; at < steps; ++at) {
        const int all = play(PlannedFaults{{at, fault}}, Variant{});
        for (int second = at + 1; second < all; ++second) {
            for (const Fault other : kFaults) {
                for (const bool suspended_first : {true, false}) {
                    play(PlannedFaults{{at, fault}, {second, other}},
                         Variant{suspended_first, false, Variant::kForever, 0});
                }
            }
        }
    }
}

}  // namespace zkrecipes::internal
