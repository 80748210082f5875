#include "core/acquire/multi_acquire_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/acquire/multi_acquire_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using World = MultiAcquireWorld;

TEST(MultiAcquireFsmTest, UncontendedIsOneTransactionWithItsReadsInOneRoundTrip) {
    World w({"lock-", "__WRIT__", "__READ__"});
    w.fsm.start();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "exists"));  // all sent before an answer
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "exists"));
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.holds.at(0).second, w.zxid);
    EXPECT_THAT(w.fsm.nodes()[0], HasSubstr("-lock-0"));
    EXPECT_THAT(w.fsm.nodes()[1], HasSubstr("-__WRIT__0"));
    EXPECT_THAT(w.fsm.nodes()[2], HasSubstr("-__READ__0"));
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WithoutTheRightToWriteOneReadMoreAsksForTheToken) {
    World w({"lock-", "lock-"});
    w.marker_answer = Rc::no_auth;
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "unmarked", "exists", "exists", "look"));
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.holds.at(0).second, w.zxid);
    EXPECT_FALSE(w.marks) << "the next acquire does not ask for a marker again";
    EXPECT_EQ(w.uuids, 1);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WhereThereMayBeNoMarkerOneReadMoreAsksForTheToken) {
    World w({"lock-", "lock-"});
    w.marks = false;
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("unmarked", "exists", "exists", "look"));
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.dirs[0].next_sequence, 1);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, TheTokenIsThatOfTheTransactionAndNotOfADirectory) {
    World w({"lock-"});
    w.before_parents = [&] {  // an operator deletes ours, and somebody else is the only child
        w.remove(0, w.names_in(0).front());
        w.other_enters(0);
        w.script = {[&] { w.others_leave('a'); }};
    };
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.created, 2);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ADirectoryWithCompanyIsListedInTheNextRoundTrip) {
    World w({"__READ__", "lock-"});
    w.other_enters(0, 'a', "__READ__");
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "list"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WhoeverLeftBetweenTheCreateAndTheReadCostsOneCheck) {
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.before_parents = [&] { w.others_leave('a'); };
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "check"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, AnOnlyChildThatIsNotOursIsNoGrant) {
    World w({"lock-", "lock-"});
    w.before_parents = [&] {  // an operator deletes ours in the second queue, and somebody else comes
        w.remove(1, w.names_in(1).front());
        w.other_enters(1);
        w.script = {[&] { w.others_leave('a'); }};
    };
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.created, 2);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WhereADeletionLeavesNoTraceInThePzxidACheckDecides) {
    World w({"lock-", "lock-"});
    w.keeper = true;
    w.other_enters(1);  // holds
    w.before_parents = [&] { w.remove(1, w.fsm.nodes()[1]); };
    w.script = {[&] { w.others_leave('a'); }};
    w.fsm.start();
    w.run();
    ASSERT_GE(w.trace.size(), 5U);
    EXPECT_EQ(w.trace[3], "check");
    EXPECT_EQ(w.trace[4], "multi");
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, EveryQueueIsWatchedAtOnceAndOneCheckIsTheHandOver) {
    World w;
    w.others_enter({0, 1, 2});
    w.script = {[&] {
        EXPECT_TRUE(w.fsm.is_waiting());
        w.others_leave('a');
    }};
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "exists", "list", "list", "list", "watch", "watch",
                                     "watch", "check"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WhereItWasNotSecondItListsAgainAndOnlyThere) {
    World w({"lock-", "lock-"});
    w.others_enter({0, 1}, 'a');
    w.other_enters(1, 'b');
    w.script = {[&] { w.others_leave('b'); }, [&] { w.others_leave('a'); }};
    w.fsm.start();
    w.run();
    // 'b' goes first: nothing is sent, because the first queue is still blocked. Then one check with one list.
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "list", "list", "watch", "watch", "check", "list"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, WhoeverIsLeftAfterTheMiddleOneHasGoneIsWatchedNext) {
    World w({"lock-", "lock-"});
    w.other_enters(1, 'a');
    w.other_enters(1, 'b');
    w.script = {[&] { w.others_leave('b'); },
                [&] {
                    EXPECT_EQ(w.answers, 0);
                    w.others_leave('a');
                }};
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "list", "watch", "check", "list", "watch", "check"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, AFailedTryListsEveryQueueOnceAndWritesNothing) {
    World w({"lock-", "lock-", "lock-"}, Patience::try_once);
    w.other_enters(2);
    w.fsm.start();
    EXPECT_THAT(w.trace, ElementsAre("list", "list", "list"));
    w.run();
    EXPECT_EQ(w.trace.size(), 3u);
    EXPECT_EQ(w.writes, 0);
    EXPECT_EQ(w.ended, Ended::busy);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ADeadlineIsBusyOnceOthersWereSeenInOneOfTheQueues) {
    World silent({"lock-", "lock-"});
    silent.other_enters(1);
    silent.fsm.start();
    silent.pump();  // created
    silent.fsm.deadline();
    EXPECT_EQ(silent.ended, Ended::unreachable);
    World seen({"lock-", "lock-"});
    seen.other_enters(1);
    seen.fsm.start();
    while (seen.trace.empty() || seen.trace.back() != "watch") seen.pump();
    seen.fsm.deadline();
    EXPECT_EQ(seen.ended, Ended::busy);
    World waiting({"lock-", "lock-"});
    waiting.other_enters(1);
    waiting.fsm.start();
    waiting.run();
    EXPECT_TRUE(waiting.fsm.is_busy());
    waiting.suspend();
    waiting.fsm.deadline();
    EXPECT_EQ(waiting.ended, Ended::unreachable);
}

