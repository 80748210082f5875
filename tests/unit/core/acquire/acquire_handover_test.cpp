// When the end of the predecessor grants at once, and when a check of the own node has to come first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/acquire/acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;

class AcquireHandover : public ::testing::Test {
protected:
    AcquireHandover() { w.spec.fast_handover = w.met = true; }
    std::string enter(char who, const std::string& base = "lock-") {
        return w.other_enters(std::string("_c_00000000-0000-4000-8000-00000000000") + who + "-" + base);
    }
    void settle() {
        while (w.pump()) {
        }
    }
    /// The predecessor goes; what is sent then.
    std::vector<std::string> end_of(const std::string& predecessor) {
        w.trace.clear();
        w.remove(predecessor);
        const auto at_once = w.trace;
        w.run();
        return at_once;
    }
    void expect_granted(int on_event) {
        EXPECT_EQ(w.ended, Ended::granted);
        EXPECT_EQ(w.granted_on_events, on_event);
        expect_clean(w);
    }
    AcquireWorld w;
};

TEST_F(AcquireHandover, TheSecondInTheQueueIsGrantedWithoutAnotherRequest) {
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    EXPECT_THAT(w.trace, ElementsAre("create", "list", "watch", "own"));
    EXPECT_EQ(w.next, w.fsm.node());
    EXPECT_THAT(end_of(holder), ElementsAre());
    EXPECT_EQ(w.next, "");
    EXPECT_EQ(w.answers, 1);
    expect_granted(1);
}

TEST_F(AcquireHandover, OnlyZooKeepersEventsAreGrants) {
    w.keeper = true;
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    EXPECT_THAT(w.trace, ElementsAre("create", "list", "watch"));
    EXPECT_THAT(end_of(holder), ElementsAre("renew"));
    expect_granted(0);
}

TEST_F(AcquireHandover, ALaterOneLearnsThatItIsNextWhenTheSecondBeforeItGoes) {
    const auto first = enter('a'), second = enter('b'), third = enter('c');
    w.fsm.start();
    settle();
    EXPECT_THAT(w.trace, ElementsAre("create", "list", "watch", "second"));
    EXPECT_THAT(w.watches_asked, ElementsAre(third));
    w.remove(first);
    settle();
    EXPECT_EQ(w.next, "");
    w.remove(second);
    settle();
    EXPECT_THAT(w.trace, ElementsAre("create", "list", "watch", "second", "ahead"));
    EXPECT_EQ(w.next, w.fsm.node());
    EXPECT_THAT(end_of(third), ElementsAre());
    expect_granted(1);
}

TEST_F(AcquireHandover, ASecondNodeOfItsOwnThatItSeesMeanwhileIsSweptAway) {
    const auto first = enter('a'), second = enter('b');
    w.fsm.start();
    settle();
    const auto ghost = w.fsm.node().substr(0, kIdentityChars) + "lock-" + format_sequence(w.next_sequence++);
    w.children[ghost] = {w.session, ++w.zxid};
    w.remove(first);
    settle();
    EXPECT_THAT(w.trace, ::testing::Contains("ahead"));
    EXPECT_THAT(w.reaped_nodes, ElementsAre(ghost));
    EXPECT_THAT(end_of(second), ElementsAre());
    expect_granted(1);
}

TEST_F(AcquireHandover, ASecondThatGivesUpDoesNotMakeItNext) {
    const auto first = enter('a'), second = enter('b'), third = enter('c');
    w.fsm.start();
    settle();
    w.remove(second);
    settle();
    EXPECT_EQ(w.trace.back(), "second");
    EXPECT_THAT(end_of(third), ElementsAre("renew", "list"));
    EXPECT_EQ(w.answers, 0);
    EXPECT_EQ(w.watched, first);
    EXPECT_THAT(end_of(first), ElementsAre());
    expect_granted(1);
}

TEST_F(AcquireHandover, WhoeverComesMakesItWatchItsOwnNode) {
    const auto first = enter('a'), second = enter('b');
    w.fsm.start();
    settle();
    w.remove(first);
    settle();
    enter('c');
    settle();
    enter('d');
    settle();
    EXPECT_THAT(w.trace, ElementsAre("create", "list", "watch", "second", "ahead", "own"));
    EXPECT_THAT(end_of(second), ElementsAre());
    expect_granted(1);
}

TEST_F(AcquireHandover, NothingIsKnownBeforeTheOwnNodeIsWatched) {
    const auto first = enter('a'), second = enter('b');
    w.fsm.start();
    settle();
    w.remove(first);
    settle();
    w.remove(w.fsm.node());  // the directory changes, and what has changed is not known yet …
    EXPECT_EQ(w.trace.back(), "own");
    w.remove(second);  // … when the predecessor goes
    EXPECT_EQ(w.answers, 0);
    w.run();
    EXPECT_EQ(w.created, 2);
    expect_granted(0);
}

TEST_F(AcquireHandover, AWaiterThatIsNextNoticesTheEndOfItsOwnNode) {
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    const auto node = w.fsm.node();
    w.remove(node);
    settle();
    EXPECT_EQ(w.created, 2);
    EXPECT_NE(w.fsm.node(), node);
    EXPECT_TRUE(w.fsm.is_waiting());
    EXPECT_THAT(end_of(holder), ElementsAre());
    expect_granted(1);
}

TEST_F(AcquireHandover, NamesThatAreOnTheirWayTakeThePlaceOfAnotherList) {
    const auto first = enter('a'), second = enter('b');
    w.fsm.start();
    settle();
    w.trace.clear();
    w.remove(first);
    w.remove(second);
    EXPECT_THAT(w.trace, ElementsAre("ahead"));
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("ahead"));
    expect_granted(0);
}

