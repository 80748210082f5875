#include "zklock/commands/once_per.hpp"

#include <boost/json/object.hpp>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "zklock/commands/runner.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/result.hpp"
#include "zklock/report/text.hpp"
#include "zklock/system/beside_signals.hpp"

namespace zkrecipes::zklock {
namespace {

/// A claim by a fast clock blocks the lock until the other clocks get there.
void warn_of_the_future(const RunClaim& claim, const RunRecord& other, Console& console) {
    if (other.claimed < claim.period() + claim.record().per) return;
    console.warning("the clock of " + printable(other.host) +
                    " or of this machine is wrong: the last run was claimed at " + iso_time(other.claimed) +
                    ", which is later than now");
}

std::string of_the_period(const RunClaim& claim, const RunRecord& other) {
    return "the run of the period that began at " + claim.period_text() + " (" + claimer(other) + ", claimed at " +
           iso_time(other.claimed) + ")";
}

/// Why the command does not run, and the exit code.
int refuse(const Options& options, Console& console, const RunClaim& claim, const RunClaim::Claimed& claimed) {
    const std::string lock = printable(options.lock) + ": ";
    warn_of_the_future(claim, *claimed.other, console);
    if (claimed.decision == Decision::done) {
        console.info(lock + of_the_period(claim, *claimed.other) + " is done, " + outcome_in_words(*claimed.other) +
                     ": nothing to do");
        return kOk;
    }
    console.error(lock + "nobody knows whether " + of_the_period(claim, *claimed.other) +
                  " did its work: " + outcome_in_words(*claimed.other) +
                  ". zklock does not repeat it in this period; --retry-unknown does");
    return kRunUnknown;
}

void tell_of_the_run_before(const Options& options, Console& console, const RunClaim& claim,
                            const std::optional<RunRecord>& other) {
    if (!other || other->state == RunRecord::State::done) return;
    const bool again = other->claimed >= claim.period();
    console.warning(printable(options.lock) + ": nobody knows whether the last run (" + claimer(*other) +
                    ", claimed at " + iso_time(other->claimed) + ") did its work: " + outcome_in_words(*other) +
                    (again ? ". Repeats it" : ". A new period has begun"));
}

const char* name_of(Decision decision) noexcept {
    switch (decision) {
        case Decision::run:
        case Decision::ours: return "claimed";
        case Decision::done: return "done";
        case Decision::unknown: break;
    }
    return "unknown";
}

bool is_loss(const std::exception_ptr& failure) {
    try {
        if (failure) std::rethrow_exception(failure);
    } catch (const Error& error) {
        return error.errc() == Errc::lock_lost;
    } catch (...) {
    }
    return false;
}

void release_unused(LockSession& lock, EventLog& events) {
    const auto held = std::chrono::duration_cast<std::chrono::milliseconds>(BootClock::now() - lock.acquired_at());
    lock.release();
    events.write("released", {{"held_ms", held.count()}, {"confirmed", lock.release_confirmed()}});
}

}  // namespace

boost::json::object once_fields(const RunClaim& claim, const RunRecord& record) {
    boost::json::object object = to_json(record);
    object.erase("v");
    object["period"] = claim.period_text();
    return object;
}

std::optional<int> claim_period(const Options& options, Console& console, EventLog& events, Signals& signals,
                                LockSession& lock, RunClaim& claim) {
    std::optional<RunClaim::Claimed> claimed;
    const BesideSignals ended =
        run_beside_signals(signals, [&](const std::stop_token& stop) { claimed = claim.claim(stop); });
    lock.look_after_pause();
    if (is_loss(ended.failure)) throw LostBeforeStart(options.lost_exit_code);  // precedes a signal, as in a run
    if (ended.signal != 0) throw Interrupted{ended.signal};
    if (ended.failure) std::rethrow_exception(ended.failure);
    const bool ours = claimed->decision == Decision::run;
    boost::json::object event = {
        {"state", name_of(claimed->decision)}, {"period", claim.period_text()}, {"id", claim.record().id}};
    if (claimed->other) event["other"] = to_json(*claimed->other);
    events.write("period", event);
    if (ours) {
        events.require_written();
        tell_of_the_run_before(options, console, claim, claimed->other);
        return std::nullopt;
    }
    release_unused(lock, events);
    const int code = refuse(options, console, claim, *claimed);
    boost::json::object result =
        result_object(options, code == kOk ? "already_ran" : "unknown_run", code, lock.nodes());
    result["once"] = once_fields(claim, *claimed->other);
    return conclude(options, console, events, std::move(result));
}

int withdraw_claim(Console& console, EventLog& events, Signals& signals, RunClaim& claim) {
    if (!claim.may_be_written()) return 0;
    bool withdrawn = false;
    BesideSignals ended;
    try {
        ended = run_beside_signals(signals, [&](const std::stop_token& stop) { withdrawn = claim.withdraw(stop); });
    } catch (const std::system_error&) {  // no thread to be had
    }
    tell_what_is_recorded(console, events, claim, withdrawn);
    return ended.signal;
}

void tell_what_is_recorded(Console& console, EventLog& events, const RunClaim& claim, bool recorded) {
    events.write("recorded", {{"id", claim.record().id}, {"confirmed", recorded}});
    if (recorded) return;
    if (claim.deleted()) {
        console.warning(printable(claim.path_on_servers()) +
                        ", the record of this run, was deleted while the run lasted: the next zklock with --once-per "
                        "runs the command again, also in this period");
        return;
    }
    console.warning(
        "the servers did not confirm the record of this run: until the next period, its outcome may count "
        "as unknown (exit code 80)");
}

}  // namespace zkrecipes::zklock
