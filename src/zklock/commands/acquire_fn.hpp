#pragma once

#include <functional>
#include <stop_token>

#include <zkrecipes/acquire_result.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/session.hpp>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// Asks for a lock, as acquire_async of the recipes does.
using AcquireFn = std::function<void(Deadline, std::stop_token, std::function<void(AcquireResult)>)>;
/// In the mode that the options want.
AcquireFn acquire_fn(Session& session, const Options& options);

}  // namespace zkrecipes::zklock
