#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "zklock/process/dead_man.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// The state of the process before zklock changed it, which the command inherits.
struct Inheritance {
    sigset_t mask{};                   ///< blocked signals
    struct sigaction child_action {};  ///< of SIGCHLD; zklock itself needs the default
    std::vector<int> descriptors;      ///< open and not close-on-exec, sorted

    /// Call this first in main.
    static Inheritance capture();
    /// Excludes a descriptor that belongs to zklock itself.
    void withhold(int fd);
    /// Excludes the descriptors that zklock has closed by now (--auth-file fd:N). Call before another file is opened,
    /// which could get such a number.
    void withhold_closed();
};

struct ChildSpec {
    std::vector<std::string> argv;
    std::vector<std::string> environment;  ///< "NAME=value"
    int terminal = -1;                     ///< the command's group takes it; -1: none
    bool at_terminal = false;              ///< zklock has a controlling terminal, which may stop its group
};

/// The process that executes the command.
struct Child {
    pid_t pid = -1;      ///< also its process group
    UniqueFd pidfd;      ///< readable when the process has ended; empty if the kernel has no pidfds
    UniqueFd exec_pipe;  ///< readable: see read_exec_result
};

/// The result of the start.
struct ExecResult {
    enum Stage : unsigned char { started, setup, too_late, exec } stage = started;
    int error = 0;  ///< errno of setup and exec
};

/// Forks. The new process registers with the switch, creates its own group, arranges to die with zklock, takes the
/// terminal, and executes the command. It needs no help from zklock, which may be stopped at any point. Without a
/// terminal, the call returns when the command has been executed, or its process has ended: at the latest when the
/// switch kills it.
///
/// Call on the main thread only: the kernel sends the parent-death signal when the forking *thread* ends. Throws
/// std::system_error if it cannot fork.
Child spawn(const ChildSpec& spec, const Inheritance& inheritance, SwitchBoard& board);

/// Whether a child, which must not have been reaped, has never executed another program. False if that is not known.
bool never_executed(pid_t child) noexcept;

/// Reads the exec pipe. Call it when the pipe is readable; then it does not block.
ExecResult read_exec_result(int exec_pipe) noexcept;

}  // namespace zkrecipes::zklock
