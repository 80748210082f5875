#include "core/queue/semaphore_terms.hpp"

#include <limits>

#include "core/operation/json.hpp"

namespace zkrecipes::internal {

std::string write_limit(std::int32_t limit) { return "{\"v\":1,\"leases\":" + std::to_string(limit) + "}"; }

std::optional<std::int32_t> read_limit(std::string_view data) {
    JsonReader reader(data);
    std::int64_t limit = 0;
    const bool read = reader.object(
        [&](const std::string& key) { return key == "leases" ? reader.integer_or_skip(limit) : reader.skip(); });
    if (!read || !reader.at_end() || limit < 1 || limit > std::numeric_limits<std::int32_t>::max()) return {};
    return static_cast<std::int32_t>(limit);
}

}  // namespace zkrecipes::internal