TEST_F(AcquireHandover, OnAnOldLeaseACheckIsSentBesideThem) {
    w.slow_lease = true;
    const auto first = enter('a'), second = enter('b');
    w.fsm.start();
    settle();
    w.trace.clear();
    w.remove(first);
    w.remove(second);
    EXPECT_THAT(w.trace, ElementsAre("ahead", "renew"));
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("ahead", "renew"));
    expect_granted(0);
}

TEST_F(AcquireHandover, NamesThatWereAskedForBeforeAnOutageGrantNothing) {
    const auto first = enter('a'), second = enter('b');
    w.fsm.start();
    settle();
    w.remove(first);
    w.remove(second);
    w.suspend();
    w.reconnect();
    w.trace.clear();
    w.run();
    EXPECT_THAT(w.trace, ::testing::Contains("renew"));
    expect_granted(0);
}

TEST_F(AcquireHandover, NamesThatShowAnotherOneBeforeItLeadToAnotherWait) {
    const auto first = enter('a'), second = enter('b'), third = enter('c');
    w.fsm.start();
    settle();
    w.remove(second);
    w.remove(third);
    settle();
    EXPECT_EQ(w.answers, 0);
    EXPECT_EQ(w.watched, first);
    EXPECT_THAT(end_of(first), ElementsAre());
    expect_granted(1);
}

TEST_F(AcquireHandover, AfterAnOutageAnEventGrantsNothing) {
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    w.suspend();
    w.reconnect();
    EXPECT_TRUE(w.fsm.is_waiting());
    EXPECT_THAT(end_of(holder), ElementsAre("renew"));
    expect_granted(0);
}

TEST_F(AcquireHandover, AnOwnNodeThatWentInAnOutageIsNotHeld) {
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    w.suspend();
    w.remove(w.fsm.node());
    w.remove(holder);
    w.run();  // what was missed is told in any order: of the predecessor first
    EXPECT_EQ(w.created, 2);
    expect_granted(0);
}

TEST_F(AcquireHandover, AnOwnNodeThatSomebodyElseHasMadeAgainIsNotReliedOn) {
    const auto holder = enter('a');
    std::string node;
    w.before_watch = [&] {
        node = w.fsm.node();
        w.children[node] = {w.kOther, ++w.zxid};
    };
    w.fsm.start();
    settle();
    EXPECT_EQ(w.created, 2);
    end_of(holder);
    EXPECT_NE(w.ended, Ended::granted) << "the stranger's node is before the new one";
    w.remove(node);
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
}

TEST_F(AcquireHandover, AnOwnNodeThatWentInAnOutageIsMadeAnew) {
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    w.suspend();
    const auto node = w.fsm.node();
    w.reconnect();
    w.remove(node);  // as it is told after the reconnect
    settle();
    EXPECT_EQ(w.created, 2);
    EXPECT_NE(w.fsm.node(), node);
    EXPECT_TRUE(w.fsm.is_waiting());
    end_of(holder);
    EXPECT_EQ(w.ended, Ended::granted);
}

TEST_F(AcquireHandover, TheOwnSessionIsNotHandedOverToByAnEvent) {
    w.owner_of_others = w.session;
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    EXPECT_THAT(w.trace, ElementsAre("create", "list", "watch"));
    w.trace.clear();
    w.remove(holder);
    EXPECT_THAT(w.trace, ElementsAre("renew"));
    settle();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.granted_on_events, 0);
}

TEST_F(AcquireHandover, NorIsItWhenAnotherSessionWasBeforeIt) {
    const auto first = enter('a');
    w.owner_of_others = w.session;
    const auto holder = enter('b');
    w.fsm.start();
    settle();
    w.remove(first);
    settle();
    EXPECT_EQ(w.next, "") << "it was not made the next";
    EXPECT_THAT(end_of(holder), ElementsAre("renew", "list"));
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.granted_on_events, 0);
}

TEST_F(AcquireHandover, AnOldLeaseCostsACheck) {
    w.slow_lease = true;
    const auto holder = enter('a');
    w.fsm.start();
    settle();
    EXPECT_THAT(end_of(holder), ElementsAre("renew"));
    expect_granted(0);
}

TEST_F(AcquireHandover, WithoutRoomForTheWatchItListsAsBefore) {
    const auto first = enter('a'), second = enter('b');
    w.fsm.start();
    settle();
    w.watch_room = false;
    w.remove(first);
    EXPECT_EQ(w.trace.back(), "second");
    EXPECT_THAT(end_of(second), ElementsAre("renew", "list"));
    expect_granted(0);
}

TEST_F(AcquireHandover, AWriterBeforeThePredecessorMayTurnIntoAReader) {
    w.rule = PredecessorRule({{"lock-", true}, {"__WRIT__", true, PredecessorRule::Shrinking::no}, {"__READ__", true}});
    const auto writer = enter('a', "__WRIT__");
    const auto mutex = enter('b');
    w.fsm.start();
    settle();
    const auto share = w.other_downgrades(writer);
    settle();
    EXPECT_EQ(w.trace.back(), "second");
    EXPECT_THAT(end_of(mutex), ElementsAre("renew", "list"));
    EXPECT_EQ(w.answers, 0);
    EXPECT_THAT(w.watched, share);
    w.remove(share);
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

}  // namespace
}  // namespace zkrecipes::internal
