#pragma once

#include <csignal>

namespace zkrecipes::internal {

/// Blocks signals in the calling thread while it lives. A thread that is created meanwhile starts with them blocked, so
/// that the host's signal handlers never run on a thread of the library or of the C client. Signals that a fault raises
/// in the thread itself stay open: blocked, they would end the process past the host's crash handler.
class SignalMaskForNewThreads {
public:
    SignalMaskForNewThreads() noexcept {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalMaskForNewThreads() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalMaskForNewThreads(const SignalMaskForNewThreads&) = delete;
    SignalMaskForNewThreads& operator=(const SignalMaskForNewThreads&) = delete;

private:
    sigset_t before_;
};

}  // namespace zkrecipes::internal
