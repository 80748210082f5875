// A committed write proves that the session lived. How much longer it lives depends on when the leader was last
// touched.
#include <gtest/gtest.h>

#include "session/lease/lease_clock.hpp"

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

Instant at(std::chrono::milliseconds since_start) { return Instant() + 1h + since_start; }

class LeaseTouchTest : public ::testing::Test {
protected:
    // T 12 s, tick 2 s: a touch counts for writes sent more than 1 s + 1 s after its answer.
    LeaseTouchTest() { lease.connected(12s, at(0s), at(10ms)); }
    bool commit(std::chrono::milliseconds sent) { return lease.commit(at(sent), at(sent + 5ms)); }
    LeaseClock lease{2s};
};

TEST_F(LeaseTouchTest, AWriteRightAfterTheConnectIsWorthTwoThirds) {
    EXPECT_FALSE(commit(100ms));
    EXPECT_EQ(lease.ends_at(), at(8100ms));
    EXPECT_TRUE(lease.fresh(at(105ms)));
}

TEST_F(LeaseTouchTest, AWriteAfterALongSilenceIsWorthNoMoreThanTheConnect) {
    EXPECT_FALSE(commit(11s));
    EXPECT_EQ(lease.ends_at(), at(11880ms));
    EXPECT_FALSE(lease.fresh(at(11s)));
}

TEST_F(LeaseTouchTest, AnAnswerCountsOnlyForWritesSentAfterAPingCarriedIt) {
    lease.answered(at(9s), at(9010ms));
    EXPECT_FALSE(commit(11s));  // 1.99 s after the answer: the ping may still be on its way
    EXPECT_EQ(lease.ends_at(), at(11880ms));
    EXPECT_FALSE(commit(11011ms));
    EXPECT_EQ(lease.ends_at(), at(19011ms));
}

TEST_F(LeaseTouchTest, TheTouchOfThePresentWriteDoesNotCountForItself) {
    lease.answered(at(11s), at(11s));
    EXPECT_FALSE(commit(11s));
    EXPECT_EQ(lease.ends_at(), at(11880ms));
}

TEST_F(LeaseTouchTest, AHeartbeatThatOvertookOthersIsNotHiddenByTheirAnswers) {
    lease.answered(at(2s), at(5s));                // had waited to be sent
    lease.answered(at(5200ms), at(5300ms), true);  // a heartbeat
    lease.answered(at(2900ms), at(6s));            // had waited, too
    EXPECT_FALSE(commit(8100ms));
    EXPECT_EQ(lease.ends_at(), at(16100ms)) << "of the heartbeat 17.08 s, of the others not even 14.78 s";
}

TEST_F(LeaseTouchTest, TouchesOfAnEarlierConnectionAreVoid) {
    lease.answered(at(6s), at(6s));
    lease.connected(12s, at(5s), at(9s));
    EXPECT_FALSE(commit(10s));
    EXPECT_EQ(lease.ends_at(),
              at(16880ms));  // 5 s, the last moment surely before the connect, plus T less one per cent
}

TEST_F(LeaseTouchTest, SteadyHeartbeatsKeepNearlyTwoThirds) {
    for (auto t = 0ms; t <= 30s; t += 1s) {
        EXPECT_FALSE(commit(t));
        lease.answered(at(t), at(t + 5ms));
    }
    EXPECT_EQ(lease.ends_at(), at(38s));
}

TEST_F(LeaseTouchTest, ALongerTickThatAServerToldIsAssumedAtOnceAndAlsoByLaterSessions) {
    LeaseClock unknown(0s);
    unknown.connected(12s, at(0s), at(10ms));
    unknown.answered(at(3s), at(3s));
    EXPECT_FALSE(unknown.commit(at(8s), at(8s)));  // 5 s after the answer: enough for a tick of 6 s, and not of 10 s
    EXPECT_EQ(unknown.ends_at(), at(14880ms));
    unknown.learned(10s);
    EXPECT_EQ(unknown.ends_at(), at(11880ms)) << "only the connect has surely reached the leader";
    EXPECT_EQ(unknown.touch_delay(), 6s);
    unknown.learned(8s);
    EXPECT_EQ(unknown.touch_delay(), 6s) << "the longest counts";
    unknown.reset();
    unknown.connected(12s, at(20s), at(20s));
    EXPECT_EQ(unknown.touch_delay(), 6s);
    unknown.connected(24s, at(20s), at(20s));
    EXPECT_EQ(unknown.touch_delay(), 8s) << "half of the timeout is longer";
    lease.learned(10s);
    EXPECT_EQ(lease.touch_delay(), 6s) << "longer than the program has stated";
}

/// Whatever the tick is: the connect has touched the session, and SettingsCheck learns the tick within T/4 after it.
TEST_F(LeaseTouchTest, WhatIsAssumedForAThirdOfTheTimeoutAfterAConnectIsSafeWithAnyTick) {
    LeaseClock unknown(0s);
    unknown.connected(12s, at(0s), at(10ms));
    for (auto t = 0ms; t <= 3880ms; t += 10ms) {
        EXPECT_FALSE(unknown.commit(at(t), at(t)));
        unknown.answered(at(t), at(t));
        EXPECT_LE(unknown.ends_at(), at(11880ms));
    }
}

TEST_F(LeaseTouchTest, WithAnUnknownTickHalfOfTheTimeoutIsAssumed) {
    LeaseClock unknown(0s);
    unknown.connected(12s, at(0s), at(10ms));
    EXPECT_EQ(unknown.touch_delay(), 4s);
    EXPECT_EQ(unknown.interval(), 1s);
    EXPECT_EQ(lease.touch_delay(), 2s);
    EXPECT_EQ(lease.interval(), 2s);
}

TEST_F(LeaseTouchTest, NoLeaseCanBeHadWithATimeoutBelowTheTick) {
    EXPECT_TRUE(lease.attainable());
    lease.connected(1s, at(0s), at(10ms));
    EXPECT_FALSE(lease.attainable());
    LeaseClock unknown(0s);
    unknown.connected(100ms, at(0s), at(10ms));
    EXPECT_TRUE(unknown.attainable());
}

TEST_F(LeaseTouchTest, AnIdleSessionThatIsTouchedAlwaysGivesAFreshLease) {
    LeaseClock unknown(0s);
    unknown.connected(12s, at(0s), at(0s));
    for (auto t = 0ms; t < 60s; t += 3s) {
        unknown.answered(at(t), at(t + 5ms));
        LeaseClock copy = unknown;
        EXPECT_FALSE(copy.commit(at(t + 2900ms), at(t + 2910ms)));
        EXPECT_TRUE(copy.fresh(at(t + 2910ms))) << t.count();
    }
}

}  // namespace
}  // namespace zkrecipes::internal
