#include "zklock/process/supervisor.hpp"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {
namespace {

/// SIGKILL is repeated, because processes that leave the group at that moment are found only later.
constexpr Nanoseconds kKillAgain = std::chrono::milliseconds(100);

}  // namespace

Nanoseconds kill_delay(std::optional<Nanoseconds> wanted, Nanoseconds session_timeout) noexcept {
    return std::min(wanted.value_or(session_timeout / 6), session_timeout * 2 / 5);
}

Supervisor::Supervisor(SupervisorOptions options, Instant acquired_at, Instant lease_until)
    : options_(std::move(options)), acquired_at_(acquired_at), lease_until_(lease_until), dead_by_(lease_until) {}

Actions Supervisor::tick(Instant now) {
    Actions actions;
    check(now, actions);
    return actions;
}

Actions Supervisor::lease_until(Instant now, Instant until) {
    Actions actions;
    // A reading may be earlier than the one before: the lease becomes shorter if the servers shorten the session
    // timeout, for example. After a loss, a later one must not give the command more time.
    lease_until_ = lost_ ? std::min(lease_until_, until) : until;
    dead_by_ = lost_ ? std::min(dead_by_, until) : until;
    check(now, actions);
    // The lease lasts two thirds of T from the send time of the last committed check of the node. If that is after the
    // reconnect, the node still existed then, in the same session.
    const bool verified = verify_after_ && lease_until_ - options_.session_timeout * 2 / 3 >= *verify_after_;
    if (suspended_ && verified && !lost_) resume(actions);
    return actions;
}

void Supervisor::negotiated(Nanoseconds session_timeout, Nanoseconds kill_after) noexcept {
    options_.session_timeout = session_timeout;
    options_.kill_after = std::min(options_.kill_after, kill_after);
}

Actions Supervisor::confirmed(Instant now, Instant asked) {
    Actions actions;
    check(now, actions);
    if (suspended_ && connected_ && verify_after_ && asked >= *verify_after_ && !lost_) resume(actions);
    return actions;
}

void Supervisor::resume(Actions& actions) {
    suspended_ = false;
    actions.push_back({Action::report_resumed, 0, {}});
    if (std::exchange(paused_, false) && !job_stopped_ && phase_ < Phase::lingering) {
        actions.push_back({Action::signal_group, SIGCONT, {}});
    }
}

Actions Supervisor::disconnected(Instant now) {
    Actions actions;
    check(now, actions);
    connected_ = false;
    verify_after_.reset();
    if (lost_ || std::exchange(suspended_, true)) return actions;
    actions.push_back({Action::report_suspended, 0, {}});
    if (phase_ >= Phase::lingering) return actions;
    if (options_.on_suspend == OnSuspend::stop) mark_lost(now, "the connection broke", actions);
    if (options_.on_suspend == OnSuspend::pause && !stopping_) {
        paused_ = true;
        actions.push_back({Action::signal_group, SIGSTOP, {}});
    }
    check(now, actions);
    return actions;
}

Actions Supervisor::reconnected(Instant now) {
    connected_ = true;
    verify_after_ = now;
    return tick(now);
}

Actions Supervisor::lost(Instant now, std::string reason) {
    Actions actions;
    check(now, actions);
    mark_lost(now, std::move(reason), actions);
    check(now, actions);
    return actions;
}

Actions Supervisor::signal(Instant now, int number) {
    Actions actions;
    check(now, actions);
    const bool passed_on = Signals::passed_on(number);
    const bool from_keyboard = number == SIGINT || number == SIGQUIT;
    if (phase_ == Phase::lingering && (from_keyboard || number == SIGTERM || number == SIGHUP || !passed_on)) {
        if (from_keyboard || !passed_on) ended_by_ = number;
        phase_ = Phase::finished;
    }
    if (phase_ >= Phase::lingering) return actions;
    if (!passed_on) {
        ended_by_ = number;
        stop(now, stopping_ ? end_ : End::interrupted, actions);
        check(now, actions);
        return actions;
    }
    // A SIGCONT for a frozen command must wait until the lock has been confirmed.
    if (number == SIGCONT && (frozen() || lost_)) return actions;
    actions.push_back({Action::signal_group, number, {}});
    interrupts_ += number == SIGINT;
    quits_ += number == SIGQUIT;
    if ((number == SIGTERM || number == SIGINT) && ++stop_requests_ == 2) {
        actions.push_back({Action::report_stopping, number, {}});
        kill_by(now + options_.kill_after);
    }
    check(now, actions);
    return actions;
}

