// Every step of taking leases × everything that can go wrong at it, generated: whatever happens, there is exactly one
// answer, never more leases than there are, all that were wanted or none, and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "unit/semaphore_world.hpp"

namespace zkrecipes::internal {
namespace {

using Fault = SemaphoreWorld::Fault;
using Patience = AcquireFsm::Patience;

struct Scenario {
    const char* name;
    Patience patience;
    std::int32_t limit;
    std::int32_t wanted;
    void (*prepare)(SemaphoreWorld&);
};

std::string enter(SemaphoreWorld& w, char who) {
    return w.other_enters(std::string("_c_00000000-0000-4000-8000-00000000000") + who + "-lock-");
}

const Scenario kScenarios[] = {
    {"Free", Patience::wait, 3, 2, [](SemaphoreWorld& w) { w.other_holds(); }},
    {"Cold", Patience::wait, 3, 1, [](SemaphoreWorld& w) { w.exists = w.leases_exist = false; }},
    {"NumberNotWritten", Patience::wait, 2, 2, [](SemaphoreWorld& w) { w.data.clear(); }},
    {"Full", Patience::wait, 2, 1,
     [](SemaphoreWorld& w) {
         w.other_holds();
         const auto b = w.other_holds();
         w.script = {[&w, b] { w.remove_lease(b); }};
     }},
    {"TwoMustLeave", Patience::wait, 3, 2,
     [](SemaphoreWorld& w) {
         const auto a = w.other_holds(), b = w.other_holds(), c = w.other_holds();
         w.script = {[&w, c] { w.remove_lease(c); }, [&w, a] { w.remove_lease(a); }, [&w, b] { w.remove_lease(b); }};
     }},
    {"BehindOneThatTakesTheRest", Patience::wait, 2, 1,
     [](SemaphoreWorld& w) {
         const auto a = enter(w, 'a');
         const auto held = w.other_holds();
         w.script = {[&w, a] { w.other_takes(a); }, [&w, held] { w.remove_lease(held); }};
     }},
    {"BehindTwo", Patience::wait, 5, 3,
     [](SemaphoreWorld& w) {
         const auto a = enter(w, 'a'), b = enter(w, 'b');
         w.script = {[&w, a] { w.other_takes(a); }, [&w, b] { w.other_takes(b); }};
     }},
    {"NumberRaised", Patience::wait, 1, 1,
     [](SemaphoreWorld& w) {
         w.terms.directory = w.directory;
         w.other_holds();
         w.script = {[&w] { w.change(2); }};
     }},
    {"NumberLoweredMeanwhile", Patience::wait, 3, 1,
     [](SemaphoreWorld& w) {
         const auto a = w.other_holds();
         w.before_take = [&w] { w.change(1); };
         w.script = {[&w, a] { w.remove_lease(a); }};
     }},
    {"PlaceDeletedMeanwhile", Patience::wait, 1, 1,
     [](SemaphoreWorld& w) {
         w.before_take = [&w] {
             for (const auto& name : w.mine()) w.remove(name);
         };
     }},
    {"LeaseDeletedAtOnce", Patience::wait, 2, 2,
     [](SemaphoreWorld& w) { w.before_lease_read = [&w] { w.remove_lease(w.my_leases().front()); }; }},
    {"OldLease", Patience::wait, 2, 2, [](SemaphoreWorld& w) { w.slow_lease = true; }},
    {"TryFree", Patience::try_once, 2, 2, [](SemaphoreWorld&) {}},
    {"TryCold", Patience::try_once, 2, 2, [](SemaphoreWorld& w) { w.exists = w.leases_exist = false; }},
    {"TryTooFewBusy", Patience::try_once, 2, 2, [](SemaphoreWorld& w) { w.other_holds(); }},
    {"TryQueueBusy", Patience::try_once, 2, 1, [](SemaphoreWorld& w) { enter(w, 'a'); }},
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
int play(const Scenario& scenario, const std::vector<SemaphoreWorld::Plan>& plans, Variant variant) {
    SemaphoreWorld w(scenario.patience, scenario.limit, scenario.wanted);
    w.suspended_first = variant.suspended_first;
    w.lingering = variant.lingering;
    w.attempts_allowed = variant.attempts;
    w.stay_away = variant.stay_away;
    scenario.prepare(w);
    const auto former_sessions_end = [&w] {
        for (std::int64_t s = 1; s < w.session; ++s) w.delete_nodes_of(s);
    };
    if (variant.lingering) w.script.push_back(former_sessions_end);
    w.script.push_back([&w] { w.flush_reaper(); });
    if (variant.lingering) w.script.push_back(former_sessions_end);
    w.plans = plans;
    w.fsm.start();
    w.run();
    if (variant.lingering) former_sessions_end();

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
    EXPECT_FALSE(w.double_grant);
    EXPECT_FALSE(w.too_many);
    EXPECT_FALSE(w.watching);
    EXPECT_EQ(w.watched, "");
    EXPECT_FALSE(w.timer);
    EXPECT_THAT(w.mine(), ::testing::IsEmpty());  // whoever has leases has left the queue
    if (w.ended == Ended::granted) {
        EXPECT_EQ(w.holds.size(), 1u);
        EXPECT_EQ(std::ssize(w.held), scenario.wanted);
        const bool deleted = std::string(scenario.name) == "LeaseDeletedAtOnce" && !w.before_lease_read;
        // Deleted after the grant had been earned, it is the hold's business to notice.
        if (!deleted || w.uuids > 1) {
            EXPECT_THAT(w.my_leases(), ::testing::UnorderedElementsAreArray(w.held));
        }
    } else {
        EXPECT_THAT(w.my_leases(), ::testing::IsEmpty());
        EXPECT_THAT(w.holds, ::testing::IsEmpty());
        // Nothing but the fault may have kept it from the leases.
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
class SemaphoreFaultTable : public ::testing::TestWithParam<Cell> {};

TEST_P(SemaphoreFaultTable, EndsWithOneAnswerAndLeavesNothing) {
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

TEST_P(SemaphoreFaultTable, EndsWellWithASecondFaultAtAnyLaterStep) {
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

INSTANTIATE_TEST_SUITE_P(EveryStep, SemaphoreFaultTable, ::testing::ValuesIn(cells()), [](const auto& cell) {
    return std::string(cell.param.scenario->name) + "_" + name_of(cell.param.fault);
});

}  // namespace
}  // namespace zkrecipes::internal
