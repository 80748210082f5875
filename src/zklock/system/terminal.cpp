#include "zklock/system/terminal.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace zkrecipes::zklock {

Terminal::Terminal()
    : on_stdin_(::isatty(STDIN_FILENO) != 0),
      for_the_command_(on_stdin_ && ::isatty(STDOUT_FILENO) != 0),
      own_(on_stdin_ ? -1 : ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {}

bool Terminal::ours() const { return present() && ::tcgetpgrp(fd()) == ::getpgrp(); }

void Terminal::remember_settings() {
    termios settings{};
    if (::tcgetattr(fd(), &settings) == 0) settings_ = settings;
}

int Terminal::to_hand_over() {
    if (!for_the_command_ || !ours()) return -1;
    remember_settings();
    return STDIN_FILENO;
}

bool Terminal::give(pid_t group) {
    if (!ours()) return false;
    if (!settings_) remember_settings();
    set_foreground(group);
    return true;
}

bool Terminal::take_back(pid_t group, bool repair) {
    if (!present() || ::tcgetpgrp(fd()) != group) return false;
    set_foreground(::getpgrp());
    // Not TCSADRAIN: it waits for output, which Ctrl-S may hold back for any time.
    if (repair && settings_) ::tcsetattr(fd(), TCSANOW, &*settings_);
    return true;
}

/// SIGTTOU must be blocked: otherwise a background group cannot change the foreground group.
void Terminal::set_foreground(pid_t group) const {
    sigset_t ttou;
    sigset_t before;
    ::sigemptyset(&ttou);
    ::sigaddset(&ttou, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &ttou, &before);
    ::tcsetpgrp(fd(), group);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Terminal::job_control() {
    const pid_t session = ::getsid(0);
    return session != ::getpid() && ::getsid(::getppid()) == session;
}

}  // namespace zkrecipes::zklock
