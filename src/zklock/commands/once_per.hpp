#pragma once

#include <optional>

#include <boost/json/fwd.hpp>

#include "zklock/commands/lock_session.hpp"
#include "zklock/once/run_claim.hpp"

namespace zkrecipes::zklock {

/// --once-per: claims the period under the lock that is held. Returns empty if this run has claimed it. Otherwise the
/// command must not run: releases the lock, tells the user why, writes the result, and returns the exit code. Throws
/// Failure and Error, LostBeforeStart, and Interrupted for a signal. Then the claim may have been written.
std::optional<int> claim_period(const Options& options, Console& console, EventLog& events, Signals& signals,
                                LockSession& lock, RunClaim& claim);
/// Takes the claim back if it may have been written. Call if no command was started after it. Returns a signal that
/// arrived meanwhile; 0: none.
int withdraw_claim(Console& console, EventLog& events, Signals& signals, RunClaim& claim);
void tell_what_is_recorded(Console& console, EventLog& events, const RunClaim& claim, bool recorded);

/// The field "once" of the result.
boost::json::object once_fields(const RunClaim& claim, const RunRecord& record);

}  // namespace zkrecipes::zklock
