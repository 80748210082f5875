// A double barrier: what a member asks for, in every order of events, and a fault at every request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/node/double_barrier_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using Where = BarrierPeer::Where;
using What = BarrierWait::What;

// ---- which member a leaving one waits for -------------------------------------------------------------------------

void expect(const std::vector<std::string>& names, const std::string& own, What what, const std::string& name = "") {
    const auto wait = next_to_wait_for(names, own);
    EXPECT_EQ(wait.what, what);
    EXPECT_EQ(wait.name, name);
}

TEST(DoubleBarrierRuleTest, TheFirstByNameStaysUntilAllHaveGone) {
    expect({"c", "ready", "a", "b"}, "a", What::stay_for, "c");
    expect({"a", "b", "ready"}, "a", What::stay_for, "b");
    expect({"a", "ready"}, "a", What::all_gone);
}

TEST(DoubleBarrierRuleTest, TheOthersGoAndWaitForTheFirst) {
    expect({"c", "ready", "a", "b"}, "b", What::leave_then, "a");
    expect({"c", "ready", "a", "b"}, "c", What::leave_then, "a");
    expect({"c", "ready", "a"}, "", What::wait_for, "a");
    expect({"c"}, "b", What::wait_for, "c");
    expect({"ready"}, "", What::all_gone);
    expect({}, "b", What::all_gone);
}

// ---- one member ---------------------------------------------------------------------------------------------------

/// Member 0 is ours. The others are nodes that the tests make and remove.
class DoubleBarrierFsmTest : public ::testing::Test {
protected:
    static constexpr std::int64_t kTheirs = 99;

    DoubleBarrierFsmTest() { w.goes_on = false; }
    ~DoubleBarrierFsmTest() override {
        w.end_session(kTheirs);
        w.stop_all();
    }

    void enter() {
        us.enter();
        w.run();
    }
    void leave() {
        us.sent.clear();
        us.leave();
        w.run();
    }
    /// So that it is before, or after, our node by name.
    void others(const char* name) {
        w.make(name, kTheirs);
        w.run();
    }
    void gone(const char* name) {
        w.remove(name);
        w.run();
    }
    /// Goes on until this was sent, and not yet executed.
    void until_sent(const std::string& what) {
        while (us.busy() && !us.sent.back().starts_with(what)) {
            us.outbox.empty() ? us.deliver_next() : us.execute_next();
        }
        ASSERT_THAT(us.sent.back(), ::testing::StartsWith(what));
    }
    /// Inside, with one other member of this name.
    void be_inside_with(const char* name) {
        w.make(name, kTheirs);
        enter();
        ASSERT_EQ(us.where, Where::inside);
    }

    BarrierWorld w{1, 2, 1};
    BarrierPeer& us = w.peer(0);
};

TEST_F(DoubleBarrierFsmTest, TheLastOneToComeMakesReadyInOneStepWithTheCheckOfAll) {
    others("A");
    enter();
    EXPECT_EQ(us.where, Where::inside);
    EXPECT_THAT(us.sent, ElementsAre("watch ready", "create", "list", "make ready A " + us.name));
}

TEST_F(DoubleBarrierFsmTest, TheOthersWaitForReadyWithAWatchOnTheirNode) {
    enter();
    EXPECT_THAT(us.sent, ElementsAre("watch ready", "create", "list", "watch " + us.name));
    EXPECT_EQ(us.where, Where::entering);
    us.sent.clear();
    others("A");
    others("ready");
    EXPECT_EQ(us.where, Where::inside);
    EXPECT_THAT(us.sent, IsEmpty());
}

TEST_F(DoubleBarrierFsmTest, AReadyOfMembersWhoAreStillThereLetsIn) {
    others("A");
    others("ready");
    enter();
    EXPECT_EQ(us.where, Where::inside);
    EXPECT_THAT(us.sent, ElementsAre("watch ready", "create", "list", "stat A"));
}

TEST_F(DoubleBarrierFsmTest, AReadyOfAFormerRoundIsDeletedAndLetsNobodyIn) {
    others("ready");
    enter();
    EXPECT_EQ(us.where, Where::entering);
    EXPECT_THAT(us.sent, ElementsAre("watch ready", "create", "list", "stat " + us.name, "set ready", "delete ready",
                                     "watch ready", "create", "list", "watch " + us.name));
    EXPECT_FALSE(w.nodes.contains("ready"));
}

TEST_F(DoubleBarrierFsmTest, AReadyThatTookThePlaceOfTheOldOneIsNotDeleted) {
    w.make("ready", 0);
    us.enter();
    until_sent("set ready");
    w.remove("ready");
    w.make("A", kTheirs);
    w.make("ready", 0);
    w.run();
    EXPECT_THAT(us.sent, Not(Contains("delete ready")));
    EXPECT_EQ(us.where, Where::inside) << "it was there when that one was made";
}

TEST_F(DoubleBarrierFsmTest, AMemberThatHasGoneSinceTheListIsNotCounted) {
    w.make("A", kTheirs);
    us.enter();
    until_sent("make ready");
    gone("A");
    EXPECT_EQ(us.where, Where::entering);
    EXPECT_FALSE(w.nodes.contains("ready"));
}

