#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/lock_options.hpp>

#include "core/operation/steps.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// The candidate that a node describes, of any client. Its id is its data, unless the data say more (an ExclusiveMutex
/// on the path).
Participant candidate_of(const std::string& user_directory, const std::string& name, std::string data,
                         const NodeStat& stat);

/// The first candidate in `directory`; empty: there is none. One list and one read, which are repeated if the first one
/// vanishes in between.
Steps<std::optional<Participant>> read_leader(const std::shared_ptr<SessionCore>& core, const char* operation,
                                              const std::string& user_path, const std::string& directory);

/// All candidates, in the order of the queue.
Steps<std::vector<Participant>> read_candidates(std::shared_ptr<SessionCore> core, const char* operation,
                                                std::string user_path, std::string directory);

}  // namespace zkrecipes::internal
