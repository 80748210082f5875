#pragma once

#include <exception>
#include <functional>
#include <stop_token>

#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

struct BesideSignals {
    int signal = 0;              ///< the first one that ends a process; 0: none
    std::exception_ptr failure;  ///< what `work` has thrown
};

/// Runs `work` on a thread of its own and waits until it has ended. Meanwhile the calling (main) thread reads the
/// signals: at the first one that ends a process, it requests a stop, which `work` must obey soon. Throws
/// std::system_error if there is no thread to be had.
BesideSignals run_beside_signals(Signals& signals, const std::function<void(std::stop_token)>& work);

}  // namespace zkrecipes::zklock
