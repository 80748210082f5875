#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <zkrecipes/session.hpp>

#include "core/operation/steps.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Tells `listener` on the notifier lane the names and data of the children of `directory`, and then each change. A
/// slow listener is told only the latest. Ends with the subscription or the session. Throws Error closed.
Subscription watch_group(const std::shared_ptr<SessionCore>& core, const char* operation, std::string user_path,
                         std::string directory,
                         std::function<void(const std::map<std::string, std::string>&)> listener);

/// The same once, as the connected server knows them.
Steps<std::map<std::string, std::string>> read_group(const std::shared_ptr<SessionCore>& core, const char* operation,
                                                     const std::string& user_path, const std::string& directory);

}  // namespace zkrecipes::internal
