#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/process/child.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// `zklock run` and `zklock elect`. Returns the exit code; throws Failure and Interrupted. Call on the main thread
/// before other threads exist.
int run_command(const Options& options, Console& console, const Inheritance& inheritance, EventLog& events,
                Signals& signals);

}  // namespace zkrecipes::zklock
