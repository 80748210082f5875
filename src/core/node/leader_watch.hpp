#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/session.hpp>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Tells `listener` on the notifier lane the leader in `directory`, and then each change; empty: nobody leads. A slow
/// listener is told only the latest. Ends with the subscription or the session. Throws Error closed.
Subscription watch_leader(const std::shared_ptr<SessionCore>& core, const char* operation, std::string user_path,
                          std::string directory, std::function<void(const std::optional<Participant>&)> listener);

}  // namespace zkrecipes::internal
