// Why nothing was granted: what the state machines say at each step at which the time may be over.
#include <gtest/gtest.h>

#include "unit/core/acquire/acquire_world.hpp"
#include "unit/core/acquire/semaphore_world.hpp"

namespace zkrecipes::internal {
namespace {

/// Runs until this was sent and not answered.
template <class World>
void run_up_to(World& w, const std::string& request) {
    for (int i = 0; i < 100 && (w.trace.empty() || w.trace.back() != request); ++i) w.pump();
}

/// Behind somebody, and everything is answered.
struct WaitingWorld : AcquireWorld {
    WaitingWorld() : holder(other_enters()) {
        fsm.start();
        run();
        EXPECT_TRUE(fsm.is_waiting());
    }
    const std::string holder;
};

TEST(MissedTest, NothingThatIsNotAnsweredIsBusy) {
    AcquireWorld w;
    w.other_enters();
    w.fsm.start();
    EXPECT_FALSE(w.fsm.is_busy());
    w.pump();  // created; others are not known of yet
    w.pump();
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(MissedTest, AFreeLockIsNeverBusy) {
    AcquireWorld w;
    w.slow_lease = true;
    w.fsm.start();
    run_up_to(w, "renew");
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(MissedTest, WhoeverHasSeenOthersIsBusyBeforeItsWatchIsSet) {
    AcquireWorld w;
    w.other_enters();
    w.fsm.start();
    run_up_to(w, "watch");
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::busy);
}

TEST(MissedTest, AWaiterIsBusyAndSoIsOneWhoseLastCheckIsNotAnswered) {
    WaitingWorld waiting;
    waiting.fsm.deadline();
    EXPECT_EQ(waiting.ended, Ended::busy);
    WaitingWorld handed_over;
    handed_over.remove(handed_over.holder);
    handed_over.fsm.deadline();
    EXPECT_EQ(handed_over.ended, Ended::busy) << "the others took the time";
}

TEST(MissedTest, AWaiterInAnOutageIsUnreachableAndAfterItBusyAgain) {
    WaitingWorld w;
    w.suspend();
    EXPECT_FALSE(w.fsm.is_busy());
    w.reconnect();
    EXPECT_TRUE(w.fsm.is_busy());
    w.suspend();
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(MissedTest, WhatAnEarlierAttemptHasSeenDoesNotCount) {
    AcquireWorld w;
    w.other_enters();
    w.fsm.start();
    run_up_to(w, "watch");
    w.suspend();
    w.is_connected = true;
    w.fsm.on_connected();
    ASSERT_TRUE(w.timer) << "the next attempt follows later";
    EXPECT_FALSE(w.fsm.is_busy());
    w.timer = false;
    w.fsm.on_timer();
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(MissedTest, ANewSessionHasSeenNobody) {
    WaitingWorld w;
    w.expire();
    w.reconnect();
    w.timer = false;
    w.fsm.on_timer();
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(MissedTest, WithoutASessionTheServersAreUnreachable) {
    AcquireWorld w;
    w.is_connected = false;
    w.never_connected = true;
    w.fsm.start();
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(MissedTest, AStopIsAStopWhateverElseIsTheCase) {
    WaitingWorld waiting;
    waiting.fsm.stop();
    EXPECT_EQ(waiting.ended, Ended::stopped);
    WaitingWorld away;
    away.suspend();
    away.fsm.stop();
    EXPECT_EQ(away.ended, Ended::stopped);
    AcquireWorld at_once(Patience::try_once);
    at_once.fsm.start();
    at_once.fsm.stop();
    EXPECT_EQ(at_once.ended, Ended::stopped);
}

TEST(MissedTest, ATryWhoseConnectionBreaksIsUnreachableAndOneWhoseNodeSomebodyDeletesIsBusy) {
    AcquireWorld broken(Patience::try_once);
    broken.fsm.start();
    broken.suspend();
    EXPECT_EQ(broken.ended, Ended::unreachable);
    AcquireWorld deleted(Patience::try_once);
    deleted.slow_lease = true;
    deleted.fsm.start();
    run_up_to(deleted, "renew");
    deleted.remove(deleted.mine().front());
    deleted.run();
    EXPECT_EQ(deleted.ended, Ended::busy);
}

TEST(MissedTest, ASemaphoreIsBusyOnceItsLeasesWereSeenTaken) {
    SemaphoreWorld silent(Patience::wait, 1, 1);
    silent.other_holds();
    silent.fsm.start();
    silent.fsm.deadline();
    EXPECT_EQ(silent.ended, Ended::unreachable);
    SemaphoreWorld waiting(Patience::wait, 1, 1);
    waiting.other_holds();
    waiting.fsm.start();
    waiting.run();
    ASSERT_EQ(waiting.answers, 0);
    waiting.fsm.deadline();
    EXPECT_EQ(waiting.ended, Ended::busy);
    SemaphoreWorld taking(Patience::wait, 1, 1);
    taking.fsm.start();
    run_up_to(taking, "take");
    taking.fsm.deadline();
    EXPECT_EQ(taking.ended, Ended::unreachable) << "its leases are free";
    SemaphoreWorld watching(Patience::wait, 1, 1);
    watching.other_holds();
    watching.fsm.start();
    run_up_to(watching, "watchleases");
    ASSERT_EQ(watching.answers, 0);
    watching.fsm.deadline();
    EXPECT_EQ(watching.ended, Ended::busy);
}

}  // namespace
}  // namespace zkrecipes::internal
