#include "session/common/subscriber.hpp"

#include <spdlog/spdlog.h>

namespace zkrecipes::internal {

void log_thrown(spdlog::logger& logger, const char* what) noexcept {
    try {
        throw;
    } catch (const std::exception& error) {
        logger.error("{} threw: {}", what, error.what());
    } catch (...) {
        logger.error("{} threw", what);
    }
}

}  // namespace zkrecipes::internal
