#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <zkrecipes/session_stats.hpp>

#include "base/runtime.hpp"
#include "session/stats/counter.hpp"

namespace zkrecipes::internal {

/// Counts what happens to the locks of one recipe, mode and name. Changed under the session lock,
/// except for `waiting`: under the mutex of the SessionMeter's list of waits.
struct LockMeter {
    Counter acquired, busy, stopped, unreachable, failed, released, waiting, held;
    std::array<Counter, kLossReasons> lost;
    HistogramCounter wait, hold;
};

/// What is told of all calls and holds of one recipe object.
struct LockLabel {
    std::string recipe;
    std::string mode;
    std::string path;  // as the user names it
    std::shared_ptr<LockMeter> meter;
};

/// A hold as its user knows it, from the grant to the release or the loss. Kept in the Hold.
struct HoldRecord {
    std::shared_ptr<const LockLabel> label;  // null: nobody was granted it, or it has ended
    Instant since{};
    std::uint64_t id = 0;
    FencingToken token = 0;
    std::optional<LossReason> lost_for;  // also if nobody was granted it yet
};

}  // namespace zkrecipes::internal
