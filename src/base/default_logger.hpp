#pragma once

#include <memory>

namespace spdlog {
class logger;
}

namespace zkrecipes::internal {

/// Writes where `users` does. Nothing is thrown out of it, whatever a sink of the user throws: that must not end a
/// session, and even less the process.
std::shared_ptr<spdlog::logger> guarded(std::shared_ptr<spdlog::logger> users);

/// Where lines go when the user named no logger: the one registered with spdlog as "zkrecipes", else standard error.
/// Not spdlog's own default, which writes to standard output, among what the program has to say there. Guarded, as
/// above.
std::shared_ptr<spdlog::logger> default_logger();

}  // namespace zkrecipes::internal
