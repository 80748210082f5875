#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

namespace zkrecipes::zklock {

/// The terminal on stdin, if there is one, and who may read from it: a command in a process group of its own would be
/// stopped by SIGTTIN otherwise.
class Terminal {
public:
    Terminal();

    /// For the command's process to take it by itself; -1: it must not.
    int to_hand_over();
    /// Gives it to `group` if it is ours now (after fg, say).
    void give(pid_t group);
    /// Back to us, if `group` has it. `repair`: a command that was killed may have left it in raw mode.
    void take_back(pid_t group, bool repair);

    bool present() const noexcept { return present_; }
    /// Whether a shell is there that would continue us after we stopped.
    static bool job_control();

private:
    bool ours() const;

    const bool present_;
    std::optional<termios> settings_;
};

}  // namespace zkrecipes::zklock
