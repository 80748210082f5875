// Every step of the acquire protocol × everything that can go wrong at it, generated: whatever happens, there is
// exactly one answer, at most one node of ours, and none that is not held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "unit/acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using Fault = AcquireWorld::Fault;
using Patience = AcquireFsm::Patience;
using Contender = AcquireWorld::Contender;

struct Scenario {
    const char* name;
    Patience patience;
    void (*prepare)(AcquireWorld&);
    AcquireWorld::Contender contender = AcquireWorld::Contender::mutex;
};

std::string enter(AcquireWorld& w, char who, const std::string& base = "lock-") {
    return w.other_enters(std::string("_c_00000000-0000-4000-8000-00000000000") + who + "-" + base);
}

const Scenario kScenarios[] = {
    {"Free", Patience::wait, [](AcquireWorld&) {}},
    {"Cold", Patience::wait, [](AcquireWorld& w) { w.exists = false; }},
    {"BehindOne", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a');
         w.script = {[&w, a] { w.remove(a); }};
     }},
    {"BehindTwo", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a'), b = enter(w, 'b');
         w.script = {[&w, a] { w.remove(a); }, [&w, b] { w.remove(b); }};
     }},
    {"MiddleLeaves", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a'), b = enter(w, 'b'), c = enter(w, 'c');
         w.script = {[&w, b] { w.remove(b); }, [&w, c] { w.remove(c); }, [&w, a] { w.remove(a); }};
     }},
    {"OwnNodeDeleted", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a');
         w.script = {[&w] {
                         if (!w.mine().empty()) w.remove(w.mine().front());
                     },
                     [&w, a] { w.remove(a); }};
     }},
    {"OldLease", Patience::wait, [](AcquireWorld& w) { w.slow_lease = true; }},
    {"ReapedOnce", Patience::wait,
     [](AcquireWorld& w) {
         w.exists = false;
         w.reap_directory = 1;
     }},
    {"TryFree", Patience::try_once, [](AcquireWorld&) {}},
    {"TryBusy", Patience::try_once, [](AcquireWorld& w) { enter(w, 'a'); }},
    {"TryCold", Patience::try_once, [](AcquireWorld& w) { w.exists = false; }},
    {"WriterFree", Patience::wait, [](AcquireWorld&) {}, Contender::writer},
    {"WriterBehindBoth", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a', "__WRIT__"), b = enter(w, 'b', "__READ__");
         w.script = {[&w, a] { w.remove(a); }, [&w, b] { w.remove(b); }};
     },
     Contender::writer},
    {"WriterBehindADowngrade", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a', "__WRIT__");
         const auto share = std::make_shared<std::string>();
         w.script = {[&w, a, share] { *share = w.other_downgrades(a); }, [&w, share] { w.remove(*share); }};
     },
     Contender::writer},
    {"ReaderBesideReaders", Patience::wait,
     [](AcquireWorld& w) {
         enter(w, 'a', "__READ__");
         enter(w, 'b', "__READ__");
     },
     Contender::reader},
    {"ReaderBehindOneWriter", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a', "__WRIT__");
         enter(w, 'b', "__READ__");
         w.script = {[&w, a] { w.remove(a); }};
     },
     Contender::reader},
    {"ReaderBehindADowngradeAndAWriter", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = enter(w, 'a', "__WRIT__"), b = enter(w, 'b', "__WRIT__");
         w.script = {[&w, a] { w.other_downgrades(a); }, [&w, b] { w.remove(b); }};
     },
     Contender::reader},
    {"KazooBehindTwo", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = w.other_enters("0000000000004000800000000000000a__lock__");
         const auto b = w.other_enters("f000000000004000800000000000000b__lock__");
         w.script = {[&w, a] { w.remove(a); }, [&w, b] { w.remove(b); }};
     },
     Contender::kazoo_mutex},
    {"KazooReaderBehindAWriter", Patience::wait,
     [](AcquireWorld& w) {
         const auto a = w.other_enters("0000000000004000800000000000000a__lock__");
         w.other_enters("0000000000004000800000000000000b__rlock__");
         w.script = {[&w, a] { w.remove(a); }};
     },
     Contender::kazoo_reader},
    {"TryShareBusy", Patience::try_once, [](AcquireWorld& w) { enter(w, 'a', "__WRIT__"); }, Contender::reader},
    {"TryShareBesideReaders", Patience::try_once, [](AcquireWorld& w) { enter(w, 'a', "__READ__"); },
     Contender::reader},
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

std::string printed(const std::vector<std::string>& trace) {
    std::ostringstream out;
    for (const auto& step : trace) out << step << ' ';
    return out.str();
}

struct Variant {
    bool suspended_first = true;
    bool lingering = false;
    int attempts = 1'000'000;
    int stay_away = 0;
};

/// Runs one cell of the table. How many requests the run took.
int play(const Scenario& scenario, std::vector<AcquireWorld::Plan> plans, Variant variant) {
    AcquireWorld w(scenario.patience, scenario.contender);
    w.suspended_first = variant.suspended_first;
    w.lingering = variant.lingering;
    w.attempts_allowed = variant.attempts;
    w.stay_away = variant.stay_away;
    scenario.prepare(w);
    if (variant.lingering) {
        w.script.push_back([&w] {
            for (std::int64_t s = 1; s < w.session; ++s) w.delete_nodes_of(s);
        });
    }
    w.plans = plans;
    w.fsm.start();
    w.run();
    if (variant.lingering) {
        for (std::int64_t s = 1; s < w.session; ++s) w.delete_nodes_of(s);
    }

    std::ostringstream cell;
    cell << scenario.name;
    bool ended_by_fault = false, broken = false;
    for (const auto& plan : plans) {
        cell << " " << plan.at << ":" << name_of(plan.fault);
        if (plan.at < w.executed) (ends_the_call(plan.fault) ? ended_by_fault : broken) = true;
    }
    cell << " [" << printed(w.trace) << "]" << (variant.suspended_first ? "" : " answers first")
         << (variant.lingering ? " lingering" : "");
    SCOPED_TRACE(cell.str());
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.finishes, 1);
    EXPECT_FALSE(w.double_grant);
    EXPECT_EQ(w.watched, "");
    EXPECT_FALSE(w.timer);
    if (w.ended == Ended::granted) {
        EXPECT_EQ(w.holds.size(), 1u);
        EXPECT_THAT(w.mine(), ::testing::ElementsAre(w.fsm.node()));
    } else {
        EXPECT_THAT(w.mine(), ::testing::IsEmpty());
        EXPECT_THAT(w.holds, ::testing::IsEmpty());
        // Nothing but the fault may have kept it from the lock.
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
class AcquireFaultTable : public ::testing::TestWithParam<Cell> {};

TEST_P(AcquireFaultTable, EndsWithOneAnswerAndLeavesNothing) {
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

TEST_P(AcquireFaultTable, EndsWellWithASecondFaultAtAnyLaterStep) {
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

INSTANTIATE_TEST_SUITE_P(EveryStep, AcquireFaultTable, ::testing::ValuesIn(cells()), [](const auto& cell) {
    return std::string(cell.param.scenario->name) + "_" + name_of(cell.param.fault);
});

}  // namespace
}  // namespace zkrecipes::internal
