// The waiters of one session for one lock: how many nodes they have, and how a node goes from one to the next.
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/transaction.hpp>

#include <gmock/gmock.h>

#include "core/local/local_queue.hpp"
#include "unit/core/local/local_queue_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(LocalQueueTest, ACrowdHasTwoNodesAndEveryHoldOneOfItsOwn) {
    make_mutex();
    std::size_t most = 0;
    before_answer = [&](const std::string&) { most = std::max(most, nodes_of_lock()); };
    ask(20);
    FencingToken last = 0;
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(grants.size(), 1u) << "after " << i;
        EXPECT_GT(grants.front().token(), last);
        last = grants.front().token();
        release_first();
    }
    EXPECT_LE(most, 2u);
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalQueueTest, AWaiterThatLeavesAsksNothing) {
    make_mutex();
    ask(2);
    ask(100, in(1s));
    asked.clear();
    runtime->advance(1500ms);
    serve();
    EXPECT_EQ(answers.size(), 101u);
    EXPECT_THAT(asked, Not(Contains(HasSubstr("create"))));
    EXPECT_THAT(asked, Not(Contains(HasSubstr("remove"))));
    release_first();
    EXPECT_EQ(grants.size(), 1u) << "the one that waits on";
}

TEST_F(LocalQueueTest, ALostHoldThatNobodyGivesBackIsNotInTheWay) {
    make_mutex();
    ask(3);
    erase(grants.front().node());
    serve();
    EXPECT_FALSE(grants.front().held());
    ASSERT_EQ(grants.size(), 2u);
    grants.pop_back();
    serve();
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_TRUE(grants.back().held());
}

TEST_F(LocalQueueTest, ATryIsBusyWithoutARequestWhileSomebodyHereHoldsOrWaits) {
    make_mutex();
    ask(1);
    ExclusiveMutex other(*session, "/l");
    asked.clear();
    std::vector<std::string> tries;
    other.acquire_async(Deadline::passed(), {},
                        [&](AcquireResult result) { tries.emplace_back(result.value ? "granted" : "busy"); });
    EXPECT_THAT(asked_now(), IsEmpty());
    EXPECT_THAT(tries, ElementsAre("busy"));
}

TEST_F(LocalQueueTest, ATryGetsAFreeLock) {
    make_mutex();
    ask(1, Deadline::passed());
    ASSERT_EQ(grants.size(), 1u);
    ask(1);
    release_first();
    EXPECT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, TheNodeOfATrySaysNothingOfThoseWhoWaitedBeforeIt) {
    make_mutex();
    ask(4);
    ASSERT_THAT(nodes.at("/l/" + children("/l").back()).data, HasSubstr("\"waiting\":"));
    while (!grants.empty()) release_first();
    ASSERT_EQ(nodes_of_lock(), 0u);
    ask(1, Deadline::passed());
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_THAT(nodes.at(grants.front().node()).data, Not(HasSubstr("waiting")));
}

TEST_F(LocalQueueTest, AGrantEndsTheHoldBeforeItWhoseOwnerWasNotTold) {
    make_mutex();
    ask(2);
    nodes.erase(grants.front().node());  // an operator deletes it, and no event has come yet
    ++zxid;
    client().fire(WatchEventType::deleted, "/l/" + children("/l").front());  // harmless
    serve();
    std::string predecessor = grants.front().node();
    watched.erase("node " + predecessor);
    client().fire(WatchEventType::deleted, predecessor);
    serve();
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_TRUE(grants.back().held());
    EXPECT_FALSE(grants.front().held());
    EXPECT_TRUE(grants.front().lost().stop_requested());
}

// ---- hand-over in the process ---------------------------------------------------------------------------------------

