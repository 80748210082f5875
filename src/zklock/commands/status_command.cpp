#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <zkrecipes/inspect.hpp>

#include "zklock/command_line/command_table.hpp"
#include "zklock/commands/look_commands.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/once/run_status.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {
namespace {

/// An incomplete list must not look complete.
void tell_what_is_missing(const Options& options, Console& console, Session& session,
                          const std::vector<LockView>& locks, const std::vector<std::string>& unreadable) {
    if (!unreadable.empty()) {
        console.warning("the list is incomplete: an access list forbids reading " + printable(joined(unreadable)) +
                        "; use --auth-file");
    } else if (locks.empty() && !inspect_lock(session, options.lock, ReadOnlySession::answer_by(), false).exists) {
        console.warning(options.lock + ": no such path");
    }
}

}  // namespace

std::string picture_of(const LockStatus& status, const Options& options) {
    const LockView& lock = status.lock;
    const auto now = std::chrono::system_clock::now();
    const bool color = options.color && ::isatty(STDOUT_FILENO);
    std::string state = state_of(lock);
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
    return text + run_line(status);
}

int status_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const LockStatus status = read_lock_status(servers.session(), options.lock, ReadOnlySession::answer_by());
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

int ls_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    std::vector<std::string> unreadable;
    const std::vector<LockView> locks =
        find_locks(servers.session(), options.lock, ReadOnlySession::answer_by(), &unreadable);
    const int code = unreadable.empty() ? kOk : kNoPermission;
    if (!options.names_only) tell_what_is_missing(options, console, servers.session(), locks, unreadable);
    const auto now = std::chrono::system_clock::now();
    if (options.json) {
        boost::json::array list;
        for (const LockView& lock : locks) {
            boost::json::object object = to_json(lock, now);
            object.erase("v");
            list.push_back(std::move(object));
        }
        print(dump({{"v", 1},
                    {"prefix", options.lock},
                    {"locks", std::move(list)},
                    {"unreadable", boost::json::value_from(unreadable)}}) +
              "\n");
        return code;
    }
    std::string text;
    for (const LockView& lock : locks) {
        text += printable(lock.path);
        if (!options.names_only) {
            const std::vector<Participant> held = holders(lock);
            text += "\t" + state_of(lock);
            if (!held.empty()) text += " by " + describe(held.front(), now);
            if (held.size() > 1) text += " and " + std::to_string(held.size() - 1) + " more";
            if (const std::size_t waiting = waiters(lock).size()) text += ", " + std::to_string(waiting) + " waiting";
        }
        text += "\n";
    }
    print(text);
    return code;
}

}  // namespace zkrecipes::zklock
