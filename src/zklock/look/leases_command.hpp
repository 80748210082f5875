#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// Shows the number of leases of a semaphore, or changes it. Throws Failure and Error.
int leases_command(const Options& options, Console& console);

}  // namespace zkrecipes::zklock
