// The protocol of leases, step by step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/acquire/semaphore_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

void run(SemaphoreWorld& w) {
    w.fsm.start();
    w.run();
}

TEST(SemaphoreTermsTest, AreReadAsWritten) {
    EXPECT_EQ(write_limit(5), R"({"v":1,"leases":5})");
    for (const std::int32_t limit : {1, 5, 2'147'483'647}) EXPECT_EQ(read_limit(write_limit(limit)), limit);
    EXPECT_EQ(read_limit(R"({ "leases": 7, "v": 2, "by": "somebody later" })"), 7);
}

TEST(SemaphoreTermsTest, AnythingElseIsNoNumberOfLeases) {  // H68
    for (const char* data : {"", "5", "five", "{}", R"({"leases":0})", R"({"leases":-1})", R"({"leases":2147483648})",
                             R"({"leases":"5"})", R"({"leases":5} 6)", R"({"leases":5)", "192.168.0.1"}) {
        EXPECT_FALSE(read_limit(data)) << data;
    }
}

TEST(SemaphoreFsmTest, AFreeSemaphoreTakesTwoRoundTripsAndTwoWrites) {
    SemaphoreWorld w(Patience::wait, 3, 3);
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "look", "take"));  // the first three go out at once
    EXPECT_EQ(w.writes, 2);
    EXPECT_THAT(w.held, SizeIs(3));
    EXPECT_THAT(w.mine(), IsEmpty());
}

TEST(SemaphoreFsmTest, WithoutTheRightToWriteOneReadMoreAsksForTheToken) {
    SemaphoreWorld w(Patience::wait, 3, 2);
    w.data_answer = Rc::no_auth;
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "look", "take", "take", "exists"));
    EXPECT_THAT(w.held, SizeIs(2));
    EXPECT_FALSE(w.terms.writable) << "the next acquire does not ask for it again";
}

TEST(SemaphoreFsmTest, TheFirstWritesTheNumberAndWhoeverComesLaterMustNameTheSame) {
    SemaphoreWorld first(Patience::wait, 3, 1);
    first.data.clear();
    run(first);
    EXPECT_EQ(first.ended, Ended::granted);
    EXPECT_EQ(first.data, write_limit(3));
    EXPECT_EQ(first.terms.directory, first.directory);

    SemaphoreWorld other(Patience::wait, 4, 1);
    other.data = first.data;
    run(other);
    EXPECT_EQ(other.ended, Ended::failed);
    EXPECT_EQ(other.errc, Errc::bad_option);
    EXPECT_THAT(other.text, HasSubstr("3 leases, but this object was made for 4"));
    EXPECT_THAT(other.mine(), IsEmpty());
}

TEST(SemaphoreFsmTest, WhoeverNamesAnotherNumberDoesNotWaitInTheQueueToLearnIt) {
    SemaphoreWorld w(Patience::wait, 4, 1);
    w.data = write_limit(3);
    w.other_enters();
    run(w);
    EXPECT_EQ(w.errc, Errc::bad_option);
    EXPECT_THAT(w.mine(), IsEmpty());
}

TEST(SemaphoreFsmTest, AnObjectFollowsAChangeInTheSameDirectoryOnly) {
    SemaphoreWorld w(Patience::wait, 3, 1);
    w.terms.directory = w.directory;
    w.change(5);
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.terms.limit, 5);

    SemaphoreWorld made_again(Patience::wait, 3, 1);
    made_again.terms.directory = made_again.directory - 1;
    made_again.change(5);
    run(made_again);
    EXPECT_EQ(made_again.errc, Errc::bad_option);

    SemaphoreWorld fixed(Patience::wait, 1, 1);
    fixed.terms.directory = fixed.directory;
    fixed.terms.follows = false;
    fixed.change(2);
    run(fixed);
    EXPECT_EQ(fixed.errc, Errc::bad_option);
}

TEST(SemaphoreFsmTest, DataThatAreNoNumberAreAnError) {
    SemaphoreWorld w(Patience::wait, 3, 1);
    w.data = "five";
    run(w);
    EXPECT_EQ(w.errc, Errc::bad_data);
    EXPECT_THAT(w.mine(), IsEmpty());
    EXPECT_THAT(w.my_leases(), IsEmpty());
}

