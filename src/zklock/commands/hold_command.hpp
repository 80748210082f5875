#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/process/child.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// `zklock hold`: holds the lock until stdin ends or a signal arrives. Returns the exit code; throws Failure,
/// Interrupted.
int hold_command(const Options& options, Console& console, const Inheritance& inheritance, EventLog& events,
                 Signals& signals);

}  // namespace zkrecipes::zklock
