#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

/// Warns if an outer zklock, in whose command this zklock runs, holds a lock for which this zklock would wait.
void warn_of_self_wait(const Options& options, Console& console);

}  // namespace zkrecipes::zklock
