#pragma once

#include <sys/types.h>
#include <termios.h>
#include <unistd.h>

#include <optional>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// The terminal that zklock was started from, if there is one, and who may read from it: a command in a process group
/// of its own would be stopped by SIGTTIN otherwise.
class Terminal {
public:
    Terminal();

    /// Whether it is the command's from the start: stdin and stdout are the terminal. Of `zklock LOCK -- command |
    /// less` it is `less` that reads from it.
    bool for_the_command() const noexcept { return for_the_command_; }
    /// For the command's process to take it by itself; -1: it must not.
    int to_hand_over();
    /// Gives it to `group`. False: it is not ours now (it is after fg, say).
    bool give(pid_t group);
    /// Back to us, if `group` has it; false: it has not. `repair`: a command that was killed may have left it in raw
    /// mode.
    bool take_back(pid_t group, bool repair);

    bool present() const noexcept { return fd() >= 0; }
    /// Whether our own group is in the foreground.
    bool ours() const;
    /// Whether a shell is there that would continue us after we stopped.
    static bool job_control();

private:
    int fd() const noexcept { return own_ ? own_.get() : on_stdin_ ? STDIN_FILENO : -1; }
    void remember_settings();
    void set_foreground(pid_t group) const;

    const bool on_stdin_;
    const bool for_the_command_;
    UniqueFd own_;  // where stdin is something else
    std::optional<termios> settings_;
};

}  // namespace zkrecipes::zklock
