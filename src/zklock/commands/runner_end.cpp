// How the command ended, and what zklock makes of it: exit code, messages, result.
#include <signal.h>

#include <boost/json/object.hpp>

#include "zklock/command_line/duration.hpp"
#include "zklock/commands/runner.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/result.hpp"

namespace zkrecipes::zklock {

/// Describes how a command ended that zklock had to stop.
std::string Runner::stopped() const {
    if (not_stopped_.empty()) return "the command was stopped";
    return "the command could not be stopped and ended by itself";
}

int Runner::exit_code() const {
    if (start_failure_) return *start_failure_;
    switch (supervisor_.end()) {
        case Supervisor::End::lost: return options_.lost_exit_code;
        case Supervisor::End::max_run: return kMaxRun;
        case Supervisor::End::command:
        case Supervisor::End::interrupted: break;
    }
    if (const int signal = death().signal) return kSignalBase + signal;
    return child_->exited()->code();
}

/// After Ctrl-C, a shell ends its script only if it got SIGINT itself and the program that it waited for *died* of
/// SIGINT. While the command had the terminal, only its group got SIGINT: so zklock's own group gets it now.
Death Runner::death() const {
    const Supervisor::End end = supervisor_.end();
    if (start_failure_ || end == Supervisor::End::lost || end == Supervisor::End::max_run) return {};
    if (supervisor_.ended_by() != 0) return {supervisor_.ended_by(), false};
    const ExitStatus& status = *child_->exited();
    if (!status.signalled) return {};
    for (const int signal : {SIGINT, SIGQUIT}) {
        if (signals_.ignores(signal)) continue;
        if (status.number == signal && supervisor_.interrupts(signal) > 0) return {signal, false};
        if (status.number == signal && had_terminal_) return {signal, true};
    }
    // A second Ctrl-C killed a command that had ignored the first.
    if (status.number == SIGKILL && supervisor_.interrupts(SIGINT) > 1) return {SIGINT, false};
    return {};
}

const char* Runner::outcome() const {
    if (start_failure_) return too_late_ ? "lost" : "not_started";
    switch (supervisor_.end()) {
        case Supervisor::End::lost: return "lost";
        case Supervisor::End::max_run: return "max_run";
        case Supervisor::End::interrupted: return "interrupted";
        case Supervisor::End::command: break;
    }
    return child_->exited()->signalled ? "signalled" : "exited";
}

boost::json::object Runner::details() const {
    boost::json::object object = {{"token", lock_.token()},
                                  {"wait_ms", in_ms(lock_.waited())},
                                  {"held_ms", in_ms(held_.value_or(Nanoseconds(0)))},
                                  {"confirmed", lock_.release_confirmed()}};
    merge(object, lock_fields(options_, lock_.nodes()));
    if (start_failure_) object["message"] = start_problem_;
    if (!start_failure_ && child_ && child_->exited()) {
        const ExitStatus& status = *child_->exited();
        object["child"] = boost::json::object{{status.signalled ? "signal" : "code", status.number}};
    }
    if (supervisor_.ended_by() != 0) object["signal"] = supervisor_.ended_by();
    if (!supervisor_.lost_reason().empty()) object["reason"] = supervisor_.lost_reason();
    return object;
}

void Runner::tell_the_end() {
    if (start_failure_) return;
    if (supervisor_.end() == Supervisor::End::lost) {
        console_.error("lost " + options_.lock + " while the command ran: " + supervisor_.lost_reason() + "; " +
                       stopped());
    } else if (supervisor_.end() == Supervisor::End::max_run) {
        console_.error("the command ran longer than " + format_duration(*options_.max_run) + "; " + stopped());
    } else if (supervisor_.end() == Supervisor::End::interrupted) {
        console_.error("zklock received SIG" + Signals::name(supervisor_.ended_by()) + "; " + stopped());
    }
}

}  // namespace zkrecipes::zklock
