#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/session.hpp>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Tells `listener` on the notifier lane who leads in `directory`: first what it is, then each change, the latest when
/// it was busy; empty: nobody. Until the subscription or the session ends. Throws Error closed.
Subscription watch_leader(const std::shared_ptr<SessionCore>& core, const char* operation, std::string user_path,
                          std::string directory, std::function<void(const std::optional<Participant>&)> listener);

}  // namespace zkrecipes::internal
