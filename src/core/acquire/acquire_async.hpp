#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/grant.hpp>

#include "core/acquire/acquire.hpp"

namespace zkrecipes::internal {

/// The asynchronous form of all locks: `done` is called on the notifier lane, exactly once. Throws Error bad_option for
/// an empty callback, and closed.
void acquire_async(const std::shared_ptr<SessionCore>& core, const MakeAcquisition& make, const char* operation,
                   const std::string& path, Deadline deadline, std::stop_token stop,
                   std::function<void(AcquireResult)> done);
void acquire_async(const std::shared_ptr<SessionCore>& core, const std::shared_ptr<const Queue>& queue,
                   const char* operation, Deadline deadline, std::stop_token stop,
                   std::function<void(AcquireResult)> done);

}  // namespace zkrecipes::internal
