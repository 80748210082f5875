#include "zklock/commands/read_only_session.hpp"

#include "zklock/commands/lock_session.hpp"

namespace zkrecipes::zklock {

bool await_connection(Session& session, const Options& options, std::stop_token stop) {
    auto limit = options.connect_timeout;
    if (options.wait_limit > Nanoseconds(0) && (!limit || limit > options.wait_limit)) limit = options.wait_limit;
    if (session.wait_connected(limit ? Deadline(*limit) : Deadline::never(), stop)) return true;
    if (stop.stop_requested()) return false;
    throw not_connected_within(*limit, session, options);
}

ReadOnlySession::ReadOnlySession(const Options& options, Console& console)
    : session_(open_session(options, console, Answers::patience(kLimit))), answers_(session_, console, kLimit) {
    await_connection(session_, options);
}

}  // namespace zkrecipes::zklock
