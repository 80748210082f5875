#include "zklock/report/describe.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cstdio>
#include <ctime>
#include <iterator>

#include "zklock/command_line/duration.hpp"

namespace zkrecipes::zklock {
namespace {

using boost::json::value;
using WallTime = std::chrono::system_clock::time_point;

std::chrono::nanoseconds age(const Participant& participant, WallTime now) {
    // The clocks of the server and of this machine may differ: never below zero.
    return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(now - participant.since));
}

}  // namespace

std::string node_path(const Participant& participant) {
    if (participant.path.ends_with("/" + participant.node)) return participant.path;
    return participant.path + "/" + participant.node;
}

std::string hex(std::int64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

std::string iso_time(WallTime time) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[32];
    return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

bool not_ephemeral(const Participant& participant) { return participant.readable && participant.session_id == 0; }

std::string describe(const Participant& participant, WallTime now) {
    if (!participant.readable) return printable(participant.node) + " (not readable: an access list forbids it)";
    std::string text;
    if (!participant.host.empty()) {
        text = participant.host;
        if (participant.pid != 0) text += " pid " + std::to_string(participant.pid);
        if (!participant.name.empty()) text += " \"" + participant.name + "\"";
        if (!participant.user.empty()) text += " (" + participant.user + ")";
    } else {
        text = participant.raw.empty() ? participant.node : "\"" + participant.raw + "\"";
        if (participant.session_id != 0) text += " session " + hex(participant.session_id);
    }
    text = printable(text) + " for " + format_duration(age(participant, now));
    if (participant.waiting > 0) text += ", and " + std::to_string(participant.waiting) + " more in that session";
    if (!not_ephemeral(participant)) return text;
    // Only this command deletes a node together with its children.
    return text + (participant.children > 0
                       ? " (not ephemeral, with nodes below it: no session ends it; remove it with zkCli.sh deleteall)"
                       : " (not ephemeral: no session ends it; remove it with zklock break --node)");
}

std::string block(const Participant& participant, const std::string& title, std::chrono::system_clock::time_point now) {
    std::string text = title + describe(participant, now) + "\n";
    text += "           mode  " + participant.mode + "\n";
    text += "           node  " + printable(node_path(participant)) + "\n";
    if (participant.readable) text += "           token " + std::to_string(participant.token) + "\n";
    for (const auto& [key, value] : participant.labels) {
        text += "           " + printable(key) + "=" + printable(value) + "\n";
    }
    return text;
}

boost::json::object to_json(const Participant& participant, WallTime now) {
    boost::json::object object = {{"node", node_path(participant)},
                                  {"mode", participant.mode},
                                  {"fencing_token", nullptr},
                                  {"session", nullptr},
                                  {"ephemeral", nullptr},
                                  {"ctime", nullptr},
                                  {"age_ms", nullptr},
                                  {"payload", nullptr},
                                  {"payload_raw", nullptr},
                                  {"readable", participant.readable}};
    if (!participant.readable) return object;
    object["fencing_token"] = participant.token;
    object["session"] = hex(participant.session_id);
    object["ephemeral"] = !not_ephemeral(participant);
    object["ctime"] = iso_time(participant.since);
    object["age_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(age(participant, now)).count();
    boost::system::error_code error;
    value payload = boost::json::parse(participant.raw, error);
    const bool is_object = !error && payload.is_object();
    (is_object ? object["payload"] : object["payload_raw"]) = is_object ? std::move(payload) : value(participant.raw);
    return object;
}

std::vector<Participant> holders(const LockView& lock) {
    std::vector<Participant> result;
    std::copy_if(lock.participants.begin(), lock.participants.end(), std::back_inserter(result),
                 [](const Participant& participant) { return participant.holder; });
    return result;
}

std::vector<Participant> waiters(const LockView& lock) {
    std::vector<Participant> result;
    std::copy_if(lock.participants.begin(), lock.participants.end(), std::back_inserter(result),
                 [](const Participant& participant) { return !participant.holder; });
    return result;
}

bool held_shared(const LockView& lock) {
    const auto all = holders(lock);
    return !all.empty() &&
           std::all_of(all.begin(), all.end(), [](const Participant& holder) { return holder.mode == "shared"; });
}

std::string state_of(const LockView& lock, const std::string& path_on_servers) {
    const std::size_t held = holders(lock).size();
    if (held == 0 && !lock.exists) {
        const std::string path = path_on_servers == lock.path ? "" : " " + printable(path_on_servers);
        return "free (no such path" + path + ": not used recently, or mistyped)";
    }
    if (held == 0) return "free";
    if (!lock.semaphore) return held_shared(lock) ? "held (shared)" : "held";
    const std::string number = std::to_string(held);
    if (lock.leases > 0 && held > static_cast<std::size_t>(lock.leases)) {
        return "held (" + number + " leases, but their number is now " + std::to_string(lock.leases) + ")";
    }
    if (lock.leases > 0) return "held (" + number + " of " + std::to_string(lock.leases) + " leases)";
    return "held (" + number + (held == 1 ? " lease)" : " leases)");
}

boost::json::object to_json(const LockView& lock, WallTime now) {
    boost::json::array held;
    for (const Participant& holder : holders(lock)) held.push_back(to_json(holder, now));
    boost::json::array waiting;
    int position = 0;
    for (const Participant& waiter : waiters(lock)) {
        boost::json::object object = to_json(waiter, now);
        object["position"] = ++position;
        waiting.push_back(std::move(object));
    }
    return {{"v", 1},
            {"path", lock.path},
            {"exists", lock.exists},
            {"mode", lock.semaphore      ? "semaphore"
                     : held_shared(lock) ? "shared"
                                         : "exclusive"},
            {"count", !lock.semaphore   ? value(1)
                      : lock.leases > 0 ? value(lock.leases)
                                        : value()},
            {"state", held.empty() ? "free" : "held"},
            {"holders", std::move(held)},
            {"waiters", std::move(waiting)}};
}

}  // namespace zkrecipes::zklock