Actions Supervisor::command_started(Instant now) {
    if (options_.max_run) max_run_at_ = now + *options_.max_run;
    return tick(now);
}

Actions Supervisor::job_stopped(Instant now) {
    job_stopped_ = true;
    return tick(now);
}

Actions Supervisor::job_continued(Instant now) {
    Actions actions;
    check(now, actions);
    if (!std::exchange(job_stopped_, false) || lost_ || phase_ >= Phase::lingering) return actions;
    // Nothing renewed the lock while zklock was stopped: the command continues after a check, as after a broken
    // connection.
    suspended_ = true;
    paused_ = true;
    if (connected_) verify_after_ = now;
    return actions;
}

Actions Supervisor::leader_exited(Instant now) {
    if (phase_ == Phase::running) phase_ = Phase::draining;
    return tick(now);
}

Actions Supervisor::group_gone(Instant now) {
    if (phase_ < Phase::lingering) phase_ = Phase::lingering;
    return tick(now);
}

void Supervisor::check(Instant now, Actions& actions) {
    if (phase_ == Phase::lingering) {
        if (lost_ || now >= lease_until_ || now >= acquired_at_ + options_.min_hold) phase_ = Phase::finished;
        return;
    }
    if (phase_ == Phase::finished) return;
    // The end of the lease comes first: after the machine was frozen, nothing else is done before.
    if (now >= lease_until_) {
        if (!lost_) mark_lost(now, unconfirmed_reason_, actions);
        if (!killing_) kill_by(now);
    } else if (now >= lease_until_ - options_.kill_after && !stopping_ && !paused_) {
        mark_lost(now, unconfirmed_reason_, actions);
    }
    if (max_run_at_ && now >= *max_run_at_ && !stopping_) stop(now, End::max_run, actions);
    if (kill_at_ && now >= *kill_at_) {
        actions.push_back({Action::kill_tree, SIGKILL, {}});
        kill_at_ = now + kKillAgain;
        killing_ = true;
    }
}

void Supervisor::mark_lost(Instant now, std::string reason, Actions& actions) {
    if (std::exchange(lost_, true) || phase_ >= Phase::lingering) return;
    lost_reason_ = std::move(reason);
    actions.push_back({Action::report_lost, 0, lost_reason_});
    stop(now, End::lost, actions);
}

void Supervisor::stop(Instant now, End why, Actions& actions) {
    // A loss has precedence over earlier reasons to stop.
    if (end_ != End::lost) end_ = why;
    if (std::exchange(stopping_, true)) {
        kill_by(now + options_.kill_after);
        return;
    }
    // A frozen command cannot react to a signal and must not continue without the lock. After the deadline there is no
    // time to react.
    const bool at_once = frozen() || now >= lease_until_;
    const int signal = at_once ? SIGKILL : options_.stop_signal;
    actions.push_back({Action::report_stopping, signal, {}});
    if (at_once) {
        kill_by(now);
    } else {
        actions.push_back({Action::signal_group, signal, {}});
        kill_by(now + options_.kill_after);
    }
}

void Supervisor::kill_by(Instant when) {
    if (killing_) return;
    kill_at_ = kill_at_ ? std::min(*kill_at_, when) : when;
    if (lost_) dead_by_ = std::min(dead_by_, *kill_at_);
}

std::optional<Instant> Supervisor::next() const {
    if (phase_ == Phase::finished) return std::nullopt;
    if (phase_ == Phase::lingering) return std::min(acquired_at_ + options_.min_hold, lease_until_);
    if (killing_) return kill_at_;
    Instant at = lease_until_;
    if (kill_at_) at = std::min(at, *kill_at_);
    if (!stopping_ && !paused_) at = std::min(at, lease_until_ - options_.kill_after);
    if (max_run_at_ && !stopping_) at = std::min(at, *max_run_at_);
    return at;
}

}  // namespace zkrecipes::zklock
