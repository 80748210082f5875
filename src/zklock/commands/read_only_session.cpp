#include "zklock/commands/read_only_session.hpp"

#include "zklock/commands/lock_session.hpp"

namespace zkrecipes::zklock {

bool await_connection(Session& session, const Options& options, std::stop_token stop) {
    const Deadline deadline = options.connect_timeout ? Deadline(*options.connect_timeout) : Deadline::never();
    if (session.wait_connected(deadline, stop)) return true;
    if (stop.stop_requested()) return false;
    throw not_connected_within(*options.connect_timeout, session, options);
}

ReadOnlySession::ReadOnlySession(const Options& options, Console& console)
    : session_(open_session(options, console)), answers_(session_, console, kLimit) {
    await_connection(session_, options);
}

}  // namespace zkrecipes::zklock
