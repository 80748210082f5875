#include "core/acquire/acquire_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/acquire/acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AcquireFsmTest, UncontendedIsOneCreateAndOneReadBackToBack) {
    AcquireWorld w;
    w.fsm.start();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists"));  // both sent before anything was answered
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists"));
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.holds.at(0).second, w.children.begin()->second.czxid);
    expect_clean(w);
}

TEST(AcquireFsmTest, ALeaseThatIsOldAlreadyCostsOneCheck) {
    AcquireWorld w;
    w.slow_lease = true;
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "renew"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, TryOnAHeldLockIsOneReadAndNoWrite) {
    AcquireWorld w(Patience::try_once);
    w.other_enters();
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("list"));
    EXPECT_EQ(w.writes, 0);
    EXPECT_EQ(w.ended, Ended::busy);
    expect_clean(w);
}

TEST(AcquireFsmTest, TryOnAFreeLockIsTwoRoundTrips) {
    AcquireWorld w(Patience::try_once);
    w.fsm.start();
    EXPECT_THAT(w.trace, ElementsAre("list"));
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("list", "create", "exists"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, TryWithoutAConnectionAnswersAtOnce) {
    AcquireWorld w(Patience::try_once);
    w.is_connected = false;
    w.fsm.start();
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(AcquireFsmTest, TryThatLosesTheRaceTakesItsNodeAway) {
    AcquireWorld w(Patience::try_once);
    w.fsm.start();
    w.pump();          // the list: nobody
    w.other_enters();  // faster than our create
    w.run();
    EXPECT_EQ(w.ended, Ended::busy);
    EXPECT_EQ(w.created, 1);
    expect_clean(w);
}

TEST(AcquireFsmTest, OnlyThePredecessorIsWatchedAndItsEndIsFollowedByOneCheckOfTheOwnNode) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.fsm.start();
    w.script = {[&] { w.remove(holder); }};
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "list", "watch", "renew"));
    EXPECT_THAT(w.watches_asked, ElementsAre(holder));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, WhoeverMetAQueueLastTimeAsksForTheNamesAtOnce) {
    AcquireWorld w;
    w.spec.fast_handover = w.met = true;
    const auto holder = w.other_enters();
    w.fsm.start();
    EXPECT_THAT(w.trace, ElementsAre("create", "list"));  // both sent before anything was answered
    w.script = {[&] { w.remove(holder); }};
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "list", "watch", "own"));
    EXPECT_TRUE(w.met);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, AQueueThatIsGoneIsForgotten) {
    AcquireWorld w;
    w.spec.fast_handover = w.met = true;
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "list"));
    EXPECT_FALSE(w.met);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, WhenThePredecessorWasNotTheHeadItsEndIsNoGrant) {  // H21
    AcquireWorld w;
    const auto holder = w.other_enters();
    const auto middle = w.other_enters("_c_00000000-0000-4000-8000-000000000002-lock-");
    w.fsm.start();
    w.script = {[&] { w.remove(middle); },
                [&] {
                    EXPECT_EQ(w.answers, 0);
                    w.remove(holder);
                }};
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "list", "watch", "renew", "list", "watch", "renew"));
    EXPECT_THAT(w.watches_asked, ElementsAre(middle, holder));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, WhoCameLateToALongQueueIsGrantedInOneRoundTripWhenItHasMovedOn) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    const auto middle = w.other_enters("_c_00000000-0000-4000-8000-000000000002-lock-");
    w.fsm.start();
    while (w.pump()) {
    }
    w.remove(holder);
    w.trace.clear();
    w.remove(middle);
    EXPECT_THAT(w.trace, ElementsAre("renew", "list"));  // both sent before anything was answered
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("renew", "list"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, TheListAndTheCheckMayBeAnsweredInAnyOrder) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    const auto middle = w.other_enters("_c_00000000-0000-4000-8000-000000000002-lock-");
    w.fsm.start();
    while (w.pump()) {
    }
    w.remove(holder);
    w.remove(middle);  // tickets: create 1, list 2, watch 3, check and list 4
    w.lease_fresh = true;
    w.fsm.on_children(4, Rc::ok, {w.fsm.node()});
    EXPECT_EQ(w.answers, 0);  // not yet
    w.fsm.on_lease_renewed(4, Rc::ok);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.answers, 1);
}

