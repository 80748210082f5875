#include "zklock/terminal.hpp"

#include <signal.h>
#include <unistd.h>

namespace zkrecipes::zklock {
namespace {

/// With SIGTTOU blocked, as a group in the background must be to change who is in the foreground.
void set_foreground(pid_t group) {
    sigset_t ttou;
    sigset_t before;
    ::sigemptyset(&ttou);
    ::sigaddset(&ttou, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &ttou, &before);
    ::tcsetpgrp(STDIN_FILENO, group);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

Terminal::Terminal() : present_(::isatty(STDIN_FILENO) != 0) {}

bool Terminal::ours() const { return present_ && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp(); }

int Terminal::to_hand_over() {
    if (!ours()) return -1;
    termios settings{};
    if (::tcgetattr(STDIN_FILENO, &settings) == 0) settings_ = settings;
    return STDIN_FILENO;
}

void Terminal::give(pid_t group) {
    if (ours()) set_foreground(group);
}

void Terminal::take_back(pid_t group, bool repair) {
    if (!present_ || ::tcgetpgrp(STDIN_FILENO) != group) return;
    set_foreground(::getpgrp());
    if (repair && settings_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*settings_);
}

bool Terminal::job_control() {
    const pid_t session = ::getsid(0);
    return session != ::getpid() && ::getsid(::getppid()) == session;
}

}  // namespace zkrecipes::zklock
