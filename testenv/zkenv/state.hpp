#pragma once

#include <optional>
#include <string>

#include "testenv/src/unique_fd.hpp"

namespace zkrecipes::testenv::zkenv {

/// Where an environment keeps its control socket: $XDG_RUNTIME_DIR/zkenv/NAME, or /tmp/zkenv-UID/NAME. Throws Error
/// when the name is not one, or when the folder in /tmp belongs to somebody else. `make`: the parent folder is made if
/// missing.
[[nodiscard]] std::string state_directory(const std::string& name, bool make);
[[nodiscard]] std::string socket_path(const std::string& state_directory);

/// One line to the supervisor, and all that it answers until it closes the connection. Nothing when no supervisor runs.
[[nodiscard]] std::optional<std::string> ask_supervisor(const std::string& state_directory, const std::string& line);

/// Held while an environment is being started or stopped, so that two shells do not do so at once.
[[nodiscard]] internal::UniqueFd lock_state(const std::string& state_directory);

}  // namespace zkrecipes::testenv::zkenv
