#pragma once

#include "zklock/child.hpp"
#include "zklock/console.hpp"
#include "zklock/events.hpp"
#include "zklock/options.hpp"
#include "zklock/signals.hpp"

namespace zkrecipes::zklock {

/// `zklock run`: answers the exit code. Throws Failure and Interrupted. Call on the main thread, before there are
/// others.
int run_command(const Options& options, Console& console, const Inheritance& inheritance, EventLog& events,
                Signals& signals);

}  // namespace zkrecipes::zklock
