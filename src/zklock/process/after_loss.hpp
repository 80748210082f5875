#pragma once

#include <string>
#include <vector>

#include "zklock/process/child.hpp"
#include "zklock/system/boot_clock.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// The command of --on-lost.
struct LossCommand {
    std::string text;                      ///< for the shell
    std::vector<std::string> environment;  ///< "NAME=value"
    Nanoseconds limit{0};
    Nanoseconds kill_after{0};  ///< from a signal to zklock to SIGKILL
};

struct LossCommandEnd {
    int error = 0;              ///< errno: it could not be started
    int status = 0;             ///< as waitpid() returns it
    bool timed_out = false;     ///< it was killed at its limit
    bool left_running = false;  ///< it could not be killed, because it runs as another user
    int signal = 0;             ///< the first signal that zklock got meanwhile and that ends a process; 0: none
};

/// Runs it in a process group of its own and waits for its end, but no longer than its limit. Its standard input is
/// /dev/null, and its standard output is the standard error of zklock, because somebody may wait for the end of
/// zklock's standard output. It gets no other descriptors. A signal that ends a process is passed on to it, and the
/// time of `kill_after` begins. At the end, the rest of its group is killed. Processes that left its group go on;
/// zklock is not their subreaper.
LossCommandEnd run_after_loss(const LossCommand& command, const Inheritance& inheritance, Signals& signals);

}  // namespace zkrecipes::zklock
