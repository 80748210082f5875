// Every step of taking leases × everything that can go wrong at it, generated: whatever happens, there is exactly one
// answer, never more leases than there are, all that were wanted or none, and nothing left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fault_table.hpp"
#include "unit/core/acquire/semaphore_world.hpp"

namespace zkrecipes::internal {
namespace {

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
    {"BehindTwoListsWait", Patience::wait, 5, 3,
     [](SemaphoreWorld& w) {
         w.lists_wait = true;
         const auto a = enter(w, 'a'), b = enter(w, 'b');
         w.script = {[&w, a] { w.other_takes(a); }, [&w, b] { w.other_takes(b); }};
     }},
    {"NamesBehindListsWait", Patience::wait, 2, 1, [](SemaphoreWorld& w) { w.keeper = w.lists_wait = true; }},
    {"ReadRefused", Patience::wait, 2, 1, [](SemaphoreWorld& w) { w.read_refused = true; }},
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
    {"DirectoryMadeAnewMeanwhile", Patience::wait, 3, 2,
     [](SemaphoreWorld& w) {
         w.before_take = [&w] { w.make_anew(3); };
         w.script = {[&w] { w.flush_reaper(); }};  // of three leases, two are still those that were given back
     }},
    {"DirectoryMadeAnewUnguarded", Patience::wait, 3, 2,
     [](SemaphoreWorld& w) {
         w.guard_room = false;
         w.before_take = [&w] { w.make_anew(3); };
         w.script = {[&w] { w.flush_reaper(); }};
     }},
    {"PlaceDeletedMeanwhile", Patience::wait, 1, 1,
     [](SemaphoreWorld& w) {
         w.before_take = [&w] {
             for (const auto& name : w.mine()) w.remove(name);
         };
     }},
    {"LeaseDeletedAtOnce", Patience::wait, 2, 2,
     [](SemaphoreWorld& w) {
         w.terms.writable = false;
         w.before_lease_read = [&w] {
             w.remove_lease(w.my_leases().front());
             w.others_came = true;  // and the other one of its own is in the way until it is deleted
         };
     }},
    {"DataForbidden", Patience::wait, 3, 2,
     [](SemaphoreWorld& w) {
         w.data_answer = Rc::no_auth;
         const auto a = w.other_holds(), b = w.other_holds();
         w.script = {[&w, a] { w.remove_lease(a); }};
     }},
    {"OldLease", Patience::wait, 2, 2, [](SemaphoreWorld& w) { w.slow_lease = true; }},
    {"TryFree", Patience::try_once, 2, 2, [](SemaphoreWorld&) {}},
    {"TryFreeListWaits", Patience::try_once, 2, 2, [](SemaphoreWorld& w) { w.lists_wait = true; }},
    {"TryCold", Patience::try_once, 2, 2, [](SemaphoreWorld& w) { w.exists = w.leases_exist = false; }},
    {"TryTooFewBusy", Patience::try_once, 2, 2, [](SemaphoreWorld& w) { w.other_holds(); }},
    {"TryQueueBusy", Patience::try_once, 2, 1, [](SemaphoreWorld& w) { enter(w, 'a'); }},
};

/// Runs one cell of the table. How many requests the run took.
int play(const Scenario& scenario, const PlannedFaults& plans, const Variant& variant) {
    SemaphoreWorld w(scenario.patience, scenario.limit, scenario.wanted);
    return play_cell(w, scenario, plans, variant, [&scenario](SemaphoreWorld& world) {
        EXPECT_FALSE(world.double_grant);
        EXPECT_FALSE(world.too_many);
        EXPECT_FALSE(world.watching);
        EXPECT_EQ(world.watched, "");
        EXPECT_THAT(world.mine(), ::testing::IsEmpty());  // whoever has leases has left the queue
        if (world.ended == Ended::granted) {
            EXPECT_EQ(world.holds.size(), 1u);
            EXPECT_GE(world.left, 1);
            EXPECT_EQ(std::ssize(world.held), scenario.wanted);
            const bool deleted = std::string(scenario.name) == "LeaseDeletedAtOnce" && !world.before_lease_read;
            // Deleted after the grant had been earned, it is the hold's business to notice.
            if (!deleted || world.uuids > 1) {
                EXPECT_THAT(world.my_leases(), ::testing::UnorderedElementsAreArray(world.held));
            }
        } else {
            EXPECT_THAT(world.my_leases(), ::testing::IsEmpty());
            EXPECT_THAT(world.holds, ::testing::IsEmpty());
        }
    });
}

class SemaphoreFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {
protected:
    static auto player() {
        return [&scenario = *GetParam().scenario](const PlannedFaults& plans, const Variant& variant) {
            return play(scenario, plans, variant);
        };
    }
};

TEST_P(SemaphoreFaultTable, EndsWithOneAnswerAndLeavesNothing) { one_fault_at_every_step(GetParam().fault, player()); }
TEST_P(SemaphoreFaultTable, EndsWellWithASecondFaultAtAnyLaterStep) {
    two_faults_at_any_steps(GetParam().fault, player());
}
INSTANTIATE_TEST_SUITE_P(EveryStep, SemaphoreFaultTable, ::testing::ValuesIn(cells(kScenarios)), NameOfCell());

}  // namespace
}  // namespace zkrecipes::internal
