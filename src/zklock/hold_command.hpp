#pragma once

#include "zklock/console.hpp"
#include "zklock/events.hpp"
#include "zklock/options.hpp"
#include "zklock/signals.hpp"

namespace zkrecipes::zklock {

/// `zklock hold`: holds the lock until stdin ends, or a signal comes. Answers the exit code; throws Failure,
/// Interrupted.
int hold_command(const Options& options, Console& console, EventLog& events, Signals& signals);

}  // namespace zkrecipes::zklock
