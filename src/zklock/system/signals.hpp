#pragma once

#include <signal.h>

#include <optional>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// Signals as readable events. They are blocked from the constructor on, in all threads made later: make it before the
/// session. What was ignored when zklock was started (nohup) stays ignored.
class Signals {
public:
    Signals();

    int fd() const noexcept { return fd_.get(); }
    /// The next one that has come; empty: none. Does not block. Passes over the SIGCONT that we send to our own group.
    std::optional<int> next() noexcept;
    /// The same, for a zklock without a command: after a TSTP it returns when we have been continued.
    std::optional<int> next_after_stops() noexcept;
    /// Does what TSTP (Ctrl-Z) does by default: stops us until somebody continues us. At once back where nobody could,
    /// because no shell looks after our process group. `whole_group`: stops all of our group.
    static void stop(bool whole_group) noexcept;

    /// Whether it ends a process that does nothing about it.
    static bool ends(int signal) noexcept;
    /// Whether a command gets it: TERM, INT, HUP, QUIT, USR1, USR2, CONT, WINCH. The others that end a process are
    /// about zklock itself.
    static bool passed_on(int signal) noexcept;
    /// Whether it was ignored when zklock was started.
    bool ignores(int signal) const noexcept { return ::sigismember(&ignored_, signal) == 1; }
    /// Ends this process by the signal, so that the parent sees what happened (WIFSIGNALED). `whole_group`: and sends
    /// it to the others of our process group, as the terminal would have done.
    [[noreturn]] static void die_of(int signal, bool whole_group = false);

private:
    sigset_t ignored_{};
    UniqueFd fd_;
};

/// Thrown while nothing has been started yet: clean up, then die of this signal.
struct Interrupted {
    int signal;
};

}  // namespace zkrecipes::zklock
