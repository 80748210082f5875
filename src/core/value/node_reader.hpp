#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/read_node.hpp>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Reads a node, behind a sync or behind a check of a hold (null: whenever). Blocks; throws Error, unreachable when the
/// deadline passes or a stop is requested.
std::optional<NodeContent> read_content(const std::shared_ptr<SessionCore>& core, const char* operation,
                                        const std::string& path, Fresh fresh, std::shared_ptr<const Hold> within,
                                        Deadline deadline, std::stop_token stop);

}  // namespace zkrecipes::internal
