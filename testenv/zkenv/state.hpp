#pragma once

#include <optional>
#include <string>

#include "testenv/src/unique_fd.hpp"

namespace zkrecipes::testenv::zkenv {

/// The directory of an environment's control socket: $XDG_RUNTIME_DIR/zkenv/NAME, or /tmp/zkenv-UID/NAME. Throws Error
/// for an invalid name, or if the folder in /tmp belongs to another user. `make`: creates the parent folder.
[[nodiscard]] std::string state_directory(const std::string& name, bool make);
[[nodiscard]] std::string socket_path(const std::string& state_directory);

/// Sends one line to the supervisor and returns its whole answer; empty if no supervisor runs.
[[nodiscard]] std::optional<std::string> ask_supervisor(const std::string& state_directory, const std::string& line);

/// A lock that is held while an environment starts or stops, so that two shells do not do so at the same time.
[[nodiscard]] internal::UniqueFd lock_state(const std::string& state_directory);

}  // namespace zkrecipes::testenv::zkenv
