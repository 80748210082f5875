#pragma once

#include <string>
#include <vector>

#include "zklock/process/child.hpp"
#include "zklock/system/boot_clock.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// The command of --on-lost, with all that starting it needs.
class LossCommand {
public:
    /// `text`: for the shell. `environment`: "NAME=value". `kill_after`: from a signal to zklock to SIGKILL.
    LossCommand(const std::string& text, std::vector<std::string> environment, Nanoseconds limit,
                Nanoseconds kill_after);
    LossCommand(const LossCommand&) = delete;
    LossCommand& operator=(const LossCommand&) = delete;

    char* const* argv() const noexcept { return argv_.data(); }
    char* const* environment() const noexcept { return environment_.data(); }
    Nanoseconds limit() const noexcept { return limit_; }
    Nanoseconds kill_after() const noexcept { return kill_after_; }

private:
    std::vector<std::string> words_, variables_;
    std::vector<char*> argv_, environment_;
    Nanoseconds limit_, kill_after_;
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
/// zklock is not their subreaper. Async-signal-safe: a process may call it that was forked beside other threads.
LossCommandEnd run_after_loss(const LossCommand& command, const Inheritance& inheritance, Signals& signals) noexcept;

}  // namespace zkrecipes::zklock
