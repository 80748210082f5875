#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"
#include "base/threads/about_to_block.hpp"
#include "session/common/internal_thread.hpp"

namespace zkrecipes::internal {

/// The failed attempts of one call in one outage. Pure.
class Outage {
public:
    /// One more attempt failed at `now`. How long to wait before the next one; empty: `policy`, which is asked with a
    /// RetryState, gives up or threw.
    template <class Policy>
    std::optional<std::chrono::milliseconds> failed(Instant now, std::uint64_t random, const Policy& policy) {
        using std::chrono::milliseconds;
        connected_since_ = false;
        if (state_.failures++ == 0) {
            began_ = now;
            state_.last_delay = milliseconds(0);
        }
        state_.elapsed = std::chrono::duration_cast<milliseconds>(now - began_);
        state_.random = random;
        const std::optional<milliseconds> delay = ask(policy);
        if (!delay) return std::nullopt;
        // A policy may answer anything, and what it answers must still fit on the clock.
        state_.last_delay = std::clamp<milliseconds>(*delay, milliseconds(0), std::chrono::hours(24));
        return state_.last_delay;
    }
    void over() noexcept { state_.failures = 0; }
    /// A connection was made; the first answer on it ends the outage. An answer by itself does not: a server that
    /// throttles (-127) answers some requests of a call and not others, and the policy must see that as one trouble.
    void connected() noexcept { connected_since_ = true; }
    void answered() noexcept {
        if (connected_since_) over();
    }
    std::string gave_up() const {
        if (!threw_.empty()) return "the retry policy threw: " + threw_;
        return "the retry policy gave up after " + std::to_string(state_.failures) +
               (state_.failures == 1 ? " attempt" : " attempts");
    }

private:
    template <class Policy>
    std::optional<std::chrono::milliseconds> ask(const Policy& policy) {
        try {
            const PolicyCall mark;
            about_to_block();
            return policy(state_);
        } catch (const std::exception& error) {
            threw_ = error.what();
        } catch (...) {
            threw_ = "something that is not a std::exception";
        }
        return std::nullopt;
    }

    RetryState state_;
    Instant began_{};
    std::string threw_;             // what the policy threw
    bool connected_since_ = false;  // the last failure
};

/// Doubling delays between two bounds, with jitter: for what the session tries for ever on its own account.
class ExponentialBackoff {
public:
    ExponentialBackoff(Nanoseconds first, Nanoseconds longest) : first_(first), longest_(longest) {}

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
constexpr bool should_log(std::uint64_t n) noexcept { return n != 0 && (n & (n - 1)) == 0; }

}  // namespace zkrecipes::internal
