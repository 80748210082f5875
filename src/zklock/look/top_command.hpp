#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// Shows the locks below a path, again and again. Throws Failure, Error and Interrupted.
int top_command(const Options& options, Console& console);

}  // namespace zkrecipes::zklock
