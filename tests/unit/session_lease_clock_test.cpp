#include "session/lease_clock.hpp"

#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

const Instant kStart{100h};

class LeaseClockTest : public ::testing::Test {
protected:
    LeaseClockTest() { clock.set_timeout(6000ms, kStart); }
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

TEST_F(LeaseClockTest, AnOlderCommitNeverShortensANewerOne) {
    (void)clock.commit(kStart + 1s, kStart + 1s);
    (void)clock.commit(kStart, kStart + 2s);
    EXPECT_EQ(clock.sure_until(), kStart + 5s);
    EXPECT_EQ(clock.last_commit(), kStart + 1s);
}

TEST_F(LeaseClockTest, RenewalAfterTheLeasePassedRevivesNothing) {
    (void)clock.commit(kStart, kStart);
    EXPECT_FALSE(clock.commit(kStart + 1s, kStart + 4s - 1ns));
    EXPECT_TRUE(clock.commit(kStart + 4s, kStart + 5s)) << "says that the holds must be marked lost first";
    EXPECT_EQ(clock.sure_until(), kStart + 8s);
    EXPECT_FALSE(clock.commit(kStart + 6s, kStart + 6s));
}

TEST_F(LeaseClockTest, ATimeoutThatShrinksAppliesAtOnce) {
    (void)clock.commit(kStart, kStart);
    clock.set_timeout(4500ms, kStart + 1s);
    EXPECT_EQ(clock.sure_until(), kStart + 3s);
}

TEST_F(LeaseClockTest, ATimeoutThatGrowsAppliesToLaterWritesOnly) {
    (void)clock.commit(kStart, kStart);
    clock.set_timeout(12000ms, kStart + 1s);
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
    clock.set_timeout(5999ms, kStart);
    EXPECT_EQ(clock.interval(), Nanoseconds(5999ms) / 12);
    clock.set_timeout(30000ms, kStart);
    EXPECT_EQ(clock.interval(), 5s);
}

TEST_F(LeaseClockTest, ATimeoutBelowTwoTicksGetsAShorterLease) {
    clock.set_timeout(4000ms, kStart);
    EXPECT_EQ(clock.length(), Nanoseconds(4000ms) * 2 / 3) << "two ticks: exactly the usual";
    clock.set_timeout(3000ms, kStart);
    EXPECT_EQ(clock.length(), 2750ms - 1000ms);
    clock.set_timeout(1000ms, kStart);
    EXPECT_EQ(clock.length(), 0ms) << "no time is sure at all";
    (void)clock.commit(kStart, kStart);
    EXPECT_FALSE(clock.fresh(kStart));
}

TEST_F(LeaseClockTest, TheEndOfTheSessionEndsTheLease) {
    (void)clock.commit(kStart, kStart);
    clock.reset();
    EXPECT_TRUE(clock.passed(kStart));
    clock.set_timeout(6000ms, kStart + 1s);
    EXPECT_FALSE(clock.commit(kStart + 1s, kStart + 1s)) << "a new session has no lease that could have passed";
}

}  // namespace
}  // namespace zkrecipes::internal
