// Every step of the multi-lock's protocol × everything that can go wrong at it, generated: whatever happens, there is
// exactly one answer, and either all nodes of one create are there and held, or none of ours is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fault_table.hpp"
#include "unit/core/acquire/multi_acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using World = MultiAcquireWorld;

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
    {"MarkerForbidden", Patience::wait, {kMutex, kShared}, [](World& w) { w.marker_answer = Rc::no_auth; }},
    {"MarkerForbiddenBehindASet",
     Patience::wait,
     {kMutex, kMutex},
     [](World& w) {
         w.marker_answer = Rc::no_auth;
         w.others_enter({0, 1});
         w.script = {[&w] { w.others_leave('a'); }};
     }},
    {"AnotherComesBehind",
     Patience::wait,
     {kMutex, kMutex},
     [](World& w) {
         w.before_parents = [&w] { w.others_enter({0, 1}); };
         w.script = {[&w] { w.others_leave('a'); }};
     }},
    {"OnlyChildIsAnother",
     Patience::wait,
     {kMutex},
     [](World& w) {
         w.before_parents = [&w] {
             for (const auto& [member, name] : w.mine()) w.remove(member, name);
             w.other_enters(0);
             w.script.push_front([&w] { w.others_leave('a'); });
         };
     }},
    {"TryFree", Patience::try_once, {kMutex, kShared}, [](World&) {}},
    {"TryCold", Patience::try_once, {kMutex, kMutex}, [](World& w) { w.dirs[1].exists = false; }},
    {"TryBusy", Patience::try_once, {kMutex, kMutex}, [](World& w) { w.other_enters(1, 'a'); }},
};

/// Runs one cell of the table. How many requests the run took.
int play(const Scenario& scenario, const PlannedFaults& plans, const Variant& variant) {
    World w(scenario.bases, scenario.patience);
    return play_cell(w, scenario, plans, variant, [](World& world) {
        EXPECT_FALSE(world.bad_grant);
        EXPECT_FALSE(world.any_watch());
        if (world.ended == Ended::granted) {
            EXPECT_EQ(world.holds.size(), 1u);
            std::vector<std::pair<std::size_t, std::string>> held;
            for (std::size_t i = 0; i < world.fsm.nodes().size(); ++i) held.emplace_back(i, world.fsm.nodes()[i]);
            EXPECT_THAT(world.mine(), ::testing::ElementsAreArray(held));
        } else {
            EXPECT_THAT(world.mine(), ::testing::IsEmpty());
            EXPECT_THAT(world.holds, ::testing::IsEmpty());
        }
    });
}

class MultiAcquireFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {
protected:
    static auto player() {
        return [&scenario = *GetParam().scenario](const PlannedFaults& plans, const Variant& variant) {
            return play(scenario, plans, variant);
        };
    }
};

TEST_P(MultiAcquireFaultTable, EndsWithOneAnswerAndLeavesNothing) {
    one_fault_at_every_step(GetParam().fault, player());
}
TEST_P(MultiAcquireFaultTable, EndsWellWithASecondFaultAtAnyLaterStep) {
    two_faults_at_any_steps(GetParam().fault, player());
}
INSTANTIATE_TEST_SUITE_P(EveryStep, MultiAcquireFaultTable, ::testing::ValuesIn(cells(kScenarios)), NameOfCell());

}  // namespace
}  // namespace zkrecipes::internal
