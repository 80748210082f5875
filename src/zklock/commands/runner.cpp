#include "zklock/commands/runner.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "zklock/around/command_environment.hpp"
#include "zklock/command_line/duration.hpp"
#include "zklock/commands/once_per.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/result.hpp"
#include "zklock/system/beside_signals.hpp"

namespace zkrecipes::zklock {

using std::chrono::milliseconds;

namespace {

SupervisorOptions supervisor_options(const Options& options, Nanoseconds session_timeout, Nanoseconds kill_after) {
    return {options.on_suspend, options.stop_signal, kill_after, session_timeout, options.max_run, options.min_hold};
}

constexpr const char* kSwitchActed = "the dead man's switch acted because zklock was too slow";

}  // namespace

Runner::Runner(const Options& options, Console& console, EventLog& events, Signals& signals, LockSession& lock,
               DeadMansSwitch& dead_man, const Inheritance& inheritance, bool whole_tree, RunClaim* claim)
    : options_(options),
      console_(console),
      events_(events),
      signals_(signals),
      lock_(lock),
      dead_man_(dead_man),
      inheritance_(inheritance),
      whole_tree_(whole_tree),
      claim_(claim),
      session_timeout_(lock.info().timeout),
      kill_after_(kill_delay(options.kill_after, session_timeout_)),
      supervisor_(supervisor_options(options, session_timeout_, kill_after_), lock.acquired_at(), lock.lease_until()),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!timer_) throw std::system_error(errno, std::generic_category(), "timerfd_create");
}

Runner::~Runner() = default;

int Runner::run() {
    wait_for_a_lease_worth_starting();
    start();
    loop();
    held_ = BootClock::now() - lock_.acquired_at();
    tell_the_end();  // before release() warns: this is the cause
    lock_.release();
    events_.write("released", {{"held_ms", in_ms(*held_)}, {"confirmed", lock_.release_confirmed()}});
    return exit_code();
}

/// Does not start a command that would be stopped immediately, because the lease is almost over. Nor does it start one
/// after a signal that ends zklock.
void Runner::wait_for_a_lease_worth_starting() {
    const Instant limit = BootClock::now() + session_timeout_;
    const Nanoseconds pause = session_timeout_ / 24;
    for (;;) {
        while (const auto signal = signals_.next_after_stops()) {
            if (Signals::ends(*signal)) throw Interrupted{*signal};
        }
        const Instant now = BootClock::now();
        const Instant until = lock_.lease_until();
        if (until <= now) throw LostBeforeStart(options_.lost_exit_code);
        if (until - now > kill_after_ + pause) return;
        if (now >= limit) {
            throw Failure(kUnavailable,
                          options_.lock +
                              ": the servers confirm the lock too slowly: use a longer --session-timeout or a "
                              "shorter --kill-after",
                          "unavailable");
        }
        pollfd signals{signals_.fd(), POLLIN, 0};
        ::poll(&signals, 1, static_cast<int>(in_ms(pause)) + 1);
    }
}

void Runner::start() {
    auto environment = command_environment(options_, lock_.grant(), milliseconds(in_ms(session_timeout_)));
    if (claim_) environment.push_back("ZKLOCK_ONCE_PERIOD=" + claim_->period_text());
    const ChildSpec spec{options_.argv, std::move(environment), terminal_.to_hand_over(), terminal_.present()};
    dead_man_.feed(lock_.lease_until());
    auto child =
        std::make_unique<SupervisedChild>(dead_man_, whole_tree_, options_.whole_tree ? Extent::tree : Extent::group);
    try {
        child->start(spec, inheritance_);
        child_ = std::move(child);
    } catch (const std::system_error& error) {
        throw Failure(
            kOsError,
            "cannot start the command: " + error.code().message() + "; check the limit on processes (ulimit -u)",
            "not_started");
    }
}

void Runner::loop() {
    while (!supervisor_.finished()) {
        // The lease first: if the machine was frozen, this is the first thing to check.
        read_lease();
        read_signals();
        read_event_queue();
        read_start();
        read_children();
        if (supervisor_.finished() || (start_failure_ && child_->gone())) return;
        look_for_changed_users();
        // Without regular readings the lease would seem to end.
        Instant until = BootClock::now() + std::max<Nanoseconds>(session_timeout_ / 12, milliseconds(5));
        if (const auto next = supervisor_.next()) until = std::min(until, *next);
        if (child_->exited() && !child_->gone()) {
            // zklock gets no signal for processes that are not its children: check the rest of the group regularly.
            until = std::min(until, BootClock::now() + drain_pause_);
            drain_pause_ = std::min<Nanoseconds>(drain_pause_ * 2, milliseconds(options_.whole_tree ? 1000 : 200));
        }
        wait(until);
    }
}