TEST(AcquireFsmTest, APredecessorThatVanishesBeforeItsWatchLeavesNoWatchBehind) {  // H15
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.before_watch = [&] { w.remove(holder); };
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "list", "watch", "renew"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, AChangeOfThePredecessorsDataIsNotItsEnd) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.fsm.start();
    while (w.pump()) {
    }
    ASSERT_TRUE(w.fsm.is_waiting());
    w.fsm.on_watch_fired(4, WatchEventType::changed);  // tickets: create 1, list 2, watch 3
    EXPECT_TRUE(w.fsm.is_waiting());
    w.fsm.on_watch_fired(3, WatchEventType::changed);
    w.run();
    EXPECT_TRUE(w.fsm.is_waiting());
    EXPECT_THAT(w.watches_asked, ElementsAre(holder, holder));
}

TEST(AcquireFsmTest, AMissingDirectoryIsMadeAndTheCreateRepeated) {  // H8
    AcquireWorld w;
    w.exists = false;
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "mkdir", "create", "exists"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, ADirectoryReapedRightAfterItWasMadeIsMadeAgain) {  // H9
    AcquireWorld w;
    w.exists = false;
    w.reap_directory = 3;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, ADirectoryThatAlwaysVanishesIsAnErrorInTheEnd) {
    AcquireWorld w;
    w.exists = false;
    w.reap_directory = 1'000'000;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::failed);
    EXPECT_EQ(w.errc, Errc::no_parent);
    expect_clean(w);
}

TEST(AcquireFsmTest, AMissingDirectoryIsAnErrorWhereItMustNotBeMade) {
    AcquireWorld w;
    w.exists = false;
    w.spec.create_parents = false;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.errc, Errc::no_parent);
    EXPECT_FALSE(w.exists);
    expect_clean(w);
}

TEST(AcquireFsmTest, WhoeverGivesUpWhileItWaitsTakesItsWatchAway) {  // H17
    AcquireWorld w;
    w.other_enters();
    w.fsm.start();
    w.run();
    EXPECT_NE(w.watched, "");
    w.fsm.stop();
    EXPECT_EQ(w.watched, "");
    w.flush_reaper();
    expect_clean(w);
}

TEST(AcquireFsmTest, AnOwnNodeThatWasDeletedGoesToTheBackOfTheQueueWithANewIdentity) {  // H46
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.fsm.start();
    w.run();
    const auto first = w.fsm.node();
    w.remove(first);
    const auto late = w.other_enters("_c_00000000-0000-4000-8000-000000000003-lock-");
    w.script = {[&] { w.remove(holder); },
                [&] {
                    EXPECT_EQ(w.answers, 0);
                    w.remove(late);
                }};
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_NE(w.fsm.node().substr(0, kIdentityChars), first.substr(0, kIdentityChars));
    expect_clean(w);
}

TEST(AcquireFsmTest, ADirectoryEmptiedByAnOperatorGrantsNobodyWhoIsNotInIt) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.fsm.start();
    w.run();
    w.children.erase(w.fsm.node());  // deleteall: our node first …
    const auto newcomer = w.other_enters("_c_00000000-0000-4000-8000-000000000004-lock-");
    w.remove(holder);  // … then the one that we watch
    w.run();
    EXPECT_TRUE(w.fsm.is_waiting());
    EXPECT_EQ(w.watched, newcomer);
}

TEST(AcquireFsmTest, ForeignChildrenAreNotWaitedFor) {  // H70
    AcquireWorld w;
    w.children["!junk"] = {AcquireWorld::kOther, 5};
    w.children["junk-0000000000"] = {AcquireWorld::kOther, 6};
    w.next_sequence = 5;  // that it is not waited for is not because it came later
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "list"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, AnotherNodeInPlaceOfOursIsNotMistakenForOurs) {
    AcquireWorld w;
    w.fsm.start();
    w.pump();                  // our create
    w.remove(w.mine().at(0));  // deleted before the read came to the server …
    w.other_enters();          // … which sees one child
    w.run();
    EXPECT_TRUE(w.fsm.is_waiting());
    EXPECT_THAT(w.holds, IsEmpty());
}

