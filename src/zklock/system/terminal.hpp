#pragma once

#include <sys/types.h>
#include <termios.h>
#include <unistd.h>

#include <optional>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// The terminal from which zklock was started, if any. Decides which process group may read from it: without the
/// terminal, SIGTTIN would stop a command in its own process group.
class Terminal {
public:
    Terminal();

    /// Whether the command gets the terminal at its start: stdin and stdout are the terminal. In `zklock LOCK --
    /// command | less`, `less` reads from the terminal.
    bool for_the_command() const noexcept { return for_the_command_; }
    /// The descriptor with which the command's process takes the terminal; -1: it must not.
    int to_hand_over();
    /// Gives the terminal to `group`. False: zklock does not have it now (after `fg` it does).
    bool give(pid_t group);
    /// Takes the terminal back from `group`; false: the group does not have it. `repair`: restores the settings, since
    /// a killed command may have left raw mode.
    bool take_back(pid_t group, bool repair);

    bool present() const noexcept { return fd() >= 0; }
    /// Whether zklock's own group is in the foreground.
    bool ours() const;
    /// Whether a shell could continue zklock after a stop.
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
