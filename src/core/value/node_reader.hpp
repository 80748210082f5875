#pragma once

#include <memory>
#include <optional>
#include <string>

#include <zkrecipes/read_node.hpp>

#include "core/operation/steps.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Reads a node, behind a sync or behind a check of a hold (null: whenever). Throws Error bad_path.
Steps<std::optional<NodeContent>> read_content(const std::shared_ptr<SessionCore>& core, const char* operation,
                                               const std::string& path, Fresh fresh,
                                               std::shared_ptr<const Hold> within);

}  // namespace zkrecipes::internal
