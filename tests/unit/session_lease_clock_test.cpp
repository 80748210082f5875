#include "session/lease_clock.hpp"

#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

const Instant kStart{100h};

/// Timeout 6 s, well touched: what a committed write is worth then. How much less it is worth otherwise:
/// LeaseTouchTest.
class LeaseClockTest : public ::testing::Test {
protected:
    LeaseClockTest() { clock.connected(6000ms, kStart, kStart); }
    LeaseClock clock{2000ms};
};

TEST_F(LeaseClockTest, NothingIsOursBeforeTheFirstCommit) {
    EXPECT_TRUE(clock.passed(kStart));
    EXPECT_FALSE(clock.fresh(kStart));
    EXPECT_EQ(clock.sure_until(), Instant::min());
}

TEST_F(LeaseClockTest, SureUntilTwoThirdsAfterTheCommittedWriteWasSent) {
    EXPECT_FALSE(clock.commit(kStart, kStart + 3s));
    EXPECT_EQ(clock.sure_until(), kStart + 4s) << "counted from the sending, not from the answer";
    EXPECT_FALSE(clock.passed(kStart + 4s - 1ns));
    EXPECT_TRUE(clock.passed(kStart + 4s));
}

TEST_F(LeaseClockTest, WithoutAConnectionNothingIsProved) {
    LeaseClock unconnected{2000ms};
    EXPECT_FALSE(unconnected.commit(kStart, kStart));
    EXPECT_FALSE(unconnected.fresh(kStart));
}

TEST_F(LeaseClockTest, AnOlderCommitNeverShortensANewerOne) {
    (void)clock.commit(kStart + 1s, kStart + 1s);
    (void)clock.commit(kStart, kStart + 2s);
    EXPECT_EQ(clock.sure_until(), kStart + 5s);
    EXPECT_EQ(clock.last_commit(), kStart + 1s);
}

TEST_F(LeaseClockTest, RenewalAfterTheLeasePassedRevivesNothing) {
    (void)clock.commit(kStart, kStart);
    clock.answered(kStart + 1s, kStart + 1s);
    EXPECT_FALSE(clock.commit(kStart + 1s, kStart + 4s - 1ns));
    EXPECT_EQ(clock.sure_until(), kStart + 5s);
    EXPECT_TRUE(clock.commit(kStart + 4s, kStart + 5s)) << "says that the holds must be marked lost first";
    EXPECT_GT(clock.sure_until(), kStart + 6s);
    EXPECT_FALSE(clock.commit(kStart + 5s, kStart + 6s));
}

TEST_F(LeaseClockTest, ATimeoutThatShrinksAppliesAtOnce) {
    (void)clock.commit(kStart, kStart);
    clock.connected(4500ms, kStart, kStart + 1s);
    EXPECT_EQ(clock.sure_until(), kStart + 3s);
}

TEST_F(LeaseClockTest, ATimeoutThatGrowsAppliesToLaterWritesOnly) {
    (void)clock.commit(kStart, kStart);
    clock.connected(12000ms, kStart + 500ms, kStart + 1s);
    EXPECT_EQ(clock.sure_until(), kStart + 4s);
    (void)clock.commit(kStart + 500ms, kStart + 2s);
    EXPECT_EQ(clock.sure_until(), kStart + 4500ms) << "sent while the servers still counted with the old timeout";
    (void)clock.commit(kStart + 1s, kStart + 2s);
    EXPECT_EQ(clock.sure_until(), kStart + 9s);
}

TEST_F(LeaseClockTest, FreshWhileAThirdOfTheTimeoutIsLeft) {
    (void)clock.commit(kStart, kStart);
    EXPECT_TRUE(clock.fresh(kStart + 2s));
    EXPECT_FALSE(clock.fresh(kStart + 2s + 1ns));
    EXPECT_FALSE(clock.fresh(kStart + 1h));
}

TEST_F(LeaseClockTest, HeartbeatsComeEverySixthAndTwiceAsOftenWithShortTimeouts) {
    EXPECT_EQ(clock.interval(), 1s);
    clock.connected(5999ms, kStart, kStart);
    EXPECT_EQ(clock.interval(), Nanoseconds(5999ms) / 12);
    clock.connected(30000ms, kStart, kStart);
    EXPECT_EQ(clock.interval(), 5s);
}

TEST_F(LeaseClockTest, TheEndOfTheSessionEndsTheLease) {
    (void)clock.commit(kStart, kStart);
    clock.reset();
    EXPECT_TRUE(clock.passed(kStart));
    clock.connected(6000ms, kStart + 1s, kStart + 1s);
    EXPECT_FALSE(clock.commit(kStart + 1s, kStart + 1s)) << "a new session has no lease that could have passed";
}

}  // namespace
}  // namespace zkrecipes::internal
