#pragma once

namespace zkrecipes::internal {

/// What is said where a session has no room for one more watch (session/common/budget.hpp).
inline constexpr const char* kNoWatchBudget = "this session watches as many nodes as ZooKeeper survives";

}  // namespace zkrecipes::internal