TEST_F(LocalQueueTest, AHandOverInTheProcessAsksNothingAndTheNextTurnHasANodeOfItsOwn) {
    make_mutex(handing_over(3));
    ask(4);
    const FencingToken token = grants.front().token();
    for (int i = 0; i < 2; ++i) {
        asked.clear();
        release_first();
        ASSERT_EQ(grants.size(), 1u);
        EXPECT_THAT(asked, IsEmpty());
        EXPECT_TRUE(grants.front().held());
        EXPECT_EQ(grants.front().token(), token);
    }
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_GT(grants.front().token(), token);
    release_first();
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalQueueTest, WhoeverWaitsWhileOthersHaveTheirTurnsIsBusyAlsoBetweenTwoNodes) {
    make_mutex(handing_over(2));
    ask(2);
    std::vector<std::string> missed;
    mutex->acquire_async(in(1s), {}, [&](AcquireResult late) { missed.emplace_back(to_string(late.value.missed())); });
    serve();
    release_first();
    grants.clear();  // the last turn of that node; the next one is asked for, and not answered
    runtime->advance(2s);
    serve();
    EXPECT_THAT(missed, ElementsAre("busy"));
}

TEST_F(LocalQueueTest, AHundredThousandHandOversLeaveNothing) {
    make_mutex(keeping(std::chrono::hours(1000)));
    ask(1);
    for (int i = 0; i < 10; ++i) {  // it is watched now, and the watch refers to its first hold
        runtime->advance(100ms);
        serve();
    }
    release_first();
    asked.clear();
    int held = 0;
    for (int i = 0; i < 150'000; ++i) {
        mutex->acquire_async(Deadline::never(), {}, [&](AcquireResult result) { held += result.value.held(); });
        runtime->run();
    }
    EXPECT_EQ(held, 150'000);
    EXPECT_THAT(asked, IsEmpty());
}

TEST_F(LocalQueueTest, TheNumberOfHandOversDoesNotStartAgain) {
    make_mutex(handing_over(9));
    ask(2);
    const auto first = GrantAccess::share(grants.front());
    const auto late = std::make_shared<HoldRef>(core, first->own_hold(), 0, first->token(), 0xffff'ffff);
    const LockOptions same = handing_over(9);
    late->set_heir(LocalQueue::of(
        core, make_queue(*core, "/l", same, {"lock-", "__lock__", true, true}, rule_exclusive(same.dialect), "test")));
    late->leave();  // as if the node had been handed over so often
    serve();
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_EQ(grants.back().token(), first->token());
    EXPECT_EQ(grants.back().handovers(), 0x1'0000'0000);
}

TEST_F(LocalQueueTest, TheFormerHolderHasNothingAnyMore) {
    make_mutex(handing_over(3));
    ask(2);
    std::optional<Grant> first(std::move(grants.front()));
    grants.clear();
    const std::stop_token lost = first->lost();
    first.reset();
    serve();
    ASSERT_EQ(grants.size(), 1u);
    erase(grants.front().node());
    serve();
    EXPECT_FALSE(lost.stop_requested()) << "it gave the lock back before";
}

TEST_F(LocalQueueTest, ACheckThatWasSentBeforeEndsWhoeverHoldsTheNodeNow) {
    make_mutex(handing_over(3));
    ask(2);
    runtime->advance(1100ms);  // a heartbeat is on its way
    const Request check = client().take("multi");
    ASSERT_TRUE(check.answer);
    grants.erase(grants.begin());
    runtime->run();
    ASSERT_EQ(grants.size(), 1u);
    const Grant& next = grants.front();
    EXPECT_TRUE(next.held());
    nodes.erase(next.node());  // no event comes
    check.answer(refusal_at(0, 1));
    serve();
    EXPECT_FALSE(next.held());
    EXPECT_TRUE(next.lost().stop_requested());
}

TEST_F(LocalQueueTest, ANodeIsNotHandedOverOnAnOldLease) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    // T is 6 s. The process stands still; then its node is checked, but the leader may not have heard of the session
    // since before, so the lease of this check is short.
    runtime->freeze_for(3850ms);
    runtime->run();
    serve();
    runtime->advance(150ms);
    ASSERT_TRUE(grants.front().held());
    ASSERT_LT(grants.front().remaining_lease(), 2s);
    grants.clear();
    serve();
    EXPECT_FALSE(nodes.contains(node));
    for (int i = 0; i < 20 && grants.empty(); ++i) {
        runtime->advance(100ms);
        serve();
    }
    ASSERT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, ANodeThatWasNotCheckedForLongIsNotHandedOver) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    runtime->advance(2500ms);
    inside([this] { core->lease_committed(now()); });  // another node of the session was checked
    grants.clear();
    serve();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
}