TEST_F(DoubleBarrierFsmTest, ANodeThatSomebodyDeletesIsMadeAgain) {
    us.enter();
    until_sent("watch " + us.name);
    gone(us.name.c_str());
    EXPECT_TRUE(w.nodes.contains(us.name));
    for (int i = 0; i < 20; ++i) {
        w.directory = false;  // with the node, each time
        gone(us.name.c_str());
    }
    EXPECT_TRUE(w.nodes.contains(us.name));
    EXPECT_EQ(us.where, Where::entering);
}

TEST_F(DoubleBarrierFsmTest, ItDoesNotEnterWithoutItsNode) {
    w.make("A", kTheirs);
    w.make("B", kTheirs);
    us.enter();
    until_sent("list");
    gone(us.name.c_str());
    EXPECT_EQ(us.where, Where::inside);
    EXPECT_TRUE(w.nodes.contains(us.name));
}

TEST_F(DoubleBarrierFsmTest, ReadyThatIsMadeBeforeItsNodeIsThereIsNoNews) {
    us.enter();
    us.execute_next();  // the watch
    w.make("ready", 0);
    w.run();
    EXPECT_EQ(us.where, Where::entering) << "nobody was there when it was made";
}

TEST_F(DoubleBarrierFsmTest, AMissingDirectoryIsMadeUnlessTheOptionsForbidIt) {
    w.directory = false;
    enter();
    EXPECT_THAT(us.sent, ElementsAre("watch ready", "create", "make directory", "create", "list", "watch " + us.name));
    w.stop_all();
    w.directory = w.create_parents = false;
    enter();
    EXPECT_EQ(us.error, Errc::no_parent);
    w.create_parents = w.directory_vanishes = true;
    us.sent.clear();
    enter();
    EXPECT_EQ(us.error, Errc::no_parent);
    EXPECT_EQ(std::ranges::count(us.sent, "make directory"), 8);
    w.directory = true;
}

TEST_F(DoubleBarrierFsmTest, OverTheBudgetsAndWithoutPermissionItFails) {
    w.room = false;
    enter();
    EXPECT_EQ(us.error, Errc::budget_exceeded);
    EXPECT_THAT(us.sent, IsEmpty());
    w.room = true;
    w.watch_room = false;
    enter();
    EXPECT_EQ(us.error, Errc::budget_exceeded);
    EXPECT_THAT(us.sent, IsEmpty());
    w.watch_room = true;
    w.rc_of_create = Rc::no_children_for_ephemerals;
    enter();
    EXPECT_EQ(us.error, Errc::bad_path);
}

TEST_F(DoubleBarrierFsmTest, AnAttemptThatMayNotWaitDoesNot) {
    us.once = true;
    enter();
    EXPECT_TRUE(us.timed_out);
    us.once = us.timed_out = false;
    for (const char* name : {"A", "z"}) {
        be_inside_with(name);
        us.once = true;
        leave();
        EXPECT_TRUE(us.timed_out);
        EXPECT_FALSE(w.nodes.contains(us.name));
        us.once = us.timed_out = false;
        gone(name);
        gone("ready");
    }
}

TEST_F(DoubleBarrierFsmTest, TheFirstByNameLeavesLastAndTakesReadyAlong) {
    be_inside_with("z");
    leave();
    EXPECT_THAT(us.sent, ElementsAre("list", "watch z"));
    gone("z");
    EXPECT_EQ(us.where, Where::out);
    EXPECT_THAT(us.sent, ElementsAre("list", "watch z", "list", "delete both"));
    EXPECT_THAT(w.nodes, IsEmpty());
}

TEST_F(DoubleBarrierFsmTest, TheOthersDeleteTheirNodesAndWaitForTheFirst) {
    be_inside_with("A");
    leave();
    EXPECT_THAT(us.sent, ElementsAre("list", "delete", "watch A"));
    gone("ready");
    EXPECT_EQ(us.where, Where::leaving);
    gone("A");
    EXPECT_EQ(us.where, Where::out);
    EXPECT_THAT(us.sent, ElementsAre("list", "delete", "watch A", "list"));
}

TEST_F(DoubleBarrierFsmTest, AReadyThatTheLastOneHasNotDeletedIsDeleted) {
    be_inside_with("A");
    leave();
    gone("A");  // its session has ended
    EXPECT_THAT(us.sent,
                ElementsAre("list", "delete", "watch A", "list", "stat ready", "list", "set ready", "delete ready"));
    EXPECT_THAT(w.nodes, IsEmpty());
}

TEST_F(DoubleBarrierFsmTest, AReadyThatMayBeThatOfTheNextRoundIsLeft) {
    be_inside_with("A");
    leave();
    w.remove("A");
    until_sent("stat ready");
    others("b-of-the-next-round");
    EXPECT_EQ(us.where, Where::out);
    EXPECT_TRUE(w.nodes.contains("ready"));
    gone("b-of-the-next-round");
    gone("ready");

    be_inside_with("z");
    leave();
    w.make("b-of-the-next-round", kTheirs);
    gone("z");
    EXPECT_EQ(us.where, Where::out);
    EXPECT_TRUE(w.nodes.contains("ready"));
}

