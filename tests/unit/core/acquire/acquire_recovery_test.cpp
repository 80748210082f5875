// What an acquire does after a lost answer, an outage, or the loss of its session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/acquire/acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AcquireFsmTest, AnUnknownCreateIsAdoptedInTheSameSession) {  // H1
    AcquireWorld w;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "sync", "list", "look", "list", "renew"));
    EXPECT_EQ(w.created, 1);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, AfterABreakOfTheConnectionTheOwnCreateIsNoLeaseAnyMore) {
    AcquireWorld w;
    w.plans = {{1, Fault::lost_before}};
    w.fsm.start();
    w.run();
    EXPECT_TRUE(w.lease_fresh);
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "list", "renew"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, AnUnknownCreateThatDidNotHappenIsRepeated) {
    AcquireWorld w;
    w.plans = {{0, Fault::lost_before}};
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "sync", "list", "create", "exists"));
    EXPECT_EQ(w.created, 1);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, ACreateThatHappensAfterTheSyncAfterAllIsSweptAway) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.plans = {{0, Fault::lost_before}};
    w.fsm.start();
    while (w.created == 0) w.pump();
    // The first create, of which the servers had said that it did not happen, happens.
    const auto ghost = w.mine().at(0).substr(0, kIdentityChars) + "lock-" + format_sequence(w.next_sequence++);
    w.children[ghost] = {w.session, ++w.zxid};
    w.script = {[&] { w.remove(holder); }};
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_THAT(w.reaped_nodes, ElementsAre(ghost));
    expect_clean(w);
}

TEST(AcquireFsmTest, ANodeOfTheFormerSessionIsNeverAdopted) {  // H3
    AcquireWorld w;
    w.lingering = true;
    w.plans = {{0, Fault::expired_after}};
    w.fsm.start();
    w.script = {[&] {
        EXPECT_EQ(w.answers, 0);
        EXPECT_EQ(w.mine().size(), 2u);
        w.delete_nodes_of(1);
    }};
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.children.at(w.holds.at(0).first).owner, 2);
    expect_clean(w);
}

TEST(AcquireFsmTest, ANodeFoundByItsIdentityButOwnedByAnotherSessionIsDeletedNotAdopted) {  // H3
    AcquireWorld w;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    while (w.trace.back() != "look") ASSERT_TRUE(w.pump());
    const auto foreign = w.mine().at(0);
    w.children[foreign].owner = 99;
    w.script = {[&] { w.delete_nodes_of(99); }};
    w.run();
    EXPECT_THAT(w.reaped_nodes, ElementsAre(foreign));
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_NE(w.fsm.node(), foreign);
    expect_clean(w);
}

TEST(AcquireFsmTest, AStaleAnswerDoesNotTakeThePlaceOfTheOneThatIsAwaited) {  // H5
    AcquireWorld w;
    w.fsm.start();
    w.expire();
    while (w.trace.size() < 4) ASSERT_TRUE(w.pump());  // the create of the new session is on its way
    NodeStat stat;
    stat.ephemeral_owner = w.session;
    w.fsm.on_created(1, Rc::ok, "/l/_c_stale-lock-0000000000", stat, w.now());
    EXPECT_EQ(w.fsm.node(), "");
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, ANewIncarnationIsNoticedEvenIfNobodyTold) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.fsm.start();
    while (w.pump()) {
    }
    w.suspend();
    ++w.session;
    w.script = {[&] { w.remove(holder); }, [&] { w.delete_nodes_of(w.session - 1); }};
    w.run();
    EXPECT_EQ(w.created, 2);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.children.at(w.fsm.node()).owner, w.session);
    expect_clean(w);
}

TEST(AcquireFsmTest, ACreateAnsweredForAnotherSessionIsNoHold) {  // H4
    AcquireWorld w;
    w.fsm.start();
    NodeStat stat;
    stat.ephemeral_owner = 99;
    w.fsm.on_created(1, Rc::ok, "/l/_c_x-lock-0000000000", stat, w.now());
    EXPECT_THAT(w.holds, IsEmpty());
    EXPECT_THAT(w.reaped_nodes, ElementsAre("_c_x-lock-0000000000"));
    EXPECT_EQ(w.answers, 0);
}

TEST(AcquireFsmTest, ALateAnswerOfAFormerSessionChangesNothing) {  // H5
    AcquireWorld w;
    w.fsm.start();
    w.expire();
    w.run();
    ASSERT_EQ(w.ended, Ended::granted);
    const auto node = w.fsm.node();
    NodeStat stat;
    stat.ephemeral_owner = 1;
    w.fsm.on_created(1, Rc::ok, "/l/stale", stat, w.now());
    EXPECT_EQ(w.fsm.node(), node);
    EXPECT_THAT(w.reaped_nodes, IsEmpty());
    expect_clean(w);
}

TEST(AcquireFsmTest, WhenThePolicyGivesUpTheIdentityIsReaped) {  // H2
    AcquireWorld w;
    w.attempts_allowed = 2;
    w.stay_away = 100;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::failed);
    EXPECT_EQ(w.errc, Errc::connection_lost);
    EXPECT_EQ(w.reaped_identities.size(), 1u);
    expect_clean(w);
}

