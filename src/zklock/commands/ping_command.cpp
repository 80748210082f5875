#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/version.hpp>

#include "zklock/command_line/duration.hpp"
#include "zklock/commands/lock_session.hpp"
#include "zklock/commands/look_commands.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {

int ping_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const SessionInfo info = servers.session().info();
    if (options.json) {
        print(dump({{"v", 1},
                    {"server", info.server},
                    {"session", hex(info.session_id)},
                    {"session_timeout_ms", info.timeout.count()},
                    {"client_version", client_version()},
                    {"features", boost::json::value_from(features())}}) +
              "\n");
    } else {
        std::string text = "connected to " + info.server + ", session " + hex(info.session_id) + ", session timeout " +
                           format_duration(info.timeout) + ", client " + client_version();
        for (const std::string& feature : features()) text += " +" + feature;
        print(text + "\n");
    }
    return kOk;
}

int wait_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const Deadline deadline = options.wait_limit ? Deadline(*options.wait_limit) : Deadline::never();
    if (wait_until_free(servers.session(), options.lock, deadline)) return kOk;
    const bool connected = servers.session().state() == SessionState::connected;
    if (!connected) {
        throw Failure(kUnavailable, "no ZooKeeper server answers: " + why_not_connected(servers.session(), options));
    }
    throw Failure(kBusy, options.lock + " was still held after " + format_duration(*options.wait_limit));
}

}  // namespace zkrecipes::zklock
