#include "zklock/commands/read_only_session.hpp"

#include "zklock/command_line/duration.hpp"
#include "zklock/commands/lock_session.hpp"

namespace zkrecipes::zklock {

ReadOnlySession::ReadOnlySession(const Options& options, Console& console) : session_(open_session(options, console)) {
    const Deadline deadline = options.connect_timeout ? Deadline(*options.connect_timeout) : Deadline::never();
    if (session_.wait_connected(deadline)) return;
    throw Failure(kUnavailable, "no ZooKeeper server answered within " + format_duration(*options.connect_timeout) +
                                    ": " + why_not_connected(session_, options));
}

}  // namespace zkrecipes::zklock
