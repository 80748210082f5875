#pragma once

#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zklock/system/boot_clock.hpp"

namespace zkrecipes::zklock {

/// What happens to the command if the connection breaks.
enum class OnSuspend {
    ride,  ///< nothing, until the lock is about to be lost
    stop,  ///< it is stopped immediately
    pause  ///< it is frozen until the lock is confirmed again
};

/// The time from the stop signal to SIGKILL: --kill-after, or a sixth of the session timeout T, and at most two fifths
/// of T. Between two checks the lease falls from two thirds of T to about half of T, so a longer time would stop a
/// command although every check succeeds.
Nanoseconds kill_delay(std::optional<Nanoseconds> wanted, Nanoseconds session_timeout) noexcept;

struct SupervisorOptions {
    OnSuspend on_suspend = OnSuspend::ride;
    int stop_signal = 15;
    Nanoseconds kill_after{0};       ///< K: from the stop signal to SIGKILL
    Nanoseconds session_timeout{0};  ///< T, as negotiated
    std::optional<Nanoseconds> max_run;
    Nanoseconds min_hold{0};
};

/// What the caller has to do, in this order.
struct Action {
    enum Kind {
        signal_group,
        kill_tree,  ///< SIGKILL to the group and to processes that left it
        report_suspended,
        report_resumed,
        report_lost,     ///< `reason`
        report_stopping  ///< `signal`
    } kind;
    int signal = 0;
    std::string reason;

    bool operator==(const Action&) const = default;
};
using Actions = std::vector<Action>;

/// Decides what happens to a command that runs under a lock. Pure: the caller reports events with their times.
///
/// It enforces this rule: at the deadline D, until which the lock is guaranteed, no process of the command's group is
/// alive. Nor is the lock released while one is alive. So it sends TERM at D - K and KILL at D.
class Supervisor {
public:
    enum class End {
        command,  ///< it ended by itself, or by a signal that zklock passed on
        lost,
        max_run,
        interrupted  ///< zklock received a signal that is not passed on: ended_by()
    };

    Supervisor(SupervisorOptions options, Instant acquired_at, Instant lease_until);

    // The caller calls one of these at every event, and at the latest at next().
    Actions tick(Instant now);
    /// A new reading of the time until which the lock is guaranteed; `now`: no longer.
    Actions lease_until(Instant now, Instant until);
    /// A server granted another session timeout T, to which this K belongs. K only becomes shorter: right after T has
    /// become longer, the lease is still that of the shorter one.
    void negotiated(Nanoseconds session_timeout, Nanoseconds kill_after) noexcept;
    /// Sets the reason that is reported if the lease ends.
    void unconfirmed_because(std::string reason) { unconfirmed_reason_ = std::move(reason); }
    /// The servers confirmed that the node existed at the time `asked`. This does not extend the lease.
    Actions confirmed(Instant now, Instant asked);
    Actions disconnected(Instant now);
    Actions reconnected(Instant now);
    Actions lost(Instant now, std::string reason);
    Actions signal(Instant now, int number);
    Actions command_started(Instant now);
    /// The command stopped (Ctrl-Z), and zklock with it; `job_continued`: after fg or bg.
    Actions job_stopped(Instant now);
    Actions job_continued(Instant now);
    /// The first process of the command has ended. Other processes of its group may be alive and keep the lock.
    Actions leader_exited(Instant now);
    Actions group_gone(Instant now);

    std::optional<Instant> next() const;
    /// The time at which no process of the group may be alive, whatever else happens.
    Instant dead_by() const noexcept { return dead_by_; }
    bool finished() const noexcept { return phase_ == Phase::finished; }
    End end() const noexcept { return end_; }
    /// zklock was asked to end: by TERM, INT, or a signal that is not passed on.
    bool asked_to_stop() const noexcept { return stop_requests_ > 0 || ended_by_ != 0; }
    /// The signal of which zklock must die: one that is not passed on, or the Ctrl-C that ended --min-hold early; 0:
    /// none.
    int ended_by() const noexcept { return ended_by_; }
    /// How often this signal, INT or QUIT, has arrived.
    int interrupts(int number) const noexcept { return number == SIGINT ? interrupts_ : quits_; }
    const std::string& lost_reason() const noexcept { return lost_reason_; }
    /// The command is stopped and continues only after the lock has been confirmed.
    bool frozen() const noexcept { return paused_ || job_stopped_; }
    /// The lock may be released only if this is true.
    bool group_is_gone() const noexcept { return phase_ == Phase::lingering || phase_ == Phase::finished; }

private:
    enum class Phase {
        running,
        draining,   // the leader has ended, others of the group have not
        lingering,  // all have; --min-hold is not over
        finished
    };

    void check(Instant now, Actions& actions);
    void resume(Actions& actions);
    void stop(Instant now, End why, Actions& actions);
    void mark_lost(Instant now, std::string reason, Actions& actions);
    void kill_by(Instant when);

    SupervisorOptions options_;
    const Instant acquired_at_;
    Phase phase_ = Phase::running;
    End end_ = End::command;
    std::string lost_reason_;
    std::string unconfirmed_reason_ = "no server confirmed the lock in time";
    Instant lease_until_;
    Instant dead_by_;
    std::optional<Instant> max_run_at_;
    std::optional<Instant> kill_at_;       // moves forward while the group survives
    std::optional<Instant> verify_after_;  // a check that was sent later than this ends the suspension
    bool connected_ = true;
    bool suspended_ = false;    // since a disconnect, until the lock was checked on a new connection
    bool paused_ = false;       // frozen until then
    bool job_stopped_ = false;  // by another process
    bool stopping_ = false;
    bool killing_ = false;  // the first SIGKILL is out
    bool lost_ = false;
    int stop_requests_ = 0;
    int interrupts_ = 0;
    int quits_ = 0;
    int ended_by_ = 0;
};

}  // namespace zkrecipes::zklock
