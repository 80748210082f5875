#include "session/common/subscriber.hpp"

#include <spdlog/spdlog.h>

namespace zkrecipes::internal {

void log_thrown(spdlog::logger& logger, const char* what, const char* happened) noexcept {
    try {
        throw;
    } catch (const std::exception& error) {
        logger.error("{}{}: {}", what, happened, error.what());
    } catch (...) {
        logger.error("{}{}: something that is not a std::exception", what, happened);
    }
}

}  // namespace zkrecipes::internal
