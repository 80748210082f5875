#include "zklock/process/after_loss.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "zklock/system/descriptors.hpp"
#include "zklock/system/out_of_reach.hpp"
#include "zklock/system/process_table.hpp"

namespace zkrecipes::zklock {
namespace {

[[noreturn]] void become_shell(char* const* argv, char* const* environment, const Inheritance& inheritance,
                               pid_t parent) noexcept {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    const int null = ::open("/dev/null", O_RDWR);
    if (null < 0 || ::dup2(null, STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || !close_from(3)) {
        ::_exit(126);
    }
    ::sigaction(SIGCHLD, &inheritance.child_action, nullptr);
    ::sigprocmask(SIG_SETMASK, &inheritance.mask, nullptr);
    ::execve(argv[0], argv, environment);
    ::_exit(127);
}

/// Returns the pid, or -1 with errno.
pid_t start_shell(const LossCommand& command, const Inheritance& inheritance) noexcept {
    const pid_t parent = ::getpid();
    // The signals are blocked in zklock, so no handler runs in the new process before it executes the shell.
    const pid_t pid = ::fork();
    if (pid == 0) become_shell(command.argv(), command.environment(), inheritance, parent);
    if (pid > 0) ::setpgid(pid, pid);
    return pid;
}

bool has_ended(pid_t pid) noexcept {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/// Waits for the end of the process or for a signal, and at most until then. SIGCHLD arrives as a signal, too.
void wait_for_news(const Signals& signals, Instant until) noexcept {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - BootClock::now()).count();
    pollfd news{signals.fd(), POLLIN, 0};
    // Not for long at once: SIGCHLD may have been ignored when zklock was started.
    ::poll(&news, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 200)));
}

class NoSubreaper {
public:
    NoSubreaper() noexcept {
        int before = 0;
        if (::prctl(PR_GET_CHILD_SUBREAPER, &before) != 0 || before == 0) return;
        was_ = ::prctl(PR_SET_CHILD_SUBREAPER, 0) == 0;
    }
    ~NoSubreaper() {
        if (was_) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
    NoSubreaper(const NoSubreaper&) = delete;
    NoSubreaper& operator=(const NoSubreaper&) = delete;

private:
    bool was_ = false;
};

}  // namespace

LossCommand::LossCommand(const std::string& text, std::vector<std::string> environment, Nanoseconds limit,
                         Nanoseconds kill_after)
    : variables_(std::move(environment)), limit_(limit), kill_after_(kill_after) {
    const char* const shell = std::getenv("SHELL");
    words_ = {shell && *shell ? shell : "/bin/sh", "-c", text};
    for (std::string& word : words_) argv_.push_back(word.data());
    argv_.push_back(nullptr);
    for (std::string& variable : variables_) environment_.push_back(variable.data());
    environment_.push_back(nullptr);
}

LossCommandEnd run_after_loss(const LossCommand& command, const Inheritance& inheritance, Signals& signals) noexcept {
    LossCommandEnd end;
    // What the shell leaves running is not a descendant of zklock: it would count as that of the next command of elect.
    const NoSubreaper no_subreaper;
    const pid_t pid = start_shell(command, inheritance);
    if (pid < 0) {
        end.error = errno;
        return end;
    }
    const Instant limit = BootClock::now() + command.limit();
    Instant kill_at = limit;
    while (!has_ended(pid)) {
        while (const auto signal = signals.next_after_stops()) {
            if (!Signals::ends(*signal)) continue;
            const Instant now = BootClock::now();
            kill_at = std::min(kill_at, end.signal == 0 ? now + command.kill_after() : now);
            if (end.signal == 0) end.signal = *signal;
            ::kill(-pid, Signals::passed_on(*signal) ? *signal : SIGTERM);
        }
        if (BootClock::now() >= kill_at) {
            end.timed_out = end.timed_out || kill_at == limit;
            ProcessTable table;
            kill_descendants(pid, 0, table);
            ::kill(-pid, SIGKILL);
            if (refuses_signals(pid)) {  // for example sudo, which the shell has executed in its own process
                end.left_running = true;
                return end;
            }
        }
        wait_for_news(signals, std::max(kill_at, BootClock::now() + std::chrono::milliseconds(20)));
    }
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, &end.status, 0);
    return end;
}

}  // namespace zkrecipes::zklock
