// Every step of the multi-lock's protocol × everything that can go wrong at it, generated: whatever happens, there is
// exactly one answer, and either all nodes of one create are there and held, or none of ours is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "unit/multi_acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using World = MultiAcquireWorld;
using Fault = World::Fault;
using Patience = World::Patience;

constexpr const char* kMutex = "lock-";
constexpr const char* kAlone = "__WRIT__";
constexpr const char* kShared = "__READ__";

struct Scenario {
    const char* name;
    Patience patience;
    std::vector<std::string> bases;
    void (*prepare)(World&);
};

const Scenario kScenarios[] = {
    {"OneFree", Patience::wait, {kMutex}, [](World&) {}},
    {"ThreeFree", Patience::wait, {kMutex, kAlone, kShared}, [](World&) {}},
    {"AllCold", Patience::wait, {kMutex, kMutex}, [](World& w) { w.dirs[0].exists = w.dirs[1].exists = false; }},
    {"OneCold", Patience::wait, {kMutex, kMutex}, [](World& w) { w.dirs[1].exists = false; }},
    {"ReapedOnce",
     Patience::wait,
     {kMutex, kMutex},
     [](World& w) {
         w.dirs[1].exists = false;
         w.reap_directory = 1;
     }},
    {"BehindOneSingle",
     Patience::wait,
     {kMutex, kMutex},
     [](World& w) {
         const auto a = w.other_enters(1);
         w.script = {[&w, a] { w.remove(1, a); }};
     }},
    {"BehindASet",
     Patience::wait,
     {kMutex, kMutex, kMutex},
     [](World& w) {
         w.others_enter({0, 2});
         w.script = {[&w] { w.others_leave('a'); }};
     }},
    {"BehindTwoSets",
     Patience::wait,
     {kMutex, kMutex},
     [](World& w) {
         w.others_enter({0, 1}, 'a');
         w.others_enter({0, 1}, 'b');
         w.script = {[&w] { w.others_leave('a'); }, [&w] { w.others_leave('b'); }};
     }},
    {"MiddleLeaves",
     Patience::wait,
     {kMutex, kMutex},
     [](World& w) {
         w.others_enter({0}, 'a');
         w.others_enter({0, 1}, 'b');
         w.script = {[&w] { w.others_leave('b'); }, [&w] { w.others_leave('a'); }};
     }},
    {"OneAfterTheOther",
     Patience::wait,
     {kMutex, kShared},
     [](World& w) {
         w.other_enters(0, 'a');
         w.other_enters(1, 'b', kAlone);
         w.script = {[&w] { w.others_leave('a'); }, [&w] { w.others_leave('b'); }};
     }},
    {"SharedBesideShares", Patience::wait, {kShared, kMutex}, [](World& w) { w.other_enters(0, 'a', kShared); }},
    {"AloneBehindShareAndWriter",
     Patience::wait,
     {kAlone, kMutex},
     [](World& w) {
         w.other_enters(0, 'a', kAlone);
         w.other_enters(0, 'b', kShared);
         w.script = {[&w] { w.others_leave('a'); }, [&w] { w.others_leave('b'); }};
     }},
    {"OwnNodeDeleted",
     Patience::wait,
     {kMutex, kMutex},
     [](World& w) {
         w.other_enters(0, 'a');
         w.script = {[&w] {
                         const auto mine = w.mine();
                         if (!mine.empty()) w.remove(mine.back().first, mine.back().second);
                     },
                     [&w] { w.others_leave('a'); }};
     }},
    {"OldLease", Patience::wait, {kMutex, kMutex}, [](World& w) { w.slow_lease = true; }},
    {"TryFree", Patience::try_once, {kMutex, kShared}, [](World&) {}},
    {"TryCold", Patience::try_once, {kMutex, kMutex}, [](World& w) { w.dirs[1].exists = false; }},
    {"TryBusy", Patience::try_once, {kMutex, kMutex}, [](World& w) { w.other_enters(1, 'a'); }},
};

