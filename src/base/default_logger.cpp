#include "base/default_logger.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace zkrecipes::internal {

std::shared_ptr<spdlog::logger> default_logger() {
    if (auto registered = spdlog::get("zkrecipes")) return registered;
    // Not registered by us: the name is the user's to take, at any time. Never destroyed: a session may outlive main().
    static const auto& to_stderr = *new std::shared_ptr<spdlog::logger>(
        std::make_shared<spdlog::logger>("zkrecipes", std::make_shared<spdlog::sinks::stderr_sink_mt>()));
    return to_stderr;
}

}  // namespace zkrecipes::internal
