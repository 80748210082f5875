#pragma once

#include <functional>
#include <stop_token>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/session.hpp>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// Acquires a lock, with the parameters of acquire_async of the recipes.
using AcquireFn = std::function<void(Deadline, std::stop_token, std::function<void(AcquireResult)>)>;
/// For the locks and modes in the options.
AcquireFn acquire_fn(Session& session, const Options& options);

}  // namespace zkrecipes::zklock
