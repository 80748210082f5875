#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "zklock/process/dead_man.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// How the world was before zklock touched it: what the command shall find again.
struct Inheritance {
    sigset_t mask{};                   ///< blocked signals
    struct sigaction child_action {};  ///< of SIGCHLD; zklock itself needs the default
    std::vector<int> descriptors;      ///< open and not close-on-exec, sorted

    /// Call first thing in main.
    static Inheritance capture();
    /// Not for the command after all: a descriptor that is zklock's own.
    void withhold(int fd);
    /// What zklock has read and closed by now (--auth-file fd:N) was its own. Call before anything else is opened,
    /// which may get the number.
    void withhold_closed();
};

struct ChildSpec {
    std::vector<std::string> argv;
    std::vector<std::string> environment;  ///< "NAME=value"
    int terminal = -1;                     ///< to be handed over to the command's group; -1: none
};

/// The process in which the command is about to run.
struct Child {
    pid_t pid = -1;      ///< also its process group
    UniqueFd pidfd;      ///< readable when it has ended; empty where the kernel has none
    UniqueFd exec_pipe;  ///< readable: see read_exec_result
};

/// What became of the start.
struct ExecResult {
    enum Stage : unsigned char { started, setup, too_late, exec } stage = started;
    int error = 0;  ///< errno of setup and exec
};

/// Forks; the new process puts itself into its own group, makes sure that it dies with zklock, reports to the switch,
/// takes the terminal, and executes the command, all by itself, so that zklock may be stopped at any point in between.
///
/// Call on the main thread only: the kernel sends the parent-death signal when the forking *thread* ends. Throws
/// std::system_error when it cannot fork.
Child spawn(const ChildSpec& spec, const Inheritance& inheritance, SwitchBoard& board);

/// Reads what the exec pipe has; call when it is readable. Does not block then.
ExecResult read_exec_result(int exec_pipe) noexcept;

}  // namespace zkrecipes::zklock
