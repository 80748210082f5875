#include "zklock/system/signals.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <system_error>

namespace zkrecipes::zklock {
namespace {

constexpr int kPassedOn[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
/// The signals that end zklock, besides the real-time signals. Not in the list: signals that report a fault of the
/// running thread (SEGV, ABRT …), and PIPE and XFSZ, which only make a write fail.
constexpr int kFatal[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO, SIGPWR, SIGSTKFLT};
constexpr int kOfTheJob[] = {SIGCHLD, SIGTTIN, SIGTTOU, SIGTSTP};

template <std::size_t N>
bool contains(const int (&signals)[N], int signal) noexcept {
    return std::find(std::begin(signals), std::end(signals), signal) != std::end(signals);
}

bool is_fatal(int signal) noexcept { return contains(kFatal, signal) || (signal >= SIGRTMIN && signal <= SIGRTMAX); }

}  // namespace

Signals::Signals() {
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, nullptr);  // ignored, the kernel would throw away how the command ended
    sigset_t handled;
    ::sigemptyset(&handled);
    ::sigemptyset(&ignored_);
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
        if (!contains(kPassedOn, signal) && !is_fatal(signal) && !contains(kOfTheJob, signal)) continue;
        struct sigaction present {};
        ::sigaction(signal, nullptr, &present);
        // A blocked signal is queued even if it is ignored, so ignored signals are not blocked.
        ::sigaddset(present.sa_handler == SIG_IGN ? &ignored_ : &handled, signal);
    }
    sigset_t blocked = handled;
    // A write without a reader, or to a file that is too large, only fails.
    ::sigaddset(&blocked, SIGPIPE);
    ::sigaddset(&blocked, SIGXFSZ);
    // In the background, a read from the terminal fails and a write succeeds, but neither stops zklock. Otherwise the
    // lock would be lost while the caller still relies on it. These signals are blocked even if they are ignored.
    ::sigaddset(&blocked, SIGTTIN);
    ::sigaddset(&blocked, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    fd_ = UniqueFd(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) throw std::system_error(errno, std::generic_category(), "signalfd");
}

std::optional<int> Signals::next() noexcept {
    if (taken_ == 0) {
        const ssize_t size = ::read(fd_.get(), batch_.data(), sizeof batch_);
        in_batch_ = size > 0 ? static_cast<std::size_t>(size) / sizeof batch_[0] : 0;
    }
    while (taken_ < in_batch_) {
        const signalfd_siginfo& info = batch_[taken_++];
        const bool own = info.ssi_code == SI_USER && info.ssi_pid == static_cast<unsigned>(::getpid());
        if (info.ssi_signo != SIGCONT || !own) return static_cast<int>(info.ssi_signo);
    }
    taken_ = 0;
    return std::nullopt;
}

std::optional<int> Signals::next_after_stops() noexcept {
    for (;;) {
        const auto signal = next();
        if (signal != SIGTSTP) return signal;
        stop(false);
    }
}

void Signals::stop(bool whole_group) noexcept {
    struct sigaction usual {};
    struct sigaction before {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGTSTP, &usual, &before);
    sigset_t tstp;
    sigset_t mask;
    ::sigemptyset(&tstp);
    ::sigaddset(&tstp, SIGTSTP);
    ::kill(whole_group ? 0 : ::getpid(), SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &tstp, &mask);  // here we stop
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    ::sigaction(SIGTSTP, &before, nullptr);
}

bool Signals::ends(int signal) noexcept {
    return (passed_on(signal) && signal != SIGCONT && signal != SIGWINCH) || is_fatal(signal);
}

std::string Signals::name(int signal) {
    const char* const name = ::sigabbrev_np(signal);
    return name ? name : std::to_string(signal);
}

bool Signals::passed_on(int signal) noexcept { return contains(kPassedOn, signal); }

void Signals::die_of(int signal, bool whole_group) {
    // SIGQUIT asks for a core of the command, not of zklock. The limit does not apply to a program that reads cores
    // from a pipe.
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::prctl(PR_SET_DUMPABLE, 0);
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(signal, &usual, nullptr);
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, signal);
    whole_group ? ::kill(0, signal) : ::raise(signal);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    ::_exit(128 + signal);
}

}  // namespace zkrecipes::zklock