void Runner::wait(Instant until) {
    const Nanoseconds at = std::max(until.time_since_epoch(), Nanoseconds(1));
    itimerspec when{};
    when.it_value.tv_sec = at.count() / 1'000'000'000;
    when.it_value.tv_nsec = at.count() % 1'000'000'000;
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
    // poll ignores entries with -1.
    pollfd fds[] = {{timer_.get(), POLLIN, 0},
                    {not_yet() ? -1 : signals_.fd(), POLLIN, 0},
                    {lock_.event_queue().fd(), POLLIN, 0},
                    {child_ ? child_->pidfd() : -1, POLLIN, 0},
                    {child_ && starting_ ? child_->exec_pipe() : -1, POLLIN, 0},
                    {dead_man_.end_fd(), 0, 0}};
    ::poll(fds, std::size(fds), -1);
    start_spoke_ = fds[4].revents != 0;
}

void Runner::read_lease() {
    lock_.look();
    supervisor_.unconfirmed_because(lock_.unconfirmed_reason());
    const Instant until = lock_.lease_until();
    follow_the_session_timeout();  // after the lease, which a shorter timeout has shortened
    const Instant now = BootClock::now();
    if (until > now) {
        perform(supervisor_.lease_until(now, until));
    } else {
        perform(supervisor_.tick(now));
    }
    if (child_->gone()) return;
    if (dead_man_.fired()) perform(supervisor_.lost(now, kSwitchActed));
    dead_man_.feed(supervisor_.dead_by());
}

/// A server on which the session goes on may grant another one.
void Runner::follow_the_session_timeout() {
    const Nanoseconds timeout = lock_.info().timeout;
    if (timeout == session_timeout_ || timeout == Nanoseconds(0)) return;
    session_timeout_ = timeout;
    supervisor_.negotiated(timeout, kill_delay(options_.kill_after, timeout));
}

/// A signal that ended the command before it executed its program would look like a run, which --once-per counts.
bool Runner::not_yet() const { return claim_ && starting_; }

void Runner::read_event_queue() {
    const EventQueue::Batch batch = lock_.event_queue().take();
    for (const StateChange& change : batch.states) {
        switch (change.state) {
            case SessionState::connected: perform(supervisor_.reconnected(change.at)); break;
            case SessionState::connecting: break;
            case SessionState::suspended:
            case SessionState::lost:
            case SessionState::closed: perform(supervisor_.disconnected(BootClock::now())); break;
        }
    }
    if (batch.confirmed) perform(supervisor_.confirmed(BootClock::now(), *batch.confirmed));
    if (!batch.lost) return;
    // A lease that has become shorter may have ended before it was read.
    const Instant now = BootClock::now();
    if (lock_.lease_has_ended()) perform(supervisor_.lease_until(now, now));
    perform(supervisor_.lost(now, lock_.loss_reason()));
}

void Runner::read_signals() {
    if (not_yet()) return;
    while (const auto signal = signals_.next()) {
        if (*signal == SIGCHLD) continue;  // read_children looks anyway
        if (*signal == SIGCONT) give_the_terminal();
        if (*signal == SIGTSTP) {
            stop_with_zklock();
        } else if (*signal == SIGTTIN || *signal == SIGTTOU) {
            our_group_waits_ = true;
        } else {
            perform(supervisor_.signal(BootClock::now(), *signal));
        }
    }
    if (our_group_waits_) let_our_group_have_the_terminal();
}

void Runner::read_start() {
    if (!starting_ || !start_spoke_) return;
    starting_ = false;
    const ExecResult result = child_->take_exec_result();
    const std::string command = printable(options_.argv.front());
    switch (result.stage) {
        case ExecResult::started:
            events_.write("child_started", {{"pid", child_->group()}});
            perform(supervisor_.command_started(BootClock::now()));
            return;
        case ExecResult::too_late:
            too_late_ = true;
            return fail_to_start(options_.lost_exit_code, "the lock was lost before the command was started");
        case ExecResult::setup:
            return fail_to_start(kOsError, "cannot start the command: " + std::string(std::strerror(result.error)));
        case ExecResult::exec:
            return fail_to_start(result.error == ENOENT || result.error == ENOTDIR ? kNotFound : kNotExecutable,
                                 "cannot run " + command + ": " + std::strerror(result.error));
    }
}

