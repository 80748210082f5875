#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// status --watch: prints the lock, and prints it again after each change, until a signal ends zklock. Throws Failure,
/// Error and Interrupted.
int watch_command(const Options& options, Console& console);

}  // namespace zkrecipes::zklock
