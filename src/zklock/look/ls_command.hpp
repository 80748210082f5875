#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// Lists the locks at and below a path. Throws Failure and Error.
int ls_command(const Options& options, Console& console);

}  // namespace zkrecipes::zklock
