#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <zkrecipes/acquire_result.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/session.hpp>

#include "zklock/options.hpp"

namespace zkrecipes::zklock {

/// Asks for a lock, as acquire_async of the recipes does.
using Ask = std::function<void(Deadline, std::stop_token, std::function<void(AcquireResult)>)>;
/// In the mode that the options want.
Ask ask_for_lock(Session& session, const Options& options);

/// What is told of the lock in JSON: "path", and "node" when it is held; of a set "locks", each with these and "mode".
nlohmann::json lock_fields(const Options& options, const std::vector<std::string>& nodes);

}  // namespace zkrecipes::zklock
