#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "zklock/system/boot_clock.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// What zklock, its command and the dead man's switch share in one page of memory.
struct SwitchBoard {
    /// BootClock; until when the lock is surely ours. The largest value: nothing is at stake yet.
    std::atomic<std::int64_t> deadline_ns{INT64_MAX};
    /// The process group to be killed: kNobody, a group, minus a group when the switch has taken it, or kClosed when
    /// the switch acted before there was a command, which then must not start.
    std::atomic<std::int64_t> target{0};
    /// The switch has acted, and is done with it.
    std::atomic<int> fired{0};

    static constexpr std::int64_t kNobody = 0;
    static constexpr std::int64_t kClosed = INT64_MIN;

    Instant deadline() const noexcept { return Instant(Nanoseconds(deadline_ns.load())); }
    /// By the command's process itself, before it runs any of the command's code, so that there is no moment at which a
    /// command runs that the switch does not know. False: too late.
    bool claim(pid_t group) noexcept {
        std::int64_t nobody = kNobody;
        return BootClock::now() < deadline() && target.compare_exchange_strong(nobody, group);
    }
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "shared between processes");

/// A second, minimal process that kills the command when the lock's time is over, so that the command cannot outlive
/// the lock when zklock itself is stopped, swapped out or traced. It also kills the command's whole group when zklock
/// dies.
///
/// Not for concurrent use. Make it before the first thread: the process is a fork that never executes another program;
/// it holds nothing open but its own pipe and timer, and stands in its own session, out of reach of the terminal. It
/// blocks all signals, and ps shows it under another name than zklock's: only a SIGKILL or SIGSTOP that is meant for it
/// keeps it from its work.
class DeadMansSwitch {
public:
    /// `whole_tree`: zklock is the subreaper of its descendants and has no other children, so all of them may be
    /// killed. Throws std::system_error.
    explicit DeadMansSwitch(bool whole_tree);
    ~DeadMansSwitch();
    DeadMansSwitch(const DeadMansSwitch&) = delete;
    DeadMansSwitch& operator=(const DeadMansSwitch&) = delete;

    /// Until when the lock is surely ours. May be lowered too.
    void feed(Instant deadline) noexcept;
    /// Has it taken the group, or closed the gate before one started?
    bool fired() const noexcept;
    /// The group is gone, and may be forgotten: before its leader is reaped, or its number could be another's by then.
    void disarm() noexcept;
    /// Makes another one if it died (nothing but SIGKILL ends it while we live). True: it had died.
    bool revive();

    pid_t pid() const noexcept { return pid_; }
    SwitchBoard& board() noexcept { return *board_; }

private:
    void start();

    const bool whole_tree_;
    SwitchBoard* board_;
    pid_t pid_ = -1;
    UniqueFd kick_;
};

}  // namespace zkrecipes::zklock
