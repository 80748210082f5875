#include "zklock/signals.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace zkrecipes::zklock {
namespace {

constexpr int kHandled[] = {SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                            SIGCONT, SIGWINCH, SIGCHLD, SIGTTIN, SIGTTOU};

}  // namespace

Signals::Signals() {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, nullptr);  // ignored, the kernel would throw away how the command ended
    sigset_t handled;
    ::sigemptyset(&handled);
    for (const int signal : kHandled) {
        struct sigaction present {};
        ::sigaction(signal, nullptr, &present);
        // A blocked signal is queued even if it is ignored, so what is ignored is not blocked.
        if (present.sa_handler != SIG_IGN) ::sigaddset(&handled, signal);
    }
    sigset_t blocked = handled;
    ::sigaddset(&blocked, SIGPIPE);  // a write to a reader that is gone fails, no more
    // In the background a read from the terminal fails, and a write comes through, but neither stops us: the lock would
    // be lost while whoever started us believes that he has it. (Blocked also where they are ignored.)
    ::sigaddset(&blocked, SIGTTIN);
    ::sigaddset(&blocked, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    fd_ = UniqueFd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
}

std::optional<int> Signals::next() noexcept {
    signalfd_siginfo info{};
    do {
        if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    } while (info.ssi_signo == SIGCONT && info.ssi_code == SI_USER &&
             info.ssi_pid == static_cast<unsigned>(::getpid()));
    return static_cast<int>(info.ssi_signo);
}

bool Signals::ends(int signal) noexcept {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT || signal == SIGUSR1 ||
           signal == SIGUSR2;
}

void Signals::die_of(int signal) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);  // SIGQUIT asks the command for a core, not us
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(signal, &usual, nullptr);
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, signal);
    ::raise(signal);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    ::_exit(128 + signal);
}

}  // namespace zkrecipes::zklock
