#include <unistd.h>

#include <boost/json/object.hpp>
#include <zkrecipes/inspect.hpp>

#include "zklock/command_line/connection.hpp"
#include "zklock/commands/look_commands.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/once/run_status.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {

std::string picture_of(const LockStatus& status, const Options& options) {
    const LockView& lock = status.lock;
    const auto now = std::chrono::system_clock::now();
    const bool color = options.color && ::isatty(STDOUT_FILENO);
    std::string state = state_of(lock, server_path(options, lock.path));
    if (!status.other_node.empty()) {
        state += " (the nodes below it, such as " + printable(status.other_node) +
                 ", are no lock nodes: is this path a lock?)";
    }
    const char* const begin = holders(lock).empty() ? "\x1b[32m" : "\x1b[33m";
    std::string text = lock.path + ": " + (color ? begin + state + "\x1b[0m" : state) + "\n";
    for (const Participant& holder : holders(lock)) text += block(holder, "  holder   ", now);
    int position = 0;
    for (const Participant& waiter : waiters(lock)) {
        text += block(waiter, "  waiter " + std::to_string(++position) + " ", now);
    }
    return text + run_line(status, options);
}

int status_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const LockStatus status = read_lock_status(servers.answers(), options.lock);
    const LockView& view = status.lock;
    if (options.json) {
        boost::json::object object = to_json(view, std::chrono::system_clock::now());
        object["once"] = run_json(status);
        print(dump(object) + "\n");
    } else if (!options.quiet) {
        print(picture_of(status, options));
    }
    return holders(view).empty() ? kOk : kBusy;
}

}  // namespace zkrecipes::zklock
