#include "zklock/look/leases_command.hpp"

#include <boost/json/object.hpp>
#include <string>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/semaphore.hpp>

#include "zklock/command_line/connection.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Failure(kBadData, text); }

void check_semaphore(const Options& options, const LockView& lock) {
    if (!lock.exists)
        refuse(server_path(options, lock.path) + " does not exist, so there is no semaphore; zklock -j N makes one");
    if (!lock.semaphore) refuse(lock.path + " is not a semaphore; zklock -j N makes one on an unused path");
}

void change(Session& session, const LockView& lock, std::int32_t leases) {
    // kazoo's semaphores have no such node. Its clients would not read the new number.
    if (!read_node(session, lock.path + "/leases", Fresh::yes, ReadOnlySession::answer_by())) {
        refuse(lock.path + " is a semaphore of kazoo: change max_leases in its clients instead");
    }
    try {
        Semaphore(session, lock.path, leases).set_leases(leases, ReadOnlySession::answer_by());
    } catch (const Error& error) {
        if (error.errc() != Errc::unreachable && error.errc() != Errc::connection_lost) throw;
        throw Failure(kUnavailable, lock.path +
                                        ": no ZooKeeper server answered in time, and the number may have been changed: "
                                        "look at zklock leases " +
                                        lock.path);
    }
}

boost::json::value number_of(std::int32_t leases) {
    return leases > 0 ? boost::json::value(leases) : boost::json::value();
}

std::string in_words(std::int32_t leases) {
    return leases > 0 ? std::to_string(leases) + (leases == 1 ? " lease" : " leases")
                      : std::string("the number of leases is not stored");
}

}  // namespace

int leases_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const LockView lock = servers.answers().inspect(options.lock);
    check_semaphore(options, lock);
    const bool changes = options.new_leases > 0;
    if (changes) change(servers.session(), lock, options.new_leases);
    const std::int32_t leases = changes ? options.new_leases : lock.leases;
    const std::size_t held = holders(lock).size();
    const std::size_t waiting = waiters(lock).size();
    if (options.json) {
        boost::json::object object = {
            {"v", 1}, {"path", lock.path}, {"count", number_of(leases)}, {"held", held}, {"waiting", waiting}};
        if (changes) object["before"] = number_of(lock.leases);
        print(dump(object) + "\n");
    } else if (!options.quiet) {
        std::string text = lock.path + ": " + in_words(leases);
        if (changes) text += " (before: " + in_words(lock.leases) + ")";
        text += ", " + std::to_string(held) + " held, " + std::to_string(waiting) + " waiting\n";
        print(text);
    }
    if (leases > 0 && held > static_cast<std::size_t>(leases)) {
        console.warning(std::to_string(held) +
                        " leases are still held: no holder loses its lease, and the next one is "
                        "granted when fewer than " +
                        std::to_string(leases) + " are held");
    }
    return kOk;
}

}  // namespace zkrecipes::zklock
