#include <gtest/gtest.h>

#include "client/client.hpp"
#include "session/common/backoff.hpp"
#include "session/common/budget.hpp"
#include "session/common/incarnation.hpp"
#include "session/connection/stalled_reply_probe.hpp"

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

const Instant kBegin{100h};

TEST(NudgeTest, OneIsDueWhenTheOldestRequestIsAHundredMillisecondsLate) {
    StalledReplyProbe nudge;
    EXPECT_EQ(nudge.look_at(), Instant::max());
    nudge.sent(kBegin);
    nudge.sent(kBegin + 50ms);
    EXPECT_EQ(nudge.look_at(), kBegin + 100ms);
    EXPECT_FALSE(nudge.due(kBegin + 99ms));
    EXPECT_TRUE(nudge.due(kBegin + 100ms));
    EXPECT_FALSE(nudge.due(kBegin + 199ms));
    EXPECT_TRUE(nudge.due(kBegin + 200ms));
}

TEST(NudgeTest, AnAnswerMovesTheAttentionToTheNextOldest) {
    StalledReplyProbe nudge;
    const auto first = nudge.sent(kBegin);
    const auto second = nudge.sent(kBegin + 50ms);
    nudge.answered(first);
    EXPECT_EQ(nudge.look_at(), kBegin + 150ms);
    nudge.answered(second);
    EXPECT_TRUE(nudge.idle());
    EXPECT_EQ(nudge.look_at(), Instant::max());
}

TEST(NudgeTest, AnswersOutOfOrderAreCounted) {
    StalledReplyProbe nudge;
    const auto first = nudge.sent(kBegin);
    const auto second = nudge.sent(kBegin);
    nudge.answered(second);
    EXPECT_FALSE(nudge.idle());
    nudge.answered(first);
    EXPECT_TRUE(nudge.idle());
}

TEST(NudgeTest, TicketsOfABrokenConnectionAreForgotten) {
    StalledReplyProbe nudge;
    const auto old = nudge.sent(kBegin);
    nudge.forget();
    EXPECT_TRUE(nudge.idle());
    nudge.sent(kBegin + 1s);
    nudge.answered(old);
    EXPECT_FALSE(nudge.idle());
}

TEST(NudgeTest, AStuckServerIsNudgedRarely) {
    StalledReplyProbe nudge;
    nudge.sent(kBegin);
    int count = 0;
    for (Instant now = kBegin; now < kBegin + 11s; now += 10ms) count += nudge.due(now) ? 1 : 0;
    EXPECT_EQ(count, 10 + 9);
}

TEST(OutageTest, ThePolicyIsToldHowFarItIs) {
    std::vector<RetryState> told;
    const auto policy = [&](const RetryState& state) -> std::optional<std::chrono::milliseconds> {
        told.push_back(state);
        if (state.failures == 3) return std::nullopt;
        return 20ms * state.failures;
    };
    Outage outage;
    EXPECT_EQ(outage.failed(kBegin + 5ms, 11, policy), 20ms);
    EXPECT_EQ(outage.failed(kBegin + 35ms, 12, policy), 40ms);
    EXPECT_EQ(outage.failed(kBegin + 90ms, 13, policy), std::nullopt);
    EXPECT_EQ(outage.gave_up(), "the retry policy gave up after 3 attempts");
    EXPECT_EQ(told[1].elapsed, 30ms);
    EXPECT_EQ(told[1].last_delay, 20ms);
    EXPECT_EQ(told[2].last_delay, 40ms);
    EXPECT_EQ(told[2].random, 13u);
    outage.over();
    EXPECT_EQ(outage.failed(kBegin + 1h, 0, policy), 20ms);  // the next one begins anew
    EXPECT_EQ(told.back().elapsed, 0ms);
}

TEST(OutageTest, AnAnswerEndsItOnlyOnANewConnection) {
    const auto policy = [](const RetryState& state) { return std::optional(1ms * state.failures); };
    Outage outage;
    EXPECT_EQ(outage.failed(kBegin, 0, policy), 1ms);
    outage.answered();  // a server that throttles answers some requests
    EXPECT_EQ(outage.failed(kBegin, 0, policy), 2ms);
    outage.connected();
    EXPECT_EQ(outage.failed(kBegin, 0, policy), 3ms);
    outage.answered();
    EXPECT_EQ(outage.failed(kBegin, 0, policy), 4ms);
    outage.connected();
    outage.answered();
    EXPECT_EQ(outage.failed(kBegin, 0, policy), 1ms);
}

TEST(OutageTest, AnEndlessDelayFitsOnTheClock) {
    Outage outage;
    const auto endless = [](const RetryState&) { return std::optional(std::chrono::milliseconds::max()); };
    EXPECT_EQ(outage.failed(kBegin, 0, endless), 24h);
}

TEST(PaceTest, DoublesUpToTheLongestAndNeverAnswersZero) {
    ExponentialBackoff pace(100ms, 1s);
    EXPECT_EQ(pace.next(0), 50ms);
    EXPECT_EQ(pace.next(0), 100ms);
    for (int i = 0; i < 100; ++i) EXPECT_LE(pace.next(~0ull), 1s);
    EXPECT_EQ(pace.next(0), 500ms);
    pace.reset();
    EXPECT_EQ(pace.next(0), 50ms);
}

TEST(IncarnationTest, ZooKeepersSessionsHaveTheNumberOfTheServerAndAPassword) {
    const std::string random("\0\1random bytes\0\0", 16), zeros(16, '\0');
    EXPECT_TRUE(made_by_zookeeper(0x0100a1b2c3d40000, random));
    EXPECT_TRUE(made_by_zookeeper(static_cast<std::int64_t>(0xff00a1b2c3d40000), random));
    EXPECT_FALSE(made_by_zookeeper(1, random));
    EXPECT_FALSE(made_by_zookeeper(0x00ffffffffffffff, random));
    EXPECT_FALSE(made_by_zookeeper(0x0100a1b2c3d40001, zeros)) << "Keeper with the data of a ZooKeeper";
}

TEST(BudgetTest, CountsEachPathWithItsLength) {
    Budget budget(100);
    EXPECT_TRUE(budget.reserve(46));
    EXPECT_FALSE(budget.fits(47));
    EXPECT_TRUE(budget.reserve(46));
    EXPECT_FALSE(budget.reserve(0));
    budget.release(46);
    EXPECT_TRUE(budget.reserve(46));
    EXPECT_EQ(budget.used(), 100u);
}

TEST(BudgetTest, GivingBackTooMuchDoesNotWrapAround) {
    Budget budget(100);
    ASSERT_TRUE(budget.reserve(10));
    budget.release(10);
    budget.release(10);
    EXPECT_EQ(budget.used(), 0u);
    EXPECT_FALSE(budget.reserve(97));
}

TEST(LogPaceTest, TheFirstAndEachPowerOfTwoAreWorthALine) {
    std::vector<std::uint64_t> lines;
    for (std::uint64_t n = 0; n <= 20; ++n) {
        if (should_log(n)) lines.push_back(n);
    }
    EXPECT_EQ(lines, (std::vector<std::uint64_t>{1, 2, 4, 8, 16}));
}

}  // namespace
}  // namespace zkrecipes::internal
