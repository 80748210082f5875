#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace zkrecipes::test {

/// $ZKRECIPES_TEST_SLOWDOWN, for sanitizer builds and slow machines; 1 when not set.
inline double slowdown() {
    static const double factor = [] {
        const char* text = std::getenv("ZKRECIPES_TEST_SLOWDOWN");
        const double value = text == nullptr ? 1.0 : std::atof(text);
        return value >= 1.0 ? value : 1.0;
    }();
    return factor;
}

/// A duration of a test, longer where everything takes longer.
inline std::chrono::milliseconds scaled(std::chrono::milliseconds duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration * slowdown());
}

/// The one limit for everything that must happen: generous, because it only costs time when a test fails.
inline const std::chrono::milliseconds kMaxWait = scaled(std::chrono::seconds(30));

/// For tests that count requests: no heartbeat for minutes. Not where servers refuse: the C client then waits T / 60.
inline constexpr std::chrono::milliseconds kNoHeartbeat = std::chrono::hours(1);

/// How long gates hold replies up where round trips of one request each are counted. For those of several requests,
/// which a busy machine may send with any pause between them, there is in_round_trips().
inline constexpr std::chrono::milliseconds kReplyDelay(40);

/// Waits until the condition is true; false when it still is not after kMaxWait. Use as EXPECT_TRUE(await([&] { … })).
template <typename Condition>
[[nodiscard]] bool await(Condition condition, std::chrono::milliseconds within = kMaxWait) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    auto pause = std::chrono::microseconds(200);
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= deadline) {
            return condition();
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::microseconds(20'000));
    }
    return true;
}

}  // namespace zkrecipes::test