TEST(AcquireFsmTest, WhereADeletionLeavesNoTraceInThePzxidTheNamesDecide) {
    AcquireWorld w;
    w.keeper = true;
    w.other_enters();  // holds
    w.fsm.start();
    EXPECT_THAT(w.trace, ElementsAre("create", "list"));
    w.pump();                  // our create
    w.remove(w.mine().at(0));  // deleted before the read came to the server, which sees one child and our create
    w.run();
    EXPECT_TRUE(w.fsm.is_waiting());
    EXPECT_THAT(w.holds, IsEmpty());

    AcquireWorld alone;  // no further request
    alone.keeper = true;
    alone.fsm.start();
    alone.run();
    EXPECT_THAT(alone.trace, ElementsAre("create", "list"));
    EXPECT_EQ(alone.ended, Ended::granted);
    expect_clean(alone);
}

TEST(AcquireFsmTest, NoPermissionIsFinalAndTakesTheNodeAway) {  // H13
    AcquireWorld w;
    w.create_answer = Rc::no_auth;
    w.fsm.start();
    w.pump();
    EXPECT_EQ(w.errc, Errc::no_permission);
    EXPECT_EQ(w.answers, 1);

    AcquireWorld reader;  // create allowed, but not to read the directory
    reader.other_enters();
    reader.list_answer = Rc::no_auth;
    reader.fsm.start();
    reader.run();
    EXPECT_EQ(reader.errc, Errc::no_permission);
    expect_clean(reader);
}

TEST(AcquireFsmTest, ACodeThatIsNotKnownEndsTheCallAndTheNodeThatMayHaveBeenMade) {
    AcquireWorld w;
    w.create_answer = static_cast<Rc>(-126);
    w.fsm.start();
    w.pump();
    EXPECT_EQ(w.errc, Errc::protocol);
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.reaped_identities.size(), 1u);
}

TEST(AcquireFsmTest, NumbersNearTheEndAreRefusedAndNotUsed) {  // H11
    for (const std::int32_t sequence : {kSequenceLimit, 2'147'483'647, -2'147'483'647, -5}) {
        AcquireWorld w;
        w.next_sequence = sequence;
        w.fsm.start();
        w.run();
        EXPECT_EQ(w.errc, Errc::sequence_exhausted) << sequence;
        expect_clean(w);
    }
    AcquireWorld w;
    w.next_sequence = kSequenceLimit - 1;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.warnings, 1);
}

TEST(AcquireFsmTest, ANumberNearTheEndIsRefusedAlsoWhenTheAnswerWasLost) {  // H1, H11
    for (const std::int32_t sequence : {kSequenceLimit, 2'147'483'647, -5}) {
        AcquireWorld w;
        w.next_sequence = sequence;
        w.plans = {{0, Fault::lost_after}};
        w.fsm.start();
        w.run();
        EXPECT_EQ(w.errc, Errc::sequence_exhausted) << sequence;
        expect_clean(w);
    }
}

TEST(AcquireFsmTest, BudgetsAreErrorsThatLeaveNothing) {
    AcquireWorld nodes;
    nodes.room = false;
    nodes.fsm.start();
    nodes.run();
    EXPECT_EQ(nodes.errc, Errc::budget_exceeded);
    expect_clean(nodes);

    AcquireWorld watches;
    watches.watch_room = false;
    watches.other_enters();
    watches.fsm.start();
    watches.run();
    EXPECT_EQ(watches.errc, Errc::budget_exceeded);
    expect_clean(watches);
}

TEST(AcquireFsmTest, GivingUpWhileTheCreateIsOnItsWayAnswersAtOnceAndStaysBehind) {  // H6, H51
    AcquireWorld w;
    w.fsm.start();
    w.fsm.stop();
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.ended, Ended::stopped);
    EXPECT_EQ(w.finishes, 0);
    w.fsm.deadline();  // H7: a second reason changes nothing
    w.run();
    expect_clean(w);
    EXPECT_EQ(w.reaped_nodes.size(), 1u);
}

TEST(AcquireFsmTest, AnUnknownCreateGoesToTheCleanerAtTheDeadline) {
    AcquireWorld w;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.fsm.deadline();
    w.run();
    EXPECT_EQ(w.reaped_identities.size(), 1u);
    expect_clean(w);
}

}  // namespace
}  // namespace zkrecipes::internal
