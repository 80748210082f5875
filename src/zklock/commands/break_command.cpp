#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <iostream>
#include <zkrecipes/inspect.hpp>

#include "zklock/command_line/connection.hpp"
#include "zklock/commands/look_commands.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {
namespace {

/// A node can be given by its name, by the path that status shows, or by the path on the servers (ZKLOCK_NODE).
bool selected(const Options& options, const Participant& participant) {
    if (options.break_all) return true;
    if (options.break_holder) return participant.holder;
    const std::string path = node_path(participant);
    for (const std::string& name : {participant.node, path, server_prefix(options) + path}) {
        if (name == options.break_node) return true;
    }
    return false;
}

/// Describes the nodes to remove, for the confirmation.
std::string shown(const std::vector<Participant>& victims) {
    const auto now = std::chrono::system_clock::now();
    std::string text;
    for (const Participant& victim : victims) {
        text +=
            std::string(victim.holder ? "holder " : "waiter ") + describe(victim, now) + "\n       " +
            printable(node_path(victim)) +
            (victim.readable ? ", token " + std::to_string(victim.token) + ", session " + hex(victim.session_id) + "\n"
                             : std::string("\n"));
        if (!victim.by_zkrecipes && !not_ephemeral(victim)) {
            text +=
                "       not a zkrecipes client: Curator and kazoo do not watch their own nodes, so this one goes on "
                "as if it held the lock. Stop it first.\n";
        }
    }
    return text;
}

/// The nodes to remove, as --json prints them.
std::string as_json(const LockView& view, const std::vector<Participant>& victims) {
    const auto now = std::chrono::system_clock::now();
    boost::json::array nodes;
    for (const Participant& victim : victims) {
        boost::json::object node = to_json(victim, now);
        node["holder"] = victim.holder;
        node["notices"] = victim.by_zkrecipes && !not_ephemeral(victim);
        nodes.push_back(std::move(node));
    }
    return dump({{"v", 1}, {"path", view.path}, {"nodes", std::move(nodes)}}) + "\n";
}

std::string removal(const Options& options, const Participant& victim, bool removed) {
    if (options.json) return dump({{"v", 1}, {"node", node_path(victim)}, {"removed", removed}}) + "\n";
    return (removed ? "removed " : "already gone: ") + printable(node_path(victim)) + "\n";
}

bool remove(Session& session, const Participant& victim) {
    try {
        return remove_participant(session, victim, ReadOnlySession::answer_by());
    } catch (const Error& error) {
        if (error.errc() != Errc::unreachable) throw;
        throw Failure(kUnavailable,
                      node_path(victim) + ": no ZooKeeper server said whether it was removed: look at zklock status",
                      "unavailable");
    }
}

bool can_ask() { return ::isatty(STDIN_FILENO) && ::isatty(STDERR_FILENO); }

bool confirmed(const std::string& text, std::size_t count) {
    if (!can_ask()) {
        throw Failure(kUsage, "nothing was removed: there is no terminal to ask at; use --yes");
    }
    // On stderr with the question, also with --quiet, or with stdout in a file.
    std::cerr << text << "Remove " << (count == 1 ? "this node" : "these nodes") << "? [y/N] " << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

int break_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const LockView view = servers.answers().inspect(options.lock);
    std::vector<Participant> victims;
    for (const Participant& participant : view.participants) {
        if (selected(options, participant)) victims.push_back(participant);
    }
    if (victims.empty()) {
        if (!view.exists) {
            throw Failure(kBadData, server_path(options, options.lock) +
                                        " does not exist, so there is nothing to remove: the path is mistyped, or the "
                                        "lock was not used recently");
        }
        if (!options.break_node.empty())
            throw Failure(kBadData, options.break_node + " is not in the queue of " + options.lock);
        const std::string nothing =
            options.lock + ": " + state_of(view, server_path(options, view.path)) + ": there is nothing to remove\n";
        if (!options.quiet) print(options.json ? as_json(view, victims) : nothing);
        return kOk;
    }
    // The question shows the nodes itself.
    if (!options.quiet && (options.yes || options.json || !can_ask())) {
        print(options.json ? as_json(view, victims) : shown(victims));
    }
    if (!options.yes && !confirmed(shown(victims), victims.size())) {
        if (!options.quiet && !options.json) print("nothing was removed\n");
        return kDeclined;
    }
    // The last first: otherwise whoever is next would be granted the lock before it is removed itself.
    std::ranges::reverse(victims);
    for (const Participant& victim : victims) {
        // Removes exactly the node that was shown, not the present holder.
        const bool removed = remove(servers.session(), victim);
        if (!options.quiet) print(removal(options, victim, removed));
    }
    return kOk;
}

}  // namespace zkrecipes::zklock