TEST(SemaphoreFsmTest, MoreThanThereAreIsRefusedWithoutStandingInTheQueue) {
    SemaphoreWorld w(Patience::wait, 3, 4);
    run(w);
    EXPECT_EQ(w.errc, Errc::bad_option);
    EXPECT_THAT(w.text, HasSubstr("4 leases at once were asked for, and there are 3"));
    EXPECT_EQ(w.writes, 0);

    SemaphoreWorld raised(Patience::wait, 3, 4);
    raised.terms.directory = raised.directory;
    raised.change(4);
    run(raised);
    EXPECT_EQ(raised.ended, Ended::granted) << raised.text;
}

TEST(SemaphoreFsmTest, AWaitThatCouldNeverEndAfterAChangeFails) {
    SemaphoreWorld w(Patience::wait, 3, 3);
    w.other_holds();
    w.script = {[&] { w.change(2); }};
    run(w);
    EXPECT_EQ(w.ended, Ended::failed);
    EXPECT_EQ(w.errc, Errc::bad_option);
    EXPECT_THAT(w.mine(), IsEmpty());
}

TEST(SemaphoreFsmTest, AnyLeaseThatIsGivenBackLetsTheHeadIn) {  // H25
    for (const bool younger : {false, true}) {
        SemaphoreWorld w(Patience::wait, 2, 1);
        const auto a = w.other_holds(), b = w.other_holds();
        w.script = {[&] { w.remove_lease(younger ? b : a); }};
        run(w);
        EXPECT_EQ(w.ended, Ended::granted);
    }
}

TEST(SemaphoreFsmTest, TheTakingItselfRenewsTheLease) {
    SemaphoreWorld w(Patience::wait, 2, 1);
    const auto a = w.other_holds();
    w.other_holds();
    w.script = {[&] {
        w.lease_fresh = false;  // it has waited for long
        w.remove_lease(a);
    }};
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_THAT(w.trace, ::testing::Not(::testing::Contains("renew")));
}

TEST(SemaphoreFsmTest, OnlyTheHeadWatchesTheLeases) {  // H24
    SemaphoreWorld w(Patience::wait, 1, 1);
    const auto held = w.other_holds();
    const auto first = w.other_enters();
    w.script = {[&] {
                    EXPECT_FALSE(w.watching);
                    w.remove_lease(held);
                    w.other_takes(first);
                },
                [&] { EXPECT_TRUE(w.watching); }};
    w.fsm.start();
    w.run();
    EXPECT_TRUE(w.watching);
    w.fsm.stop();
    w.flush_reaper();
    EXPECT_FALSE(w.watching);
    EXPECT_THAT(w.mine(), IsEmpty());
}

TEST(SemaphoreFsmTest, LeasesTakenInADirectoryThatWasMadeAnewAreNoHold) {
    for (const bool guarded : {true, false}) {
        SemaphoreWorld w(Patience::wait, 4, 4);
        w.guard_room = guarded;
        w.before_take = [&w] { w.make_anew(1); };
        run(w);
        EXPECT_EQ(w.ended, Ended::failed) << "here is another number now, which this object was not made for";
        EXPECT_EQ(w.errc, Errc::bad_option);
        EXPECT_FALSE(w.too_many);
        EXPECT_THAT(w.holds, IsEmpty());
        w.flush_reaper();
        EXPECT_THAT(w.my_leases(), IsEmpty());
        EXPECT_THAT(w.mine(), IsEmpty());
    }
}

TEST(SemaphoreFsmTest, WhereTheDirectoryIsNotGuardedALookMoreTellsWhetherItIsTheSame) {
    SemaphoreWorld w(Patience::wait, 3, 2);
    w.guard_room = false;
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "look", "take", "look"));
    EXPECT_THAT(w.held, SizeIs(2));
}

TEST(SemaphoreFsmTest, BesideOtherServersThanZooKeepersNoOrderOfEventsIsReliedOn) {  // H127
    SemaphoreWorld w(Patience::wait, 3, 2);
    w.keeper = true;
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(std::ranges::count(w.trace, "look"), 2) << "the second one tells whether it is the same directory";
}

