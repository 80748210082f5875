#include "core/queue/semaphore_terms.hpp"

#include <limits>

#include "core/operation/json.hpp"

namespace zkrecipes::internal {

std::string write_limit(std::int32_t limit) { return "{\"v\":1,\"leases\":" + std::to_string(limit) + "}"; }

std::optional<std::int32_t> read_limit(std::string_view data) {
    const auto object = parse_json_object(data);
    const std::int64_t limit = object ? integer_member(*object, "leases").value_or(0) : 0;
    if (limit < 1 || limit > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    return static_cast<std::int32_t>(limit);
}

}  // namespace zkrecipes::internal
