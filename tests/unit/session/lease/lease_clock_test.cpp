#include "session/lease/lease_clock.hpp"

#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

const Instant kConnected{100h};

/// Timeout 6 s, well touched: what a committed write is worth then. How much less it is worth otherwise:
/// LeaseTouchTest.
class LeaseClockTest : public ::testing::Test {
protected:
    LeaseClockTest() { clock.connected(6000ms, kConnected, kConnected); }
    LeaseClock clock{2000ms};
};

TEST_F(LeaseClockTest, NothingIsOursBeforeTheFirstCommit) {
    EXPECT_TRUE(clock.passed(kConnected));
    EXPECT_FALSE(clock.fresh(kConnected));
    EXPECT_EQ(clock.ends_at(), Instant::min());
}

TEST_F(LeaseClockTest, SureUntilTwoThirdsAfterTheCommittedWriteWasSent) {
    EXPECT_FALSE(clock.commit(kConnected, kConnected + 3s));
    EXPECT_EQ(clock.ends_at(), kConnected + 4s) << "counted from the sending, not from the answer";
    EXPECT_FALSE(clock.passed(kConnected + 4s - 1ns));
    EXPECT_TRUE(clock.passed(kConnected + 4s));
}

TEST_F(LeaseClockTest, WithoutAConnectionNothingIsProved) {
    LeaseClock unconnected{2000ms};
    EXPECT_FALSE(unconnected.commit(kConnected, kConnected));
    EXPECT_FALSE(unconnected.fresh(kConnected));
}

TEST_F(LeaseClockTest, AnOlderCommitNeverShortensANewerOne) {
    (void)clock.commit(kConnected + 1s, kConnected + 1s);
    (void)clock.commit(kConnected, kConnected + 2s);
    EXPECT_EQ(clock.ends_at(), kConnected + 5s);
    EXPECT_EQ(clock.last_commit(), kConnected + 1s);
}

TEST_F(LeaseClockTest, RenewalAfterTheLeasePassedRevivesNothing) {
    (void)clock.commit(kConnected, kConnected);
    clock.answered(kConnected + 1s, kConnected + 1s);
    EXPECT_FALSE(clock.commit(kConnected + 1s, kConnected + 4s - 1ns));
    EXPECT_EQ(clock.ends_at(), kConnected + 5s);
    EXPECT_TRUE(clock.commit(kConnected + 4s, kConnected + 5s)) << "says that the holds must be marked lost first";
    EXPECT_GT(clock.ends_at(), kConnected + 6s);
    EXPECT_FALSE(clock.commit(kConnected + 5s, kConnected + 6s));
}

TEST_F(LeaseClockTest, ATimeoutThatShrinksAppliesAtOnce) {
    (void)clock.commit(kConnected, kConnected);
    clock.connected(4500ms, kConnected, kConnected + 1s);
    EXPECT_EQ(clock.ends_at(), kConnected + 3s);
}

TEST_F(LeaseClockTest, ATimeoutThatGrowsAppliesToLaterWritesOnly) {
    (void)clock.commit(kConnected, kConnected);
    clock.connected(12000ms, kConnected + 500ms, kConnected + 1s);
    EXPECT_EQ(clock.ends_at(), kConnected + 4s);
    (void)clock.commit(kConnected + 500ms, kConnected + 2s);
    EXPECT_EQ(clock.ends_at(), kConnected + 4500ms) << "sent while the servers still counted with the old timeout";
    (void)clock.commit(kConnected + 1s, kConnected + 2s);
    EXPECT_EQ(clock.ends_at(), kConnected + 9s);
}

TEST_F(LeaseClockTest, FreshWhileAThirdOfTheTimeoutIsLeft) {
    (void)clock.commit(kConnected, kConnected);
    EXPECT_TRUE(clock.fresh(kConnected + 2s));
    EXPECT_FALSE(clock.fresh(kConnected + 2s + 1ns));
    EXPECT_FALSE(clock.fresh(kConnected + 1h));
}

TEST_F(LeaseClockTest, HeartbeatsComeEverySixthAndTwiceAsOftenWithShortTimeouts) {
    EXPECT_EQ(clock.interval(), 1s);
    clock.connected(5999ms, kConnected, kConnected);
    EXPECT_EQ(clock.interval(), Nanoseconds(5999ms) / 12);
    clock.connected(30000ms, kConnected, kConnected);
    EXPECT_EQ(clock.interval(), 5s);
}

TEST_F(LeaseClockTest, TheEndOfTheSessionEndsTheLease) {
    (void)clock.commit(kConnected, kConnected);
    clock.reset();
    EXPECT_TRUE(clock.passed(kConnected));
    clock.connected(6000ms, kConnected + 1s, kConnected + 1s);
    EXPECT_FALSE(clock.commit(kConnected + 1s, kConnected + 1s)) << "a new session has no lease that could have passed";
}

}  // namespace
}  // namespace zkrecipes::internal