TEST(SemaphoreFsmTest, AfterAnUnknownOutcomeALookMoreTellsWhetherTheDirectoryIsTheSame) {
    SemaphoreWorld w(Patience::wait, 4, 4);
    w.plans = {{3, Fault::lost_after}};
    w.before_take = [&w] { w.make_anew(1); };
    run(w);
    EXPECT_EQ(w.errc, Errc::bad_option);
    EXPECT_THAT(w.holds, IsEmpty());
}

TEST(SemaphoreFsmTest, LoweringRevokesNobodyAndLetsNobodyInUntilThereIsRoom) {
    SemaphoreWorld w(Patience::wait, 3, 1);
    w.terms.directory = w.directory;
    const auto a = w.other_holds(), b = w.other_holds(), c = w.other_holds();
    w.script = {[&] { w.change(2); }, [&] { w.remove_lease(a); },
                [&] {
                    EXPECT_EQ(w.answers, 0);
                    w.remove_lease(b);
                }};
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_THAT(w.leases, SizeIs(2));
}

TEST(SemaphoreFsmTest, AFailedTryIsTwoReadsAtOnce) {
    SemaphoreWorld full(Patience::try_once, 2, 2);
    full.other_holds();
    run(full);
    EXPECT_EQ(full.ended, Ended::busy);
    EXPECT_THAT(full.trace, ElementsAre("list", "look"));
    SemaphoreWorld queue(Patience::try_once, 2, 1);
    queue.other_enters();
    run(queue);
    EXPECT_EQ(queue.ended, Ended::busy);
    EXPECT_THAT(queue.trace, ElementsAre("list", "look"));
    SemaphoreWorld no_queue(Patience::try_once, 1, 1);  // reaped, since nobody has waited for long
    no_queue.exists = false;
    no_queue.other_holds();
    run(no_queue);
    EXPECT_EQ(no_queue.ended, Ended::busy);
    EXPECT_EQ(no_queue.writes, 0);
}

TEST(SemaphoreFsmTest, AnUnknownOutcomeIsFoundOutAndNothingIsTakenTwice) {  // H1, H69
    for (const auto fault : {Fault::lost_before, Fault::lost_after}) {
        SemaphoreWorld w(Patience::wait, 2, 2);
        w.plans = {{3, fault}};
        run(w);
        EXPECT_EQ(w.ended, Ended::granted);
        EXPECT_THAT(w.my_leases(), SizeIs(2));
        EXPECT_EQ(w.left, 1);
        const bool happened = fault == Fault::lost_after;
        EXPECT_EQ(w.writes, happened ? 2 : 3);
        EXPECT_THAT(w.trace, ::testing::Contains("syncleases"));
        EXPECT_FALSE(w.too_many);
    }
}

TEST(SemaphoreFsmTest, LeasesThatTurnOutToBelongToAnotherSessionAreNoHold) {  // H69
    SemaphoreWorld w(Patience::wait, 2, 1);
    w.terms.writable = false;
    w.before_lease_read = [&] {
        for (auto& [name, node] : w.leases) node.owner = 99;
    };
    w.script = {[&] { w.delete_nodes_of(99); }};
    run(w);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.uuids, 2);
    EXPECT_EQ(w.leases.at(w.held.at(0)).owner, w.session);

    SemaphoreWorld told(Patience::wait, 2, 1);
    told.owner_told = 99;
    run(told);
    EXPECT_EQ(told.ended, Ended::granted);
    EXPECT_EQ(told.uuids, 2);
    EXPECT_EQ(told.reaped_lease_identities.size(), 1U);
    EXPECT_EQ(told.my_leases(), told.held);
}

TEST(SemaphoreFsmTest, TheRestOfLeasesOfWhichOneTurnsOutToBeAnothersIsGivenBack) {
    SemaphoreWorld w(Patience::wait, 4, 3);
    w.terms.writable = false;
    w.before_lease_read = [&, first = true]() mutable {
        if (std::exchange(first, false)) w.leases.begin()->second.owner = 99;
    };
    w.script = {[&] { w.flush_reaper(); }};  // four leases: with two of ours and the other's no three are free
    run(w);
    EXPECT_EQ(w.reaped_lease_identities.size(), 1U);
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.uuids, 2);
}

