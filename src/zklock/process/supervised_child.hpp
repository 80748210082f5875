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

/// Which processes of the command keep the lock.
enum class Extent {
    group,  ///< its process group
    tree    ///< all descendants of zklock, which is their subreaper
};

/// The processes of the command, from the fork until the last one has ended. Until then the first process stays a
/// zombie, so that the number of the group is not reused while zklock may still signal it.
class SupervisedChild {
public:
    /// `whole_tree`: zklock is the subreaper, and has no other children than the command and the switch. Extent::tree
    /// needs that.
    SupervisedChild(DeadMansSwitch& dead_man, bool whole_tree, Extent extent = Extent::group) noexcept;
    ~SupervisedChild();  ///< kills the group if it is still alive

    /// spawn(), once. Nothing can fail between the fork and the supervision. Call nothing else if this throws.
    void start(const ChildSpec& spec, const Inheritance& inheritance);

    pid_t group() const noexcept { return child_.pid; }
    int pidfd() const noexcept { return exited_ || !child_.pidfd ? -1 : child_.pidfd.get(); }
    int exec_pipe() const noexcept { return child_.exec_pipe.get(); }
    /// too_late also if the switch killed the process before it executed the command.
    ExecResult take_exec_result() noexcept;

    void signal(int number) noexcept;
    void kill_tree() noexcept;
    /// Kills the processes that left the group, after the group has ended. Only if zklock is their subreaper.
    void kill_escaped() noexcept;

    /// The processes that changed their user, so that zklock cannot signal them. Reads the whole of /proc.
    std::vector<OutOfReach> out_of_reach() const;
    /// Whether the first process changed its user. A cheap check.
    bool leader_refuses_signals() const noexcept { return !exited_ && refuses_signals(child_.pid); }

    /// Collects the news of child processes. Call after SIGCHLD.
    void look();
    const std::optional<ExitStatus>& exited() const noexcept { return exited_; }
    /// The signal that stopped the first process since the last call; 0: none.
    int take_stop_signal() noexcept;
    /// Whether all processes that keep the lock have ended; then reaps and forgets it.
    bool finish_if_gone();
    bool gone() const noexcept { return gone_; }
    /// gone(): whether the switch has acted before. Then the end of the group says nothing of the command, also if the
    /// lock seems to be guaranteed again.
    bool ended_by_the_switch() const noexcept { return ended_by_the_switch_; }

private:
    bool keeps_lock() const;
    void reap_others();

    Child child_;
    DeadMansSwitch& dead_man_;
    const bool whole_tree_;
    const Extent extent_;
    std::optional<ExitStatus> exited_;
    bool never_executed_ = false;
    bool gone_ = false;
    bool ended_by_the_switch_ = false;
    int kills_ = 0;  // calls of kill_tree()
};

}  // namespace zkrecipes::zklock
