// What becomes of a set of locks whose transaction has an unknown outcome, or whose nodes are not what they should be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/acquire/multi_acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using World = MultiAcquireWorld;

TEST(MultiAcquireFsmTest, AnUnknownTransactionThatHappenedIsAdoptedAsAWhole) {
    World w({"lock-", "lock-"});
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.created, 1);
    EXPECT_THAT(w.trace,
                ElementsAre("multi", "exists", "exists", "sync", "list", "list", "look", "list", "list", "check"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, AfterABreakOfTheConnectionTheOwnTransactionIsNoLeaseAnyMore) {
    World w({"lock-", "lock-"});
    w.plans = {{1, Fault::lost_before}};
    w.fsm.start();
    w.run();
    EXPECT_TRUE(w.lease_fresh);
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "list", "list", "check"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, APolicyThatGivesUpIsNotAboutTheMemberWhoseReadBrokeLast) {
    World w({"lock-", "lock-"});
    w.attempts_allowed = 0;
    w.plans = {{2, Fault::lost_before}};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.errc, Errc::connection_lost);
    EXPECT_FALSE(w.about);
}

TEST(MultiAcquireFsmTest, AnUnknownTransactionThatDidNotHappenIsRepeated) {
    World w({"lock-", "lock-"});
    w.plans = {{0, Fault::lost_before}};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.created, 1);
    EXPECT_EQ(w.uuids, 1);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ATransactionThatHappensAfterTheSyncAfterAllIsSweptAway) {
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.plans = {{0, Fault::lost_before}};
    w.fsm.start();
    while (w.created == 0) ASSERT_TRUE(w.pump());
    // The first transaction, of which the servers had said that it did not happen, happens.
    const auto identity = w.mine().at(0).second.substr(0, kIdentityChars);
    for (const std::size_t member : {0u, 1u}) w.enter(member, identity + "lock-", w.session, w.zxid + 1);
    w.script = {[&] { w.others_leave('a'); }};
    w.run();
    EXPECT_EQ(w.reaped.size(), 2u);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, OfAnUnknownTransactionAPartOfWhichIsGoneTheRestIsTakenAway) {
    World w({"lock-", "lock-"});
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.pump();
    w.remove(0, w.mine().front().second);  // an operator
    w.run();
    EXPECT_EQ(w.created, 2);
    EXPECT_EQ(w.uuids, 2);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, NodesOfTheFormerSessionAreNeverAdopted) {  // H3
    World w({"lock-", "lock-"});
    w.lingering = true;
    w.plans = {{0, Fault::expired_after}};
    w.script = {[&] { w.delete_nodes_of(1); }};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.created, 2);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.dirs[0].children.at(w.fsm.nodes()[0]).owner, 2);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ATransactionThatIsAnsweredInTheNextSessionIsMadeAgainThere) {  // H3
    World w({"lock-", "lock-"});
    w.fsm.start();
    ++w.session;  // nobody has told us yet
    w.pump();
    EXPECT_EQ(w.created, 1);
    EXPECT_FALSE(w.lease_fresh) << "what a former session committed is no lease of this one";
    w.delete_nodes_of(w.session);
    w.run();
    EXPECT_EQ(w.created, 2);
    EXPECT_EQ(w.uuids, 2) << "the identity of a create is never used for another one";
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, NodesThatTurnOutToBelongToAnotherSessionAreNoHold) {  // H4
    for (const bool marks : {true, false}) {
        World w({"lock-", "lock-"});
        w.marks = marks;
        w.owner_shown = 55;
        w.fsm.start();
        w.run();
        EXPECT_EQ(w.created, 2);
        EXPECT_EQ(w.reaped.size(), 2u);
        EXPECT_EQ(w.ended, Ended::granted);
        expect_clean(w);
    }
}

TEST(MultiAcquireFsmTest, OneOwnNodeDeletedMeansAllGoToTheBackOfTheirQueues) {
    World w({"lock-", "lock-"});
    w.other_enters(0);
    w.script = {[&] { w.remove(1, w.mine().back().second); },
                [&] {
                    w.others_enter({0, 1}, 'b');
                    w.others_leave('a');
                },
                [&] { w.others_leave('b'); }};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.created, 2);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_GE(w.notes, 1);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, GivingUpWhileTheTransactionIsOnItsWayAnswersAtOnceAndStaysBehind) {  // H6, H51
    World w({"lock-", "lock-"});
    w.fsm.start();
    w.fsm.stop();
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.ended, Ended::stopped);
    EXPECT_EQ(w.finishes, 0);
    w.run();
    EXPECT_EQ(w.created, 1);
    EXPECT_EQ(w.reaped.size(), 2u);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WhenThePolicyGivesUpTheIdentityIsReaped) {  // H2
    World w({"lock-", "lock-"});
    w.attempts_allowed = 0;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.errc, Errc::connection_lost);
    EXPECT_EQ(w.reaped_identities.size(), 1u);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ADeletionMissedDuringAnOutageIsSeenByTheListsAfterIt) {  // H19
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.script = {[&] {
        w.suspend();
        w.others_leave('a');
    }};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.created, 1);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, AfterABreakThatNobodyToldOfTheOldWatchesAreGivenUp) {  // H19
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.script = {[&] {
                    w.fsm.on_connected();
                    for (const auto& dir : w.dirs) EXPECT_TRUE(dir.watched.empty());
                },
                [&] { w.others_leave('a'); }};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ANumberNearTheEndIsRefusedAlsoWhenTheAnswerWasLost) {  // H1, H11
    World w({"lock-", "lock-"});
    w.dirs[1].next_sequence = 2'147'483'647;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.errc, Errc::sequence_exhausted);
    EXPECT_EQ(w.about, 1u);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ALateAnswerOfAFormerSessionChangesNothing) {  // H5
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.fsm.start();
    CreatedSet old_nodes;
    old_nodes.paths = {"/l0/x", "/l1/x"};
    w.expire();
    w.fsm.on_created(1, Rc::ok, old_nodes, w.now());
    w.fsm.on_parent(1, 0, Rc::ok, {});
    while (w.writes < 2) ASSERT_TRUE(w.pump());  // the transaction of the new session is on its way
    w.fsm.on_created(1, Rc::ok, old_nodes, w.now());
    EXPECT_EQ(w.fsm.nodes()[0], "");
    w.script = {[&] { w.others_leave('a'); }};
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WithoutAConnectionATryAnswersAtOnceAndAWaitBeginsWithTheFirstSession) {
    World once({"lock-"}, Patience::try_once);
    once.is_connected = false;
    once.fsm.start();
    EXPECT_EQ(once.ended, Ended::unreachable);
    EXPECT_EQ(once.answers, 1);
    World w({"lock-", "lock-"});
    w.is_connected = false;
    w.never_connected = true;
    w.fsm.start();
    EXPECT_FALSE(w.timer);
    w.never_connected = false;
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WhoHasGivenUpAndThenHearsThatTheSessionIsOverStillHasItsIdentityReaped) {
    World w({"lock-", "lock-"});
    w.create_answer = Rc::session_expired;
    w.fsm.start();
    w.fsm.stop();
    w.run();
    EXPECT_EQ(w.reaped_identities.size(), 1u);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, FailuresAreCountedAnewForEachOutage) {
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.fsm.start();
    w.run();
    for (int i = 0; i < 3; ++i) {
        w.suspend();
        w.run();
        ASSERT_TRUE(w.any_watch());
        EXPECT_EQ(w.last_state.failures, 1);
    }
    w.others_leave('a');
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

}  // namespace
}  // namespace zkrecipes::internal
