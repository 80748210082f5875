#pragma once

#include <functional>
#include <stop_token>

#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// Runs `work` on a thread of its own and waits until it has ended. Meanwhile the calling (main) thread reads the
/// signals: at the first one that ends a process, it requests a stop, which `work` must obey soon. Returns this signal;
/// 0: none. Throws what `work` throws; std::system_error if there is no thread to be had.
int run_beside_signals(Signals& signals, const std::function<void(std::stop_token)>& work);

}  // namespace zkrecipes::zklock