TEST_F(LocalQueueTest, ANodeWhoseTextWasGivenAwayIsNotHandedOver) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    const Sequencer text(grants.front());
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
}

TEST_F(LocalQueueTest, ANodeThatGuardsAnOpenWriteIsNotHandedOver) {
    put("/data");
    make_mutex(handing_over(9));
    ask(3);
    const std::string node = grants.front().node();
    Transaction written(grants.front());
    written.set("/data", "1");
    EXPECT_EQ(served([&] { (void)written.commit(); }), "ok");
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants.front().node(), node) << "that write has been answered";
    Transaction open(grants.front());
    open.set("/data", "2");
    open.commit_async(Deadline::never(), {}, [](CommitResult) {});
    runtime->run();
    grants.clear();
    serve();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
}

TEST_F(LocalQueueTest, ANodeWithAShareBelowItIsNotHandedOver) {
    ReadWriteLock lock(*session, "/l", handing_over(9));
    std::string node;
    std::optional<Grant> next;
    EXPECT_EQ(served([&] {
                  Grant writer = lock.acquire();
                  node = writer.node();
                  Grant share = lock.downgrade(writer);
                  lock.acquire_async(Deadline::never(), {},
                                     [&](AcquireResult result) { next = std::move(result.value); });
                  writer.release();
                  share.release();
              }),
              "ok");
    serve();
    ASSERT_TRUE(next);
    EXPECT_NE(next->node(), node);
}

TEST_F(LocalQueueTest, AReleaseThatWaitsDeletesTheNode) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    Grant first = std::move(grants.front());
    grants.clear();
    EXPECT_EQ(served([&] { EXPECT_TRUE(first.release_and_wait(in(5s))); }), "ok");
    EXPECT_FALSE(nodes.contains(node));
    ASSERT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, ANodeThatAnotherClientAsksForIsNotHandedOver) {
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    runtime->advance(600ms);  // it is watched now
    serve();
    write(node, std::string(internal::kRevocationRequest));
    serve();
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
}

TEST_F(LocalQueueTest, AWaiterSurvivesAnyNumberOfShortOutages) {
    make_mutex();
    ask(1);
    ask(1, in(3600s));
    for (int i = 0; i < 300; ++i) {
        break_connection();
        serve();
        runtime->advance(100ms);
        serve();
    }
    ASSERT_EQ(answers.size(), 1u) << answers.back();
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_TRUE(grants.front().held());
}

TEST_F(LocalQueueTest, AfterALossOfAHoldThatNobodyHasTheNextIsServed) {
    ExclusiveMutex other(*session, "/l", handing_over(9));
    EXPECT_EQ(served([&] {
                  ExclusiveMutex forgotten(*session, "/l", handing_over(9));
                  forgotten.lock();
              }),
              "ok");
    next_session();
    make_mutex(handing_over(9));
    ask(1);
    EXPECT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, DifferentOptionsHavePlacesOfTheirOwn) {
    make_mutex();
    ask(2);
    EXPECT_EQ(nodes_of_lock(), 2u);
    LockOptions guarded;
    guarded.acl = Acl::creator_all();
    ExclusiveMutex other(*session, "/l", guarded);
    other.acquire_async(in(5s), {}, [](AcquireResult) {});
    serve();
    EXPECT_EQ(nodes_of_lock(), 3u);
    runtime->advance(6s);
    serve();
}

// ---- no room for a second node --------------------------------------------------------------------------------------

TEST_F(LocalQueueTest, WithoutRoomForASecondNodeTheNextWaiterWaitsForTheFirst) {
    ends_in_the_middle = true;
    make_mutex();
    leave_room_for_one_node();
    ask(3);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(answers.size(), 2u + static_cast<std::size_t>(i));
        ASSERT_EQ(grants.size(), 1u);
        release_first();
    }
    EXPECT_THAT(answers, Not(Contains("error")));
}

