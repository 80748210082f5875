#include "zklock/process/child.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include "zklock/system/descriptors.hpp"

namespace zkrecipes::zklock {
namespace {

/// Marks all descriptors close-on-exec that zklock did not inherit. The session's socket is the most important one: it
/// would keep the connection, and so the lock, alive.
bool close_others_on_exec(const std::vector<int>& keep) noexcept {
    unsigned first = 3;
    for (const int fd : keep) {
        if (fd < 3) continue;
        if (static_cast<unsigned>(fd) > first && !close_on_exec(first, static_cast<unsigned>(fd) - 1)) return false;
        first = static_cast<unsigned>(fd) + 1;
    }
    return close_on_exec(first, ~0U);
}

[[noreturn]] void fail(int pipe, ExecResult result) noexcept {
    [[maybe_unused]] const ssize_t size = ::write(pipe, &result, sizeof result);
    ::_exit(127);
}

struct Prepared {  // made before the fork: nothing may be allocated or changed between fork and exec
    std::vector<char*> argv;
    std::vector<char*> environment;
    int terminal;
    int pipe;
    pid_t parent;
};

[[noreturn]] void become_command(const Prepared& prepared, const Inheritance& inheritance,
                                 SwitchBoard& board) noexcept {
    // From here on the switch knows this process, also if SIGSTOP stops it next, which nothing can block. If the switch
    // has already acted, the lock is lost.
    if (!board.claim(::getpid())) fail(prepared.pipe, {ExecResult::too_late, 0});
    if (::setpgid(0, 0) != 0) fail(prepared.pipe, {ExecResult::setup, errno});
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(prepared.pipe, {ExecResult::setup, errno});
    // zklock may have died before the prctl.
    if (::getppid() != prepared.parent) ::_exit(127);
    if (prepared.terminal >= 0) ::tcsetpgrp(prepared.terminal, ::getpid());  // SIGTTOU is still blocked
    if (!close_others_on_exec(inheritance.descriptors)) fail(prepared.pipe, {ExecResult::setup, errno});
    ::sigaction(SIGCHLD, &inheritance.child_action, nullptr);
    ::sigprocmask(SIG_SETMASK, &inheritance.mask, nullptr);
    ::execvpe(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
    fail(prepared.pipe, {ExecResult::exec, errno});
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

}  // namespace

Inheritance Inheritance::capture() {
    Inheritance result;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &result.mask);
    ::sigaction(SIGCHLD, nullptr, &result.child_action);
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), ::closedir);
    while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
        const int fd = std::atoi(entry->d_name);
        const int flags = entry->d_name[0] == '.' ? -1 : ::fcntl(fd, F_GETFD);
        if (flags >= 0 && !(flags & FD_CLOEXEC)) result.descriptors.push_back(fd);
    }
    std::sort(result.descriptors.begin(), result.descriptors.end());
    return result;
}

void Inheritance::withhold(int fd) { std::erase(descriptors, fd); }

void Inheritance::withhold_closed() {
    std::erase_if(descriptors, [](int fd) { return ::fcntl(fd, F_GETFD) < 0; });
}

Child spawn(const ChildSpec& spec, const Inheritance& inheritance, SwitchBoard& board) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    Child child;
    child.exec_pipe = UniqueFd(ends[0]);
    const UniqueFd write_end(ends[1]);
    Prepared prepared{pointers(spec.argv), pointers(spec.environment), spec.terminal, write_end.get(), ::getpid()};

    // Blocks all signals until the command's process is set up: no handler or default action may run before, and
    // SIGTTOU must not stop it when it takes the terminal.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    // vfork, because a copy of the memory would take longer than all else here. The main thread waits until the program
    // is executed. Meanwhile the session goes on, and the switch kills a program that does not get ready in time. Not
    // with a terminal: Ctrl-Z could stop the new process just before, and zklock could not stop with it.
    const pid_t pid = spec.at_terminal ? ::fork() : ::vfork();
    if (pid == 0) become_command(prepared, inheritance, board);
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) throw std::system_error(error, std::generic_category(), "fork");

    child.pid = pid;
    ::setpgid(pid, pid);  // parent and child both call it; afterwards the group can be signalled
    child.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    return child;
}

bool never_executed(pid_t child) noexcept {
    constexpr unsigned long kForkNoExec = 0x40;  // PF_FORKNOEXEC of the kernel, which execve clears
    char text[512];
    const UniqueFd file(::open(("/proc/" + std::to_string(child) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : 0;
    text[std::max<ssize_t>(size, 0)] = '\0';
    // "PID (name) STATE PARENT GROUP SESSION TERMINAL FOREGROUND FLAGS ..."; the name may hold anything.
    const char* const name_end = std::strrchr(text, ')');
    unsigned long flags = 0;
    return name_end && std::sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 && (flags & kForkNoExec);
}

ExecResult read_exec_result(int exec_pipe) noexcept {
    ExecResult result;
    ssize_t size = 0;
    do {
        size = ::read(exec_pipe, &result, sizeof result);
    } while (size < 0 && errno == EINTR);
    if (size != static_cast<ssize_t>(sizeof result)) return {ExecResult::started, 0};
    return result;
}

}  // namespace zkrecipes::zklock
