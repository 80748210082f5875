#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "zklock/command_line/options.hpp"
#include "zklock/process/child.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// What the command of --on-lost learns about a loss.
struct Loss {
    std::string reason;
    std::int64_t token = 0;
    std::vector<std::string> nodes;
};

/// Runs the command of --on-lost, if any, and warns if it fails. Call when nothing of the lost lock is left: the
/// command that ran under it is dead, and the users of zklock know of the loss. Returns the signal that zklock got
/// meanwhile; 0: none.
int after_loss(const Options& options, Console& console, const Inheritance& inheritance, Signals& signals,
               const Loss& loss);
/// The same in a new process, so that this one can end at once. Other threads may run. Returns the process; 0: no
/// command is wanted; -1: it could not be started.
pid_t after_loss_in_background(const Options& options, Console& console, const Inheritance& inheritance,
                               EventLog& events, Signals& signals, const Loss& loss);

}  // namespace zkrecipes::zklock