TEST_F(DoubleBarrierFsmTest, TheLastOneLooksAgainIfItsNodeAndReadyWereNotBothThere) {
    be_inside_with("A");
    w.remove("A");
    us.sent.clear();
    us.leave();
    until_sent("delete both");
    gone(us.name.c_str());
    EXPECT_THAT(us.sent, ElementsAre("list", "delete both", "delete", "list", "stat ready", "list", "set ready",
                                     "delete ready"));
    EXPECT_EQ(us.where, Where::out);
    EXPECT_THAT(w.nodes, IsEmpty());
}

TEST_F(DoubleBarrierFsmTest, MembersOfTheNextRoundAreNotWaitedFor) {
    be_inside_with("A");
    leave();
    w.make("b-of-the-next-round", kTheirs);
    gone("A");
    EXPECT_EQ(us.where, Where::out);
    EXPECT_TRUE(w.nodes.contains("ready")) << "it may be that of the next round";
}

TEST_F(DoubleBarrierFsmTest, AMemberThatComesAgainHasLeft) {
    be_inside_with("A");
    leave();
    w.remove("A");
    w.make("A", kTheirs);
    w.run();
    EXPECT_EQ(us.where, Where::out);
}

TEST_F(DoubleBarrierFsmTest, WhoseNodeWasDeletedInsideDoesNotWait) {
    be_inside_with("A");
    w.remove(us.name);
    leave();
    EXPECT_EQ(us.error, Errc::lock_lost);
    EXPECT_THAT(us.sent, ElementsAre("list"));
    gone("A");
    gone("ready");
    be_inside_with("A");
    us.lose_session();
    leave();
    EXPECT_EQ(us.error, Errc::session_lost);
}

// ---- the fault table ----------------------------------------------------------------------------------------------

struct Scenario {
    const char* name;
    int peers;
    std::size_t members;
    void (*prepare)(BarrierWorld&);
};

constexpr Scenario kScenarios[] = {
    {"One", 1, 1, [](BarrierWorld&) {}},
    {"Two", 2, 2, [](BarrierWorld&) {}},
    {"Three", 3, 3, [](BarrierWorld&) {}},
    {"OneMoreThanNeeded", 3, 2, [](BarrierWorld&) {}},
    {"DirectoryMissing", 2, 2, [](BarrierWorld& w) { w.directory = false; }},
    {"ReadyOfAFormerRound", 2, 2, [](BarrierWorld& w) { w.make("ready", 0); }},
};

/// Each member enters once and leaves once. What happens to the first one must not let anybody in or out too early,
/// keep the others waiting or leave anything behind.
class DoubleBarrierFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {
protected:
    int play(const PlannedFaults& plans, std::uint32_t seed, bool lingering = false) {
        const Scenario& scenario = *GetParam().scenario;
        BarrierWorld w(scenario.peers, scenario.members, seed);
        scenario.prepare(w);
        w.lingering = lingering;
        w.plans = plans;
        w.peer(0).faulty = true;
        std::string cell = "seed " + std::to_string(seed) + (lingering ? " lingering" : "");
        bool ends_session = false, gives_up = false;
        for (const auto& plan : plans) {
            cell += " " + std::to_string(plan.at) + ":" + name_of(plan.fault);
            ends_session = ends_session || plan.fault == Fault::expired_before || plan.fault == Fault::expired_after;
            gives_up = gives_up || ends_the_call(plan.fault);
        }
        w.run();
        for (const auto& step : w.peer(0).sent) cell += " [" + step + "]";
        SCOPED_TRACE(cell);
        w.check_at_rest();
        const int executed = w.executed;
        for (const auto& peer : w.peers) {
            if (plans.empty() && scenario.peers == static_cast<int>(scenario.members)) {
                EXPECT_EQ(peer->where, Where::out);
            }
            EXPECT_TRUE(!peer->error || (ends_session && *peer->error == Errc::session_lost));
        }
        w.stop_all();
        // A member that gives up takes its own node away, and `ready` only if it leaves as the last one.
        if (!gives_up) {
            EXPECT_THAT(w.nodes, IsEmpty());
        }
        return executed;
    }
};

TEST_P(DoubleBarrierFaultTable, OneFaultAtEveryStep) {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        const int steps = play({}, seed);
        for (int at = 0; at < steps; ++at) {
            for (const bool lingering : {false, true}) play({{at, GetParam().fault}}, seed, lingering);
        }
    }
}
TEST_P(DoubleBarrierFaultTable, TwoFaults) {
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
        const int steps = play({}, seed);
        for (int at = 0; at < steps; ++at) {
            const int all = play({{at, GetParam().fault}}, seed);
            for (int second = at + 1; second < all; ++second) {
                for (const Fault other : kFaults) play({{at, GetParam().fault}, {second, other}}, seed);
            }
        }
    }
}
INSTANTIATE_TEST_SUITE_P(DoubleBarrier, DoubleBarrierFaultTable, ::testing::ValuesIn(cells(kScenarios)), NameOfCell());

}  // namespace
}  // namespace zkrecipes::internal
