#pragma once

#include <optional>
#include <vector>

#include "zklock/process/child.hpp"
#include "zklock/process/dead_man.hpp"
#include "zklock/system/out_of_reach.hpp"

namespace zkrecipes::zklock {

/// How the command's first process ended.
struct ExitStatus {
    bool signalled = false;
    int number = 0;  ///< exit code or signal
    int code() const noexcept { return signalled ? 128 + number : number; }
};

/// The command's processes, from the fork until the last of them is gone. The first one, once it has ended, is left a
/// zombie until then, so that the number of the group cannot become another's while somebody may still signal it.
class SupervisedChild {
public:
    SupervisedChild(Child child, DeadMansSwitch& dead_man, bool whole_tree);
    ~SupervisedChild();  ///< by then the group should be gone; if not, it is killed

    pid_t group() const noexcept { return child_.pid; }
    int pidfd() const noexcept { return exited_ || !child_.pidfd ? -1 : child_.pidfd.get(); }
    int exec_pipe() const noexcept { return child_.exec_pipe.get(); }
    ExecResult take_exec_result() noexcept;

    void signal(int number) noexcept;
    void kill_tree() noexcept;
    /// Those who left the group, once the group is gone. (Only where zklock is their subreaper.)
    void kill_escaped() noexcept;

    /// Who of them has become another user, so that no signal of ours reaches it. Reads the whole of /proc.
    std::vector<OutOfReach> out_of_reach() const;
    /// Whether the first process has, which costs nothing to ask.
    bool leader_refuses_signals() const noexcept { return !exited_ && refuses_signals(child_.pid); }

    /// Looks what became of our children. Call after SIGCHLD.
    void look();
    const std::optional<ExitStatus>& exited() const noexcept { return exited_; }
    /// The signal by which the first process was stopped since the last call; 0: it was not.
    int take_stop_signal() noexcept;
    /// Whether nobody of the group is alive any more; then it is reaped and forgotten.
    bool finish_if_gone();
    bool gone() const noexcept { return gone_; }

private:
    Child child_;
    DeadMansSwitch& dead_man_;
    const bool whole_tree_;
    std::optional<ExitStatus> exited_;
    bool gone_ = false;
};

}  // namespace zkrecipes::zklock