TEST(AcquireFsmTest, APolicyThatNeverRetriesFailsTheCallCaughtByAnOutage) {
    AcquireWorld w;
    w.attempts_allowed = 0;
    w.other_enters();
    w.fsm.start();
    w.run();
    ASSERT_TRUE(w.fsm.is_waiting());
    w.suspend();
    w.flush_reaper();
    EXPECT_EQ(w.errc, Errc::connection_lost);
    expect_clean(w);
}

TEST(AcquireFsmTest, ACallBegunBeforeTheFirstConnectWaitsWhateverThePolicy) {
    AcquireWorld w;
    w.attempts_allowed = 0;
    w.never_connected = true;
    w.is_connected = false;
    w.fsm.start();
    EXPECT_EQ(w.answers, 0);
    w.never_connected = false;
    w.reconnect();
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, BeingConnectedAgainDoesNotShortenTheDelay) {
    AcquireWorld w;
    w.other_enters();
    w.fsm.start();
    while (w.trace.back() != "watch") ASSERT_TRUE(w.pump());
    w.suspend();  // before the watch is set
    const auto requests = w.trace.size();
    w.reconnect();
    EXPECT_EQ(w.trace.size(), requests);
    EXPECT_TRUE(w.timer);
    w.run();
    EXPECT_EQ(w.trace.size(), requests + 2);  // H20: one list, one watch
}

TEST(AcquireFsmTest, AWatchThatIsSetOutlivesTheConnectionWithoutARequest) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.fsm.start();
    w.run();
    const auto requests = w.trace.size();
    for (int outage = 0; outage < 3; ++outage) {
        w.suspend();
        EXPECT_TRUE(w.timer);
        w.reconnect();
        EXPECT_FALSE(w.timer);
        w.run();
        ASSERT_TRUE(w.fsm.is_waiting());
    }
    EXPECT_EQ(w.trace.size(), requests);
    w.script = {[&] { w.remove(holder); }};
    w.run();
    EXPECT_EQ(w.trace.size(), requests + 1);
    EXPECT_EQ(w.trace.back(), "renew");
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, AWaiterGivesUpInAnOutageThatIsTooLongForThePolicy) {
    AcquireWorld w;
    w.other_enters();
    w.attempts_allowed = 3;
    w.fsm.start();
    w.run();
    w.stay_away = 100;
    w.suspend();
    w.run();
    EXPECT_EQ(w.ended, Ended::failed);
    EXPECT_EQ(w.errc, Errc::connection_lost);
    EXPECT_EQ(w.last_state.failures, 4);
    w.reconnect();
    w.flush_reaper();
    expect_clean(w);
}

TEST(AcquireFsmTest, AnotherNodeOfTheSameNameIsNotTakenForTheOneThatWasWatched) {
    AcquireWorld w;
    const auto holder = w.other_enters("lock-");
    w.fsm.start();
    w.run();
    w.suspend();
    const auto own = w.fsm.node();
    w.children.erase(holder);  // somebody empties the directory, …
    w.children.erase(own);
    w.children[holder] = {AcquireWorld::kOther, w.pzxid = ++w.zxid};  // … and a client without an identity comes
    w.reconnect();
    w.watch_fires(WatchEventType::changed);
    w.run();
    EXPECT_EQ(w.created, 2);
    w.script = {[&] { w.remove(holder); }};
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, TheDeadlineCountsInAnOutageToo) {
    AcquireWorld w;
    w.other_enters();
    w.fsm.start();
    w.run();
    w.suspend();
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
    w.reconnect();
    w.flush_reaper();
    expect_clean(w);
}

TEST(AcquireFsmTest, WhoHasGivenUpAndThenHearsThatTheSessionIsOverStillHasItsIdentityReaped) {
    AcquireWorld w;
    w.create_answer = Rc::session_expired;
    w.fsm.start();
    w.fsm.stop();
    w.run();
    EXPECT_EQ(w.reaped_identities.size(), 1U);
    expect_clean(w);
}

TEST(AcquireFsmTest, FailuresAreCountedAnewForEachOutage) {
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.attempts_allowed = 2;
    w.fsm.start();
    w.run();
    for (int outage = 0; outage < 5; ++outage) {
        w.suspend();
        w.run();
        ASSERT_TRUE(w.fsm.is_waiting());
        EXPECT_EQ(w.last_state.failures, 1);
    }
    w.script = {[&] { w.remove(holder); }};
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
}

TEST(AcquireFsmTest, ADeletionMissedDuringAnOutageIsTold) {  // H19
    AcquireWorld w;
    const auto holder = w.other_enters();
    w.fsm.start();
    w.run();
    w.suspend();
    w.remove(holder);
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "list", "watch", "renew"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(AcquireFsmTest, AfterAnOutageWhoeverIsStillBeforeUsIsWaitedForAndTheListAloneIsNoGrant) {  // H19, H48
    AcquireWorld w;
    const auto first = w.other_enters();
    const auto second = w.other_enters("_c_00000000-0000-4000-8000-000000000002-lock-");
    w.fsm.start();
    while (w.trace.back() != "watch") ASSERT_TRUE(w.pump());
    w.suspend();  // before the watch is set
    w.remove(second);
    w.run();
    EXPECT_TRUE(w.fsm.is_waiting());
    EXPECT_EQ(w.watched, first);
    w.remove(first);
    while (w.trace.back() != "renew") ASSERT_TRUE(w.pump());
    w.suspend();
    w.lease_fresh = true;
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "list", "watch", "list", "watch", "renew", "list", "renew"));
    expect_clean(w);
}

}  // namespace
}  // namespace zkrecipes::internal
