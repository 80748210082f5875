#include "zklock/process/supervised_child.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <type_traits>

#include "zklock/process/children.hpp"
#include "zklock/system/process_table.hpp"

namespace zkrecipes::zklock {

SupervisedChild::SupervisedChild(DeadMansSwitch& dead_man, bool whole_tree, Extent extent) noexcept
    : dead_man_(dead_man), whole_tree_(whole_tree), extent_(extent) {}

void SupervisedChild::start(const ChildSpec& spec, const Inheritance& inheritance) {
    static_assert(std::is_nothrow_move_assignable_v<Child>);
    dead_man_.await_ready();
    child_ = spawn(spec, inheritance, dead_man_.board());
}

SupervisedChild::~SupervisedChild() {
    if (gone_ || child_.pid < 0) return;
    // Only after an error in zklock. The lock is released after this, so no process may be alive then.
    kill_tree();
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WNOWAIT);
    for (int round = 0; round < 1000 && keeps_lock(); ++round) {
        if (extent_ == Extent::tree) kill_tree();
        const timespec pause{0, 5'000'000};
        ::nanosleep(&pause, nullptr);
    }
    dead_man_.disarm();
    ::waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED);
}

ExecResult SupervisedChild::take_exec_result() noexcept {
    const ExecResult result = read_exec_result(child_.exec_pipe.get());
    child_.exec_pipe.reset();
    if (result.stage != ExecResult::started) return result;
    // The end of the process also closes the pipe.
    if (!gone_) never_executed_ = never_executed(child_.pid);
    return never_executed_ && dead_man_.fired() ? ExecResult{ExecResult::too_late, 0} : result;
}

void SupervisedChild::signal(int number) noexcept {
    if (!gone_) ::kill(-child_.pid, number);
}

void SupervisedChild::kill_tree() noexcept {
    signal(SIGKILL);
    ProcessTable table;
    // The caller repeats this call. Processes of the tree that fork all the time need rounds in quick succession. What
    // survives many of them is out of reach.
    const int rounds = extent_ == Extent::tree && kills_ < 20 ? 20 : 1;
    ++kills_;
    for (int round = 0; round < rounds; ++round) {
        if (kill_descendants(whole_tree_ ? ::getpid() : child_.pid, dead_man_.pid(), table) == 0) return;
    }
}

void SupervisedChild::kill_escaped() noexcept {
    if (!whole_tree_) return;
    ProcessTable table;
    // Each round may find processes that were forked during the previous one. A process that survives SIGKILL for this
    // time hangs in the kernel, which zklock cannot change.
    for (int round = 0; round < 100 && kill_descendants(::getpid(), dead_man_.pid(), table) > 0; ++round) {
        const timespec pause{0, 2'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

std::vector<OutOfReach> SupervisedChild::out_of_reach() const {
    if (gone_) return {};
    std::vector<OutOfReach> found =
        extent_ == Extent::tree ? out_of_reach_below(::getpid(), dead_man_.pid()) : zklock::out_of_reach(child_.pid);
    if (!found.empty()) return found;
    // If /proc hides them (hidepid).
    if (leader_refuses_signals()) return {{child_.pid, {}}};
    // In this order: the last process may die in between.
    if (exited_ && !group_alive(child_.pid) && live_child_in(child_.pid)) return {{0, {}}};
    return {};
}

void SupervisedChild::look() {
    siginfo_t info{};
    if (!exited_ && ::waitid(P_PID, static_cast<id_t>(child_.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child_.pid) {
        exited_ = ExitStatus{info.si_code != CLD_EXITED, info.si_status};
        never_executed_ = never_executed(child_.pid);
    }
    if (!exited_) reap_others();
}

/// As the subreaper, zklock gets the orphans of the command. Stops at the zombie of the command itself, whose number
/// must not be used again while zklock may send signals to its group.
void SupervisedChild::reap_others() {
    for (;;) {
        siginfo_t info{};
        if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        if (info.si_pid == child_.pid && !gone_) return;
        ::waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
    }
}

int SupervisedChild::take_stop_signal() noexcept {
    siginfo_t info{};
    if (gone_ || ::waitid(P_PID, static_cast<id_t>(child_.pid), &info, WSTOPPED | WNOHANG) != 0) return 0;
    return info.si_pid == child_.pid && info.si_code == CLD_STOPPED ? info.si_status : 0;
}

/// The first process has ended.
bool SupervisedChild::keeps_lock() const {
    if (whole_tree_ && !live_child()) return false;
    if (extent_ == Extent::tree) return true;
    // /proc may hide processes of other users (hidepid), but waitid still finds them, since zklock is their parent by
    // now.
    return group_alive(child_.pid) || live_child_in(child_.pid);
}

bool SupervisedChild::finish_if_gone() {
    if (gone_) return true;
    if (!exited_) return false;
    if (keeps_lock()) {
        // Reads the whole of /proc, since the command's own zombie may hide the others from waitid.
        cleaning_adopted(child_.pid, dead_man_.pid());
        return false;
    }
    ended_by_the_switch_ = !dead_man_.disarm();
    gone_ = true;
    reap_others();
    return true;
}

}  // namespace zkrecipes::zklock
