#pragma once

#include "zklock/command_line/options.hpp"
#include "zklock/command_line/settings.hpp"

namespace zkrecipes::zklock {

/// Reads the settings of TLS and SASL. If one of them is set, all that TLS or SASL needs must be set, and the ZooKeeper
/// client must have it: zklock never connects without. Throws Failure.
void read_encryption(const Settings& settings, Options& options);

/// Hides the memory from core files and from other processes of this user. Exec undoes this, so the command is not
/// affected.
void hide_memory();

}  // namespace zkrecipes::zklock