TEST(SemaphoreFsmTest, WhereALeaseOfOurNameIsAnothersThePlaceOfTheTakingThatDidNotHappenIsGivenBack) {
    SemaphoreWorld w(Patience::wait, 2, 1);
    w.plans = {{3, Fault::lost_before}};
    w.script = {[&] { w.flush_reaper(); }};
    w.fsm.start();
    while (w.trace.empty() || w.trace.back() != "syncleases") ASSERT_TRUE(w.pump());
    w.leases[w.mine().at(0).substr(0, kIdentityChars) + "lease-0000000000"] = {99, ++w.zxid};
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.uuids, 2);
    EXPECT_THAT(w.mine(), IsEmpty());
}

TEST(SemaphoreFsmTest, ATransactionThatHappensAfterTheSyncAfterAllLeavesNoLeases) {  // H1
    SemaphoreWorld w(Patience::wait, 2, 1);
    w.plans = {{3, Fault::lost_before}};
    w.fsm.start();
    while (w.writes < 3) ASSERT_TRUE(w.pump());
    // The first taking, of which the servers had said that it did not happen, happens before the second one.
    const auto place = w.mine().at(0);
    w.leases[place.substr(0, kIdentityChars) + "lease-0000000000"] = {w.session, ++w.zxid};
    w.remove(place);
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.my_leases(), w.held);
}

TEST(SemaphoreFsmTest, ATransactionThatHappensLateLeavesNoLeasesToWhoeverHasGivenUp) {
    SemaphoreWorld w(Patience::wait, 2, 1);
    w.plans = {{3, Fault::lost_before}};
    w.fsm.start();
    while (w.writes < 3) ASSERT_TRUE(w.pump());
    const auto place = w.mine().at(0);
    w.leases[place.substr(0, kIdentityChars) + "lease-0000000000"] = {w.session, ++w.zxid};
    w.remove(place);
    w.fsm.stop();  // before the answer to the second taking
    w.run();
    EXPECT_EQ(w.ended, Ended::stopped);
    EXPECT_THAT(w.my_leases(), IsEmpty());
}

TEST(SemaphoreFsmTest, FailuresAreCountedAnewForEachOutageAtTheHead) {
    SemaphoreWorld w(Patience::wait, 1, 1);
    w.other_holds();
    run(w);
    ASSERT_TRUE(w.watching);
    for (int i = 0; i < 3; ++i) {
        w.suspend();
        w.run();
        ASSERT_TRUE(w.watching);
        EXPECT_EQ(w.last_state.failures, 1);
    }
}

TEST(SemaphoreFsmTest, TheQueueGoesOnWhenItsNumbersWrap) {
    SemaphoreWorld w(Patience::wait, 1, 1);
    w.next_sequence = 2'147'483'647;
    const auto last = w.other_enters();  // 2147483647
    EXPECT_THAT(last, ::testing::EndsWith("2147483647"));
    run(w);
    // The server hands out a negative number next. By the order of texts it would be first, and take the lease.
    EXPECT_EQ(w.ended, Ended::failed);
    EXPECT_EQ(w.errc, Errc::sequence_exhausted);
    EXPECT_THAT(w.mine(), IsEmpty());
    EXPECT_THAT(w.my_leases(), IsEmpty());
}

TEST(SemaphoreFsmTest, ADirectoryThatMustNotBeMadeIsAnError) {
    SemaphoreWorld w(Patience::wait, 1, 1);
    w.spec.create_parents = false;
    w.leases_exist = false;
    run(w);
    EXPECT_EQ(w.errc, Errc::no_parent);
    EXPECT_THAT(w.mine(), IsEmpty());
}

TEST(SemaphoreFsmTest, BudgetsAreChecked) {
    SemaphoreWorld w(Patience::wait, 1, 1);
    w.other_holds();
    w.watch_room = false;
    run(w);
    EXPECT_EQ(w.errc, Errc::budget_exceeded);
    EXPECT_THAT(w.mine(), IsEmpty());
}

}  // namespace
}  // namespace zkrecipes::internal