TEST(MultiAcquireFsmTest, ATryThatLosesTheRaceTakesAllItsNodesAway) {
    World w({"lock-", "lock-"}, Patience::try_once);
    w.fsm.start();
    w.pump();
    w.pump();  // the lists: nobody
    w.other_enters(1);
    w.run();
    EXPECT_EQ(w.created, 1);
    EXPECT_EQ(w.ended, Ended::busy);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ATryBesideSharesHolds) {
    World w({"__READ__", "lock-"}, Patience::try_once);
    w.other_enters(0, 'a', "__READ__");
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, AllMissingDirectoriesAreMadeTogetherAndOnlyThose) {
    World w({"lock-", "lock-", "lock-"});
    w.dirs[0].exists = w.dirs[2].exists = false;
    w.fsm.start();
    w.run();
    EXPECT_THAT(w.trace, ElementsAre("multi", "exists", "exists", "exists", "mkdir", "mkdir", "multi", "exists",
                                     "exists", "exists"));
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, AMissingDirectoryThatMayNotBeMadeIsAnErrorAboutThatMember) {
    World w({"lock-", "lock-"});
    w.spec.create_parents = false;
    w.dirs[1].exists = false;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::failed);
    EXPECT_EQ(w.errc, Errc::no_parent);
    EXPECT_EQ(w.about, 1u);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, DirectoriesThatAlwaysVanishAreAnErrorInTheEnd) {
    World w({"lock-", "lock-"});
    w.dirs[0].exists = false;
    w.reap_directory = 1'000'000;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.errc, Errc::no_parent);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, ABlockerThatVanishesBeforeItsWatchIsNotWaitedFor) {  // H15
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.before_watch = [&] { w.others_leave('a'); };
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.trace.back(), "check");
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, OtherEventsOfABlockerAreNoDeletion) {
    World w({"lock-", "lock-"});
    w.others_enter({0, 1});
    w.script = {[&] {
                    const Ticket ticket = w.dirs[1].watch_ticket;
                    w.dirs[1].watched.clear();
                    w.fsm.on_watch_fired(ticket, 1, WatchEventType::changed);
                },
                [&] {
                    EXPECT_EQ(w.answers, 0);
                    EXPECT_TRUE(w.fsm.is_waiting());
                    w.others_leave('a');
                }};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.watches_asked.size(), 3u);
    EXPECT_EQ(w.ended, Ended::granted);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, NumbersNearTheEndAreRefusedAndNotUsed) {  // H11
    for (const std::int32_t next : {2'000'000'000, 2'147'483'647, -5}) {
        World w({"lock-", "lock-"});
        w.dirs[1].next_sequence = next;
        w.fsm.start();
        w.run();
        EXPECT_EQ(w.errc, Errc::sequence_exhausted) << next;
        EXPECT_EQ(w.about, 1u);
        expect_clean(w);
    }
    World w({"lock-", "lock-"});
    w.dirs[1].next_sequence = 1'999'999'999;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.warnings, 1);
}

TEST(MultiAcquireFsmTest, ARefusedTransactionNamesTheMemberAndLeavesNothing) {
    const std::pair<Rc, Errc> cases[] = {{Rc::no_auth, Errc::no_permission},
                                         {Rc::quota_exceeded, Errc::quota_exceeded},
                                         {Rc::too_large, Errc::too_large},
                                         {Rc::node_exists, Errc::sequence_exhausted}};
    for (const auto& [rc, errc] : cases) {
        World w({"lock-", "lock-"});
        w.create_answer = rc;
        w.fsm.start();
        w.run();
        EXPECT_EQ(w.ended, Ended::failed);
        EXPECT_EQ(w.errc, errc);
        EXPECT_EQ(w.about, 1u);
        expect_clean(w);
    }
}

TEST(MultiAcquireFsmTest, NoPermissionToListIsFinalAndTakesTheNodesAway) {
    World w({"lock-", "lock-"});
    w.other_enters(1);
    w.list_answer = Rc::no_auth;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.errc, Errc::no_permission);
    EXPECT_EQ(w.about, 1u);
    expect_clean(w);
}

TEST(MultiAcquireFsmTest, BudgetsAreErrorsThatLeaveNothing) {
    World nodes({"lock-", "lock-"});
    nodes.room = false;
    nodes.fsm.start();
    nodes.run();
    EXPECT_EQ(nodes.errc, Errc::budget_exceeded);
    expect_clean(nodes);
    World watches({"lock-", "lock-"});
    watches.watch_room = false;
    watches.other_enters(1);
    watches.fsm.start();
    watches.run();
    EXPECT_EQ(watches.errc, Errc::budget_exceeded);
    expect_clean(watches);
}

}  // namespace
}  // namespace zkrecipes::internal