void Runner::fail_to_start(int code, const std::string& why) {
    start_failure_ = code;
    start_problem_ = why;
    console_.error(why);
}

void Runner::read_children() {
    if (dead_man_.revive()) {
        console_.warning("the dead man's switch was killed; it has been replaced");
    }
    if (child_->gone()) return;
    child_->look();
    if (const int signal = child_->take_stop_signal()) stop_with_the_job(signal);
    if (!child_->exited()) return;
    // zklock gets Ctrl-C from now on, also while other processes of the group or --min-hold keep the lock.
    if (terminal_.take_back(child_->group(), child_->exited()->signalled)) had_terminal_ = true;
    read_signals();  // a process of our group that asked until now is stopped, and zklock may end soon
    perform(supervisor_.leader_exited(BootClock::now()));
    if (!child_->finish_if_gone()) return;
    if (starting_) {  // ended, and the pipe with it, before we read what it had to say
        start_spoke_ = true;
        read_start();
    }
    // zklock may have been frozen after it last looked at the lease: then this is the first that it learns of the loss.
    if (child_->ended_by_the_switch()) perform(supervisor_.lost(BootClock::now(), kSwitchActed));
    if (supervisor_.end() != Supervisor::End::command) child_->kill_escaped();
    dead_man_.dismiss();
    if (!start_failure_) {
        const ExitStatus& status = *child_->exited();
        if (status.signalled) {
            events_.write("child_exited", {{"signal", status.number}});
        } else {
            events_.write("child_exited", {{"code", status.number}});
        }
    }
    const int signal = claim_ ? record_run() : 0;
    perform(supervisor_.group_gone(BootClock::now()));
    if (signal != 0) perform(supervisor_.signal(BootClock::now(), signal));
}

/// Records how the run ended while the lock is still held, also before --min-hold keeps it. Returns a signal that
/// arrived meanwhile; 0: none.
int Runner::record_run() {
    const auto record = [this](const std::stop_token& stop) {
        if (start_failure_) return claim_->withdraw(stop);
        if (lost()) return claim_->record_lost(supervisor_.lost_reason(), stop);
        const ExitStatus& status = *child_->exited();
        return claim_->record_done(status.number, status.signalled, stop);
    };
    bool recorded = false;
    BesideSignals ended;
    try {  // whatever fails, the next run finds no outcome
        ended = run_beside_signals(signals_, [&](const std::stop_token& stop) { recorded = record(stop); });
    } catch (const std::system_error&) {  // no thread to be had
    }
    tell_what_is_recorded(console_, events_, *claim_, recorded);
    return ended.signal;
}

/// After fg.
void Runner::give_the_terminal() {
    if (command_comes_first_ && !child_->exited()) terminal_.give(child_->group());
}

/// Another process of zklock's group, such as a pager, wanted the terminal while the command had it, and the kernel
/// stopped that group. Only zklock knows that the group can continue. If the command still needs the terminal, its next
/// read asks for it again. While another job is in the foreground, the process stays stopped, as in any job. The
/// shell's fg does not continue it, because the shell sees zklock running.
void Runner::let_our_group_have_the_terminal() {
    if (!child_->exited()) terminal_.take_back(child_->group(), false);
    if (!terminal_.ours()) return;
    our_group_waits_ = false;
    command_comes_first_ = false;
    ::kill(0, SIGCONT);
}

/// Ctrl-Z in the command stops only the command's group. The shell that waits for zklock must see zklock stop, too.
void Runner::stop_with_the_job(int signal) {
    const bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;
    if ((signal != SIGTSTP && !wants_terminal) || !terminal_.present()) return;
    // Its input or output is not the terminal, but it needs the terminal now, for example for a password.
    if (wants_terminal && terminal_.give(child_->group())) {
        perform(supervisor_.signal(BootClock::now(), SIGCONT));
        return;
    }
    perform(supervisor_.job_stopped(BootClock::now()));
    terminal_.take_back(child_->group(), false);
    if (Terminal::job_control()) {
        lock_.warn_of_stop("the command");
        Signals::stop(true);
    } else if (wants_terminal && !std::exchange(told_of_stop_, true)) {
        console_.warning("the command was stopped by SIG" + Signals::name(signal) +
                         ": it needs the terminal, which belongs to another process group");
    }
    go_on_after_stop();
}

