#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// Makes signals readable from a descriptor. The constructor blocks them for this thread and all later threads:
/// construct it before the session. Signals that were ignored when zklock started (nohup) stay ignored.
class Signals {
public:
    Signals();

    int fd() const noexcept { return fd_.get(); }
    /// The next pending signal; empty: none, or so many that something else has its turn before the rest: those that
    /// come without end keep nobody from looking at the lease. Does not block. Skips the SIGCONT that zklock sends to
    /// its own group.
    std::optional<int> next() noexcept;
    /// The same while there is no command: a TSTP stops zklock, and the call returns after it has been continued.
    std::optional<int> next_after_stops() noexcept;
    /// Does what TSTP (Ctrl-Z) does by default: stops zklock until it is continued. Returns immediately if no shell
    /// controls this process group, because nobody could continue it. `whole_group`: stops the whole process group.
    static void stop(bool whole_group) noexcept;

    /// Whether the signal ends a process by default.
    static bool ends(int signal) noexcept;
    /// Whether zklock passes the signal on to the command: TERM, INT, HUP, QUIT, USR1, USR2, CONT, WINCH. Other signals
    /// that end a process concern zklock itself.
    static bool passed_on(int signal) noexcept;
    /// "TERM"; the number of a signal without a name.
    static std::string name(int signal);
    /// Whether it was ignored when zklock was started.
    bool ignores(int signal) const noexcept { return ::sigismember(&ignored_, signal) == 1; }
    /// Ends this process by the signal, so that its parent sees the signal (WIFSIGNALED). `whole_group`: also sends it
    /// to the rest of the process group, as the terminal would have done.
    [[noreturn]] static void die_of(int signal, bool whole_group = false);

private:
    sigset_t ignored_{};
    UniqueFd fd_;
    std::array<signalfd_siginfo, 16> batch_{};
    std::size_t in_batch_ = 0;
    std::size_t taken_ = 0;
};

/// Thrown before the command starts: clean up, then die of this signal.
struct Interrupted {
    int signal;
};

}  // namespace zkrecipes::zklock
