#include <nlohmann/json.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/version.hpp>

#include "zklock/describe.hpp"
#include "zklock/duration.hpp"
#include "zklock/events.hpp"
#include "zklock/look_commands.hpp"
#include "zklock/outside.hpp"
#include "zklock/reachability.hpp"

namespace zkrecipes::zklock {

int ping_command(const Options& options, Console& console) {
    Outside outside(options, console);
    const SessionInfo info = outside.session().info();
    if (options.json) {
        print(dump({{"v", 1},
                    {"server", info.server},
                    {"session", hex(info.session_id)},
                    {"session_timeout_ms", info.timeout.count()},
                    {"client_version", client_version()},
                    {"features", features()}}) +
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
    Outside outside(options, console);
    const Deadline deadline = options.wait_limit ? Deadline(*options.wait_limit) : Deadline::never();
    if (wait_until_free(outside.session(), options.lock, deadline)) return kOk;
    const bool connected = outside.session().state() == SessionState::connected;
    if (!connected) {
        throw Failure(kUnavailable, "no ZooKeeper server answers: " + printable(why_no_answer(options.connect)));
    }
    throw Failure(kBusy, options.lock + " was still held after " + format_duration(*options.wait_limit));
}

}  // namespace zkrecipes::zklock
