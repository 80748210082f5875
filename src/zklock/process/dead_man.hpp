#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "zklock/system/boot_clock.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// The page of memory that zklock, its command and the dead man's switch share.
struct SwitchBoard {
    /// The time (BootClock) until which the lock is guaranteed. The largest value: there is no lock yet.
    std::atomic<std::int64_t> deadline_ns{INT64_MAX};
    /// The process group to kill: kNobody, a group, or minus a group while the switch kills it. kClosed: the switch
    /// acted before the command registered, so the command must not start.
    std::atomic<std::int64_t> target{0};
    /// The switch has its own name and session: what is meant for zklock does not hit it any more.
    std::atomic<int> ready{0};
    /// The switch has acted and has finished.
    std::atomic<int> fired{0};

    static constexpr std::int64_t kNobody = 0;
    static constexpr std::int64_t kClosed = INT64_MIN;

    Instant deadline() const noexcept { return Instant(Nanoseconds(deadline_ns.load())); }
    /// Called in the command's process before it executes the command, so that the switch knows every running command.
    /// False: too late.
    bool claim(pid_t group) noexcept {
        std::int64_t nobody = kNobody;
        return BootClock::now() < deadline() && target.compare_exchange_strong(nobody, group);
    }
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "shared between processes");

/// A second, minimal process that kills the command at the deadline. So the command cannot outlive the lock even if
/// zklock is stopped, swapped out or traced. It also kills the command's whole group if zklock dies.
///
/// Not for concurrent use. The process is a fork that never executes another program, and makes only calls that are
/// allowed after the fork of a process with threads. It keeps only its own pipe and timer open, and has its own
/// session, so the terminal cannot signal it. It blocks all signals and has another name than zklock in ps: only a
/// SIGKILL or SIGSTOP sent to it in particular stops its work.
class DeadMansSwitch {
public:
    /// `whole_tree`: zklock is the subreaper of its descendants and has no other children, so the switch may kill all
    /// of them. Throws std::system_error.
    explicit DeadMansSwitch(bool whole_tree);
    ~DeadMansSwitch();
    DeadMansSwitch(const DeadMansSwitch&) = delete;
    DeadMansSwitch& operator=(const DeadMansSwitch&) = delete;

    /// Sets the time until which the lock is guaranteed. It may also be lowered.
    void feed(Instant deadline) noexcept;
    /// Blocks until no signal that is meant for zklock hits the switch, and at most until the deadline. Call before the
    /// command starts: pkill would otherwise stop both, and the command would go on. Throws as the constructor does.
    void await_ready();
    /// Whether the switch has acted: it killed the group, or kept the command from starting.
    bool fired() const noexcept;
    /// Makes the switch forget the group, which has ended. Call before the leader is reaped: its number may be reused
    /// then. False: the switch has acted before.
    bool disarm() noexcept;
    /// Ends the switch without waiting for its end. Call when the command is dead and no other will start: from then on
    /// the other functions do nothing.
    void dismiss() noexcept;
    /// Starts a new switch if the process has died; only SIGKILL ends it while zklock lives. True: it had died.
    bool revive();

    pid_t pid() const noexcept { return pid_; }
    /// poll() reports an error of this descriptor when the process has died.
    int end_fd() const noexcept { return dismissed_ ? -1 : kick_.get(); }
    SwitchBoard& board() noexcept { return *board_; }

private:
    void start();

    const bool whole_tree_;
    SwitchBoard* board_;
    pid_t pid_ = -1;
    bool dismissed_ = false;
    UniqueFd kick_;
};

}  // namespace zkrecipes::zklock
