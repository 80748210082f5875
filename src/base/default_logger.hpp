#pragma once

#include <memory>

namespace spdlog {
class logger;
}

namespace zkrecipes::internal {

/// Where lines go when the user named no logger: the one registered with spdlog as "zkrecipes", else standard error.
/// Not spdlog's own default, which writes to standard output, among what the program has to say there.
std::shared_ptr<spdlog::logger> default_logger();

}  // namespace zkrecipes::internal
