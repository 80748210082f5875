#include "zklock/look/ls_command.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <chrono>
#include <exception>
#include <string>
#include <vector>
#include <zkrecipes/inspect.hpp>

#include "zklock/command_line/connection.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/look/lock_walk.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/explain.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {
namespace {

/// An incomplete list must not look complete.
void tell_what_is_missing(const Options& options, Console& console, const WalkedLocks& found) {
    if (found.cut) console.warning("the list is incomplete: reading ended early");
    if (!found.unreadable.empty()) {
        console.warning("the list is incomplete: " + forbids_reading(found.unreadable, options, 3));
    } else if (!found.exists) {
        console.warning(server_path(options, options.lock) + ": no such path");
    }
}

std::string as_json(const Options& options, const WalkedLocks& found) {
    const auto now = std::chrono::system_clock::now();
    boost::json::array list;
    for (const LockView& lock : found.locks) {
        boost::json::object object = to_json(lock, now);
        object.erase("v");
        list.push_back(std::move(object));
    }
    return dump({{"v", 1},
                 {"prefix", options.lock},
                 {"complete", !found.cut && found.unreadable.empty()},
                 {"locks", std::move(list)},
                 {"unreadable", boost::json::value_from(found.unreadable)}}) +
           "\n";
}

std::string in_words(const Options& options, const WalkedLocks& found) {
    const auto now = std::chrono::system_clock::now();
    std::string text;
    for (const LockView& lock : found.locks) {
        text += printable(lock.path);
        if (!options.names_only) {
            const std::vector<Participant> held = holders(lock);
            text += "\t" + state_of(lock, server_path(options, lock.path));
            if (!held.empty()) text += " by " + describe(held.front(), now);
            if (held.size() > 1) text += " and " + std::to_string(held.size() - 1) + " more";
            if (const std::size_t waiting = waiters(lock).size()) text += ", " + std::to_string(waiting) + " waiting";
        }
        text += "\n";
    }
    return text;
}

}  // namespace

int ls_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const WalkedLocks found =
        walk_locks(servers.answers(), options.lock, server_prefix(options).empty() ? "/zookeeper" : "");
    if (found.cut && found.locks.empty()) std::rethrow_exception(found.cut);
    if (!options.names_only) tell_what_is_missing(options, console, found);
    print(options.json ? as_json(options, found) : in_words(options, found));
    if (found.cut) std::rethrow_exception(found.cut);
    return found.unreadable.empty() ? kOk : kNoPermission;
}

}  // namespace zkrecipes::zklock