TEST_F(LocalQueueTest, WhileItsNodeIsBeingDeletedThereIsRoomSoon) {
    ends_in_the_middle = true;
    make_mutex();
    leave_room_for_one_node();
    ask(1);
    grants.clear();
    runtime->run();  // the delete is on its way
    ask(1);
    EXPECT_THAT(answers, Not(Contains("error")));
    EXPECT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, AWaiterThatFoundNoRoomLeavesNothingBehind) {
    ends_in_the_middle = true;
    make_mutex();
    leave_room_for_one_node();
    ask(1);
    ask(1, in(1s));  // no room
    runtime->advance(1500ms);
    serve();
    EXPECT_EQ(answers.back(), "not granted");
    ask(1);
    release_first();
    EXPECT_THAT(answers, Not(Contains("error")));
    EXPECT_EQ(grants.size(), 1u);
}

TEST_F(LocalQueueTest, BehindALostHoldTheNextWaiterWaitsForItsRelease) {
    ends_in_the_middle = true;
    make_mutex();
    leave_room_for_one_node();
    ask(1);
    erase(grants.front().node());
    for (int i = 0; i < 10; ++i) {  // it is noticed by a heartbeat
        runtime->advance(500ms);
        serve();
    }
    ASSERT_FALSE(grants.front().held());
    answers.clear();
    ask(1);
    ask(1, in(1s));
    for (int i = 0; i < 10; ++i) {
        runtime->advance(500ms);
        serve();
    }
    EXPECT_THAT(answers, ElementsAre("not granted"));
    release_first();
    EXPECT_THAT(answers, ElementsAre("not granted", "granted"));
    EXPECT_TRUE(grants.front().held());
}

TEST_F(LocalQueueTest, BehindALostHoldTheNextWaiterWaitsForTheEndOfTheSession) {
    make_mutex();
    leave_room_for_one_node();
    ask(1);
    erase(grants.front().node());
    for (int i = 0; i < 10; ++i) {
        runtime->advance(500ms);
        serve();
    }
    answers.clear();
    ask(1);
    EXPECT_THAT(answers, IsEmpty());
    next_session();
    for (int i = 0; i < 10; ++i) {
        runtime->advance(500ms);
        serve();
    }
    EXPECT_THAT(answers, ElementsAre("granted"));
}

TEST_F(LocalQueueTest, WithoutAnyRoomItFails) {
    ends_in_the_middle = true;
    make_mutex();
    leave_room_for_one_node();
    inside([this] { EXPECT_TRUE(core->reserve_ephemeral(900'000 - 4 - core->reserved_bytes())); });
    ask(2);
    EXPECT_THAT(answers, ElementsAre("granted", "error", "error"));
}

TEST_F(LocalQueueTest, OptionsThatDoNotGoTogetherAreRefused) {
    LockOptions both = keeping(1s);
    both.delay_after_loss = 1s;
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", both); }), Errc::bad_option);
    LockOptions negative = keeping(-1s);
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", negative); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", keeping(367 * 24h)); }), Errc::bad_option);
    LockOptions forever;
    forever.local_turn = std::chrono::milliseconds::max();
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", forever); }), Errc::bad_option);
}

TEST_F(LocalQueueTest, AfterAHandOverNothingIsWrittenUnderTheFormerHold) {
    put("/data");
    make_mutex(handing_over(9));
    ask(2);
    const std::string node = grants.front().node();
    Transaction late(grants.front());
    late.set("/data", "1");
    release_first();
    ASSERT_EQ(grants.size(), 1u);
    ASSERT_EQ(grants.front().node(), node) << "handed over";
    EXPECT_EQ(code_served([&] { (void)late.commit(); }), Errc::lock_lost);
    EXPECT_EQ(nodes.at("/data").data, "");
}

}  // namespace
}  // namespace zkrecipes::testing
