#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/lock_options.hpp>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What a candidate's node says, whoever wrote it. Its id is its data, but for those that say more of themselves (an
/// ExclusiveMutex on the path).
Participant candidate_of(const std::string& user_directory, const std::string& name, std::string data,
                         const NodeStat& stat);

/// Who is first in `directory`; empty: nobody. One list and one read, again for as long as the first one vanishes in
/// between. Blocks; throws Error.
std::optional<Participant> read_leader(const std::shared_ptr<SessionCore>& core, const char* operation,
                                       const std::string& user_path, const std::string& directory, Deadline deadline);

/// All of them, in the order of the queue. Blocks; throws Error.
std::vector<Participant> read_candidates(const std::shared_ptr<SessionCore>& core, const char* operation,
                                         const std::string& user_path, const std::string& directory, Deadline deadline);

}  // namespace zkrecipes::internal
