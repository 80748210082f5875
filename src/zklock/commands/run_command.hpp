#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/process/child.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// `zklock run`: answers the exit code. Throws Failure and Interrupted. Call on the main thread, before there are
/// others.
int run_command(const Options& options, Console& console, const Inheritance& inheritance, EventLog& events,
                Signals& signals);

}  // namespace zkrecipes::zklock
