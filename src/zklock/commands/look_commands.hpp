#pragma once

#include <string>

#include "zklock/command_line/options.hpp"
#include "zklock/once/run_status.hpp"
#include "zklock/report/console.hpp"

namespace zkrecipes::zklock {

// The commands that inspect locks without taking one. They print on stdout, return the exit code, and throw Failure and
// Error.

int status_command(const Options& options, Console& console);
/// What status prints of a lock.
std::string picture_of(const LockStatus& status, const Options& options);
int wait_command(const Options& options, Console& console);
int break_command(const Options& options, Console& console);
int leader_command(const Options& options, Console& console);
int ping_command(const Options& options, Console& console);

}  // namespace zkrecipes::zklock
