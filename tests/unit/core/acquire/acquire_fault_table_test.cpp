// Every step of the acquire protocol × everything that can go wrong at it, generated: whatever happens, there is
// exactly one answer, at most one node of ours, and none that is not held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "support/fault_table.hpp"
#include "unit/core/acquire/acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

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
    {"MetAQueueBehindTwo", Patience::wait,
     [](AcquireWorld& w) {
         w.spec.fast_handover = w.met = true;
         const auto a = enter(w, 'a'), b = enter(w, 'b');
         w.script = {[&w, a] { w.remove(a); }, [&w, b] { w.remove(b); }};
     }},
    {"MetAQueueFree", Patience::wait, [](AcquireWorld& w) { w.spec.fast_handover = w.met = true; }},
    {"ReadRefused", Patience::wait, [](AcquireWorld& w) { w.read_refused = true; }},
    {"ListRefused", Patience::wait,
     [](AcquireWorld& w) {
         w.spec.fast_handover = w.met = w.read_refused = true;
         const auto a = enter(w, 'a');
         w.script = {[&w, a] { w.remove(a); }};
     }},
    {"MetAQueueCold", Patience::wait,
     [](AcquireWorld& w) {
         w.spec.fast_handover = w.met = true;
         w.exists = false;
     }},
    {"HandedOverByTheSecond", Patience::wait,
     [](AcquireWorld& w) {
         w.spec.fast_handover = true;
         const auto a = enter(w, 'a'), b = enter(w, 'b'), c = enter(w, 'c');
         w.script = {[&w, b] { w.remove(b); }, [&w, a] { w.remove(a); }, [&w, c] { w.remove(c); }};
     }},
    {"HandedOverWhileOthersCome", Patience::wait,
     [](AcquireWorld& w) {
         w.spec.fast_handover = true;
         const auto a = enter(w, 'a'), b = enter(w, 'b');
         const auto c = std::make_shared<std::string>(), d = std::make_shared<std::string>();
         w.script = {[&w, a] { w.remove(a); }, [&w, c] { *c = enter(w, 'c'); }, [&w, d] { *d = enter(w, 'd'); },
                     [&w, b] { w.remove(b); }, [&w, c] { w.remove(*c); },       [&w, d] { w.remove(*d); }};
     }},
    {"OwnNodeDeletedWhenNext", Patience::wait,
     [](AcquireWorld& w) {
         w.spec.fast_handover = true;
         const auto a = enter(w, 'a'), b = enter(w, 'b');
         const auto empty = [&w] {
             if (!w.mine().empty()) w.remove(w.mine().front());
         };
         w.script = {[&w, a] { w.remove(a); }, empty, [&w, b] { w.remove(b); }};
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

/// Runs one cell of the table. How many requests the run took.
int play(const Scenario& scenario, const PlannedFaults& plans, const Variant& variant) {
    AcquireWorld w(scenario.patience, scenario.contender);
    return play_cell(w, scenario, plans, variant, [](AcquireWorld& world) {
        EXPECT_FALSE(world.double_grant);
        EXPECT_EQ(world.watched, "");
        if (world.ended == Ended::granted) {
            EXPECT_EQ(world.holds.size(), 1u);
            EXPECT_THAT(world.mine(), ::testing::ElementsAre(world.fsm.node()));
        } else {
            EXPECT_THAT(world.mine(), ::testing::IsEmpty());
            EXPECT_THAT(world.holds, ::testing::IsEmpty());
        }
    });
}

class AcquireFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {
protected:
    static auto player() {
        return [&scenario = *GetParam().scenario](const PlannedFaults& plans, const Variant& variant) {
            return play(scenario, plans, variant);
        };
    }
};

TEST_P(AcquireFaultTable, EndsWithOneAnswerAndLeavesNothing) { one_fault_at_every_step(GetParam().fault, player()); }
TEST_P(AcquireFaultTable, EndsWellWithASecondFaultAtAnyLaterStep) {
    two_faults_at_any_steps(GetParam().fault, player());
}
INSTANTIATE_TEST_SUITE_P(EveryStep, AcquireFaultTable, ::testing::ValuesIn(cells(kScenarios)), NameOfCell());

}  // namespace
}  // namespace zkrecipes::internal
