#pragma once

#include <memory>

#include <zkrecipes/session_options.hpp>

#include "session/stats/event_queue.hpp"

namespace zkrecipes::internal {

/// Where a session writes its log lines: what the options say, or standard error. Errors also go to `events`, if it is
/// not null.
std::shared_ptr<spdlog::logger> logger_of(const SessionOptions& options, const std::shared_ptr<EventQueue>& events);

}  // namespace zkrecipes::internal
