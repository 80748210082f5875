#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// How far one call is with its RetryPolicy. Pure.
class Backoff {
public:
    Backoff(RetryPolicy policy, Instant began) : policy_(std::move(policy)), began_(began) {}

    /// One more attempt failed at `now`. When to try again; empty: give up.
    std::optional<Instant> failed(Instant now, std::uint64_t random) {
        using std::chrono::milliseconds;
        RetryState state;
        state.failures = ++failures_;
        state.elapsed = std::chrono::duration_cast<milliseconds>(now - began_);
        state.last_delay = last_delay_;
        state.random = random;
        const auto delay = policy_.next(state);
        if (!delay) return std::nullopt;
        last_delay_ = std::max(milliseconds(0), *delay);
        // A policy may answer anything: what is beyond the end of time is "never".
        const auto room = std::chrono::duration_cast<milliseconds>(Instant::max() - now);
        return last_delay_ >= room ? Instant::max() : now + last_delay_;
    }
    int failures() const noexcept { return failures_; }

private:
    RetryPolicy policy_;
    Instant began_;
    int failures_ = 0;
    std::chrono::milliseconds last_delay_{0};
};

/// Doubling delays between two bounds, with jitter: for what the session tries for ever on its own account.
class Pace {
public:
    Pace(Nanoseconds first, Nanoseconds longest) : first_(first), longest_(longest) {}

    Nanoseconds next(std::uint64_t random) noexcept {
        const Nanoseconds full = std::min(longest_, first_ * (std::int64_t{1} << std::min(step_, 30)));
        if (full < longest_) ++step_;
        // Between half and all of it: never at once, and not all at the same time.
        return full / 2 +
               Nanoseconds(static_cast<std::int64_t>(random % static_cast<std::uint64_t>(full.count() / 2 + 1)));
    }
    void reset() noexcept { step_ = 0; }

private:
    Nanoseconds first_;
    Nanoseconds longest_;
    int step_ = 0;
};

/// Whether the n-th failure of an outage deserves a log line: the first, and each power of two.
constexpr bool worth_a_line(std::uint64_t n) noexcept { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace zkrecipes::internal
