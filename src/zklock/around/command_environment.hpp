#pragma once

#include <string>
#include <vector>

#include <zkrecipes/grant.hpp>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// The environment of zklock without the places of secrets, and without what zklock or an outer zklock says about a
/// lock or a run. With --notify, also without the variables of the service manager, which takes messages of zklock
/// only.
std::vector<std::string> bare_environment(const Options& options);

/// The same, with the variables that describe the held lock.
std::vector<std::string> command_environment(const Options& options, const Grant& grant,
                                             std::chrono::milliseconds session_timeout);

}  // namespace zkrecipes::zklock