/// Ctrl-Z while the command does not have the terminal, for example because its output is a pipe: only zklock's group
/// gets it. The command must stop, too, or it would be killed when the lease ends.
void Runner::stop_with_zklock() {
    if (child_->gone()) {  // --min-hold keeps the lock
        lock_.warn_of_stop("zklock");
        return Signals::stop(false);
    }
    if (!Terminal::job_control()) return;
    child_->signal(SIGSTOP);
    perform(supervisor_.job_stopped(BootClock::now()));
    lock_.warn_of_stop("the command");
    Signals::stop(false);
    go_on_after_stop();
}

/// After fg, bg or kill -CONT. Checks the lease before everything else.
void Runner::go_on_after_stop() {
    read_lease();
    give_the_terminal();
    perform(supervisor_.job_continued(BootClock::now()));
    // The next check of the library may be many seconds away: ask now, so that the command need not wait.
    if (supervisor_.frozen()) lock_.ask_now();
}

void Runner::perform(const Actions& actions) {
    for (const Action& action : actions) {
        switch (action.kind) {
            case Action::signal_group:
                child_->signal(action.signal);
                if (action.signal != SIGCONT && action.signal != SIGWINCH) report_out_of_reach(action.signal);
                break;
            case Action::kill_tree:
                child_->kill_tree();
                report_out_of_reach(SIGKILL);
                break;
            case Action::report_suspended: {
                const Nanoseconds left = std::max(Nanoseconds(0), lock_.lease_until() - BootClock::now());
                events_.write("suspended", {{"lease_left_ms", in_ms(left)}});
                console_.info("the connection broke; the lock is guaranteed for another " + format_duration(left));
                break;
            }
            case Action::report_resumed:
                events_.write("resumed", {});
                console_.info("connected again; the lock is still held");
                break;
            case Action::report_lost:
                events_.write("lost", {{"reason", action.reason}});
                console_.info("lost " + options_.lock + ": " + action.reason);
                break;
            case Action::report_stopping:
                if (child_->gone()) break;  // the switch was faster
                not_stopped_.clear();
                events_.write("stopping", {{"signal", action.signal}});
                console_.info("stopping the command with SIG" + Signals::name(action.signal));
                break;
        }
    }
}

/// Finds them early, before the lock is lost. Checks the first process all the time, and the others at growing
/// intervals, because that reads every process of the machine.
void Runner::look_for_changed_users() {
    if (starting_ || child_->gone()) return;
    const Instant now = BootClock::now();
    const bool leader_changed = !leader_out_of_reach_ && child_->leader_refuses_signals();
    if (leader_changed) leader_out_of_reach_ = true;
    const bool first = look_for_users_at_ == Instant();  // a short command should not pay for it
    const bool due = !first && now >= look_for_users_at_;
    if (first || due) {
        look_for_users_pause_ = first ? milliseconds(250) : look_for_users_pause_ * 2;
        look_for_users_at_ = now + look_for_users_pause_;
    }
    if (leader_changed || due) report_out_of_reach(0);
}

/// `refused_signal` 0: no signal was sent.
void Runner::report_out_of_reach(int refused_signal) {
    for (const OutOfReach& process : child_->out_of_reach()) {
        std::set<pid_t>& reported = refused_signal == 0 ? out_of_reach_ : not_stopped_;
        if (!reported.insert(process.pid).second) continue;
        boost::json::object event = {{"pid", nullptr}, {"uid", nullptr}};
        std::string who = "a process of the command";
        if (process.pid != 0) {
            event["pid"] = process.pid;
            who = "process " + std::to_string(process.pid) + " of the command";
        }
        if (process.user) event["uid"] = *process.user;
        who += " runs as " + (process.user ? "user id " + std::to_string(*process.user) : "another user");
        if (refused_signal != 0) event["signal"] = refused_signal;
        events_.write("cannot_kill", event);
        if (refused_signal == 0) {
            console_.warning(who + ": zklock cannot stop it if the lock is lost");
        } else {
            console_.error(who + ": zklock cannot send it SIG" + Signals::name(refused_signal) +
                           ". It keeps the lock until the process or the session ends");
        }
    }
}

}  // namespace zkrecipes::zklock
