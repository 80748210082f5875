#include <zkrecipes/retry_policy.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include <zkrecipes/error.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {
namespace {

using Milliseconds = std::chrono::milliseconds;
constexpr std::uint64_t kMaxRandom = std::numeric_limits<std::uint64_t>::max();

RetryState failed(int failures, std::uint64_t random = 0, Milliseconds elapsed = Milliseconds(0)) {
    return RetryState{.failures = failures, .elapsed = elapsed, .last_delay = {}, .random = random};
}

TEST(RetryPolicyTest, NeverGivesUpAfterTheFirstAttempt) { EXPECT_FALSE(RetryPolicy::never().next(failed(1))); }

TEST(RetryPolicyTest, AnyCallableIsAPolicy) {
    SessionOptions options;
    options.retry = [](const RetryState& state) { return std::optional(Milliseconds(state.failures)); };
    EXPECT_EQ(options.retry.next(failed(7)), Milliseconds(7));
    options.retry = [](const RetryState&) { return std::nullopt; };
    EXPECT_FALSE(options.retry.next(failed(1)));
    const RetryPolicy copy = options.retry;
    EXPECT_FALSE(copy.next(failed(1)));
    static_assert(!std::is_convertible_v<int, RetryPolicy>);
}

TEST(RetryPolicyTest, NTimesCountsTheFirstAttempt) {
    const auto policy = RetryPolicy::n_times(3, Milliseconds(7));
    EXPECT_EQ(policy.next(failed(1)), Milliseconds(7));
    EXPECT_EQ(policy.next(failed(2)), Milliseconds(7));
    EXPECT_FALSE(policy.next(failed(3)));
    EXPECT_FALSE(RetryPolicy::n_times(1, Milliseconds(0)).next(failed(1)));
}

TEST(RetryPolicyTest, UntilElapsedShortensTheLastDelayAndThenGivesUp) {
    const auto policy = RetryPolicy::until_elapsed(Milliseconds(100), Milliseconds(30));
    EXPECT_EQ(policy.next(failed(1, 0, Milliseconds(0))), Milliseconds(30));
    EXPECT_EQ(policy.next(failed(900, 0, Milliseconds(90))), Milliseconds(10));
    EXPECT_FALSE(policy.next(failed(1, 0, Milliseconds(100))));
    EXPECT_FALSE(policy.next(failed(1, 0, Milliseconds(5000))));
    EXPECT_FALSE(RetryPolicy::until_elapsed(Milliseconds(0), Milliseconds(1)).next(failed(1)));
}

TEST(RetryPolicyTest, FullJitterCoversZeroToTheDoublingLimit) {
    const auto policy = RetryPolicy::exponential(100, Milliseconds(10), Milliseconds(1000));
    EXPECT_EQ(policy.next(failed(1, 0)), Milliseconds(0));
    EXPECT_EQ(policy.next(failed(1, 20)), Milliseconds(20));  // 10 * 2^1 is still reached
    EXPECT_EQ(policy.next(failed(1, 21)), Milliseconds(0));   // and nothing above it
    EXPECT_EQ(policy.next(failed(3, 80)), Milliseconds(80));
    EXPECT_EQ(policy.next(failed(3, 81)), Milliseconds(0));
    for (const int failures : {7, 8, 64, 99}) {
        EXPECT_EQ(policy.next(failed(failures, 1000)), Milliseconds(1000)) << failures;
        EXPECT_EQ(policy.next(failed(failures, 1001)), Milliseconds(0)) << failures;
    }
}

TEST(RetryPolicyTest, ExponentialGivesUpAfterItsAttempts) {
    const auto policy = RetryPolicy::exponential(2, Milliseconds(1), Milliseconds(1));
    EXPECT_TRUE(policy.next(failed(1)));
    EXPECT_FALSE(policy.next(failed(2)));
}

TEST(RetryPolicyTest, TheDefaultNeverGivesUpAndStaysUnderASecond) {
    const RetryPolicy policy;
    for (const int failures : {1, 10, 1'000'000, std::numeric_limits<int>::max()}) {
        const auto delay = policy.next(failed(failures, kMaxRandom, std::chrono::hours(24 * 365)));
        ASSERT_TRUE(delay) << failures;
        EXPECT_LE(*delay, Milliseconds(1000));
        EXPECT_GE(*delay, Milliseconds(0));
    }
}

TEST(RetryPolicyTest, ACallableMayNotDoHarm) {
    EXPECT_EQ(RetryPolicy([](const RetryState&) { return std::optional(Milliseconds(-5)); }).next(failed(1)),
              Milliseconds(0));
    EXPECT_EQ(RetryPolicy([](const RetryState&) { return std::optional(Milliseconds::max()); }).next(failed(1)),
              std::chrono::hours(24));
    // What it throws ends the call that asks it: CallsFromAPolicyTest.
    const RetryPolicy throws([](const RetryState&) -> std::optional<Milliseconds> { throw std::runtime_error("x"); });
    EXPECT_THROW((void)throws.next(failed(1)), std::runtime_error);
    EXPECT_THROW(RetryPolicy{RetryPolicy::Decide()}, Error);
}

TEST(RetryPolicyTest, ACallableSeesTheState) {
    RetryState seen;
    const RetryPolicy policy([&](const RetryState& state) {
        seen = state;
        return std::optional(state.last_delay * 2);
    });
    EXPECT_EQ(policy.next(RetryState{4, Milliseconds(50), Milliseconds(8), 99}), Milliseconds(16));
    EXPECT_EQ(seen.failures, 4);
    EXPECT_EQ(seen.elapsed, Milliseconds(50));
    EXPECT_EQ(seen.random, 99U);
}

TEST(RetryPolicyTest, ValuesThatCannotWorkAreErrors) {
    EXPECT_THROW(RetryPolicy::n_times(0, Milliseconds(1)), Error);
    EXPECT_THROW(RetryPolicy::n_times(1, Milliseconds(-1)), Error);
    EXPECT_THROW(RetryPolicy::until_elapsed(Milliseconds(-1), Milliseconds(1)), Error);
    EXPECT_THROW(RetryPolicy::until_elapsed(Milliseconds(1), Milliseconds(0)), Error);
    EXPECT_THROW(RetryPolicy::exponential(0, Milliseconds(1), Milliseconds(1)), Error);
    EXPECT_THROW(RetryPolicy::exponential(1, Milliseconds(0), Milliseconds(1)), Error);
    EXPECT_THROW(RetryPolicy::exponential(1, Milliseconds(2), Milliseconds(1)), Error);
    EXPECT_THROW(RetryPolicy::forever(Milliseconds(1), Milliseconds::max()), Error);
    EXPECT_THROW(RetryPolicy::forever(Milliseconds::min(), Milliseconds(1)), Error);
}

}  // namespace
}  // namespace zkrecipes
