#include <zkrecipes/retry_policy.hpp>

#include <algorithm>
#include <utility>

#include <zkrecipes/error.hpp>

namespace zkrecipes {
namespace {

using Milliseconds = RetryPolicy::Milliseconds;

constexpr Milliseconds kLongest = std::chrono::hours(24);

void require(bool valid, const char* problem) {
    if (!valid) throw Error(Errc::bad_option, "retry policy", {}, problem);
}

void check_exponential(Milliseconds base, Milliseconds cap) {
    require(base > Milliseconds::zero(), "the first delay must be at least 1 ms, or a broken connection is hammered");
    require(cap >= base, "the longest delay must not be shorter than the first one");
    require(cap <= kLongest, "the longest delay must not exceed 24 hours");
}

/// Uniform in [0, min(cap, base * 2^failures)].
Milliseconds full_jitter(Milliseconds base, Milliseconds cap, const RetryState& state) {
    Milliseconds limit = base;
    for (int i = 0; i < state.failures && limit < cap; ++i) limit *= 2;
    limit = std::min(limit, cap);
    // The remainder favours small values by less than 2^-37: the limit is at most a day.
    return Milliseconds(static_cast<Milliseconds::rep>(state.random % (static_cast<std::uint64_t>(limit.count()) + 1)));
}

}  // namespace

RetryPolicy::RetryPolicy() : RetryPolicy(forever()) {}

RetryPolicy::RetryPolicy(Decide decide) : decide_(std::move(decide)) {
    require(static_cast<bool>(decide_), "the function is empty; pass one, or use RetryPolicy::never()");
}

RetryPolicy RetryPolicy::forever(Milliseconds base, Milliseconds cap) {
    check_exponential(base, cap);
    return RetryPolicy([=](const RetryState& state) { return std::optional(full_jitter(base, cap, state)); });
}

RetryPolicy RetryPolicy::never() {
    return RetryPolicy([](const RetryState&) { return std::optional<Milliseconds>(); });
}

RetryPolicy RetryPolicy::n_times(int attempts, Milliseconds interval) {
    require(attempts >= 1, "there must be at least one attempt");
    require(interval >= Milliseconds::zero() && interval <= kLongest, "the interval must be between 0 and 24 hours");
    return RetryPolicy(
        [=](const RetryState& state) { return state.failures < attempts ? std::optional(interval) : std::nullopt; });
}

RetryPolicy RetryPolicy::until_elapsed(Milliseconds total, Milliseconds interval) {
    require(total >= Milliseconds::zero(), "the total time must not be negative");
    require(interval > Milliseconds::zero() && interval <= kLongest,
            "the interval must be between 1 ms and 24 hours, or a broken connection is hammered");
    return RetryPolicy([=](const RetryState& state) {
        if (state.elapsed >= total) return std::optional<Milliseconds>();
        return std::optional(std::min(interval, total - state.elapsed));
    });
}

RetryPolicy RetryPolicy::exponential(int attempts, Milliseconds base, Milliseconds cap) {
    require(attempts >= 1, "there must be at least one attempt");
    check_exponential(base, cap);
    return RetryPolicy([=](const RetryState& state) {
        return state.failures < attempts ? std::optional(full_jitter(base, cap, state)) : std::nullopt;
    });
}

std::optional<Milliseconds> RetryPolicy::next(const RetryState& state) const {
    // The function may be the user's: what it answers must be a delay.
    const std::optional<Milliseconds> delay = decide_(state);
    if (!delay) return std::nullopt;
    return std::clamp(*delay, Milliseconds::zero(), kLongest);
}

}  // namespace zkrecipes