const char* name_of(Fault fault) {
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
constexpr Fault kFaults[] = {Fault::lost_before, Fault::lost_after, Fault::expired_before, Fault::expired_after,
                             Fault::stopped,     Fault::timed_out,  Fault::closed};
bool ends_the_call(Fault fault) {
    return fault == Fault::stopped || fault == Fault::timed_out || fault == Fault::closed;
}

struct Variant {
    bool suspended_first = true;
    bool lingering = false;
    int attempts = 1'000'000;
    int stay_away = 0;
};

/// Runs one cell of the table. How many requests the run took.
int play(const Scenario& scenario, const std::vector<World::Plan>& plans, Variant variant) {
    World w(scenario.bases, scenario.patience);
    w.suspended_first = variant.suspended_first;
    w.lingering = variant.lingering;
    w.attempts_allowed = variant.attempts;
    w.stay_away = variant.stay_away;
    scenario.prepare(w);
    const auto end_former_sessions = [&w] {
        for (std::int64_t s = 1; s < w.session; ++s) w.delete_nodes_of(s);
    };
    if (variant.lingering) w.script.push_back(end_former_sessions);
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
    EXPECT_FALSE(w.bad_grant);
    EXPECT_FALSE(w.any_watch());
    EXPECT_FALSE(w.timer);
    if (w.ended == Ended::granted) {
        EXPECT_EQ(w.holds.size(), 1u);
        std::vector<std::pair<std::size_t, std::string>> held;
        for (std::size_t i = 0; i < w.fsm.nodes().size(); ++i) held.emplace_back(i, w.fsm.nodes()[i]);
        EXPECT_THAT(w.mine(), ::testing::ElementsAreArray(held));
    } else {
        EXPECT_THAT(w.mine(), ::testing::IsEmpty());
        EXPECT_THAT(w.holds, ::testing::IsEmpty());
        // Nothing but the fault may have kept it from the locks.
        const bool excused = ended_by_fault || (scenario.patience == Patience::try_once && broken) ||
                             std::string(scenario.name).ends_with("Busy") || (broken && variant.attempts < 1'000'000);
        EXPECT_TRUE(excused) << "ended " << static_cast<int>(w.ended) << ": " << w.text;
    }
    return w.executed;
}

struct Cell {
    const Scenario* scenario;
    Fault fault;
};
class MultiAcquireFaultTable : public ::testing::TestWithParam<Cell> {};

TEST_P(MultiAcquireFaultTable, EndsWithOneAnswerAndLeavesNothing) {
    const auto& [scenario, fault] = GetParam();
    const int steps = play(*scenario, {}, {});
    for (int at = 0; at < steps; ++at) {
        for (const bool suspended_first : {true, false}) {
            for (const bool lingering : {false, true}) {
                play(*scenario, {{at, fault}}, {suspended_first, lingering, 1'000'000, 0});
                play(*scenario, {{at, fault}}, {suspended_first, lingering, 1'000'000, 3});
                play(*scenario, {{at, fault}}, {suspended_first, lingering, 0, 0});   // a policy that never retries
                play(*scenario, {{at, fault}}, {suspended_first, lingering, 2, 10});  // one that gives up in the outage
            }
        }
    }
}

TEST_P(MultiAcquireFaultTable, EndsWellWithASecondFaultAtAnyLaterStep) {
    const auto& [scenario, fault] = GetParam();
    const int steps = play(*scenario, {}, {});
    for (int at = 0; at < steps; ++at) {
        const int all = play(*scenario, {{at, fault}}, {});
        for (int second = at + 1; second < all; ++second) {
            for (const Fault other : kFaults) {
                for (const bool suspended_first : {true, false}) {
                    play(*scenario, {{at, fault}, {second, other}}, {suspended_first, false, 1'000'000, 0});
                }
            }
        }
    }
}

std::vector<Cell> cells() {
    std::vector<Cell> all;
    for (const auto& scenario : kScenarios) {
        for (const Fault fault : kFaults) all.push_back({&scenario, fault});
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(EveryStep, MultiAcquireFaultTable, ::testing::ValuesIn(cells()), [](const auto& cell) {
    return std::string(cell.param.scenario->name) + "_" + name_of(cell.param.fault);
});

}  // namespace
}  // namespace zkrecipes::internal
