#pragma once

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// Prints the settings of the connection and where each of them comes from, never a secret. Then throws Failure if they
/// cannot be used. Contacts no server.
int config_command(const Options& options);

}  // namespace zkrecipes::zklock
