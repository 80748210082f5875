#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/operation/operation_fsm.hpp"

namespace zkrecipes::internal {

/// What the worlds of all state machines have in common: one session, one timer, a clock that stands still.
class OperationWorld : public virtual OperationPort {
public:
    bool connected() const override { return is_connected; }
    std::uint64_t incarnation() const override { return never_connected ? 0 : static_cast<std::uint64_t>(session); }
    std::int64_t session_id() const override { return session; }
    bool zookeeper_serves() const override { return !keeper; }
    Instant now() const override { return Instant(clock); }
    std::uint64_t random() override { return 0; }
    std::string new_uuid() override {
        auto number = std::to_string(++uuids);
        return "a0000000-0000-4000-8000-" + std::string(12 - number.size(), '0') + number;
    }
    std::optional<std::chrono::milliseconds> next_delay(const RetryState& state) override {
        last_state = state;
        if (state.failures > attempts_allowed) return std::nullopt;
        return std::chrono::milliseconds(10);
    }
    void start_timer(std::chrono::milliseconds delay) override {
        timer = true;
        last_delay = delay;
    }
    void stop_timer() override { timer = false; }
    void finished() override { ++finishes; }

    bool is_connected = true, is_closed = false, never_connected = false;
    std::int64_t session = 1;
    bool keeper = false;  // ClickHouse Keeper: the end of a child leaves its directory's pzxid as it is
    int stay_away = 0;    // timers that fire before the connection is back
    int attempts_allowed = 1'000'000;
    Nanoseconds clock{1'000'000'000};
    bool timer = false;
    std::chrono::milliseconds last_delay{0};
    RetryState last_state;
    int uuids = 0, executed = 0, answers = 0, finishes = 0;
};

}  // namespace zkrecipes::internal
