#include <poll.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <zkrecipes/leader_election.hpp>

#include "zklock/commands/event_queue.hpp"
#include "zklock/commands/look_commands.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"

namespace zkrecipes::zklock {
namespace {

using WallTime = std::chrono::system_clock::time_point;

boost::json::object json_of(const Participant& candidate, WallTime now) {
    boost::json::object object = to_json(candidate, now);
    object.erase("mode");
    object["id"] = candidate.readable ? boost::json::value(candidate.id) : boost::json::value();
    return object;
}

void show(const Options& options, const std::vector<Participant>& candidates) {
    const auto now = std::chrono::system_clock::now();
    if (options.json) {
        boost::json::array others;
        for (std::size_t i = 1; i < candidates.size(); ++i) others.push_back(json_of(candidates[i], now));
        print(dump({{"v", 1},
                    {"path", options.lock},
                    {"leader",
                     candidates.empty() ? boost::json::value() : boost::json::value(json_of(candidates.front(), now))},
                    {"candidates", std::move(others)}}) +
              "\n");
        return;
    }
    std::string text = options.lock + (candidates.empty() ? ": no leader\n" : ": led\n");
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        text += block(candidates[i], i == 0 ? "  leader   " : "  next " + std::to_string(i) + "   ", now);
    }
    print(text);
}

/// Runs on the session's notifier thread: a slow reader gets the latest change.
void show_change(const Options& options, const std::optional<Participant>& leader) {
    const auto now = std::chrono::system_clock::now();
    if (options.json) {
        boost::json::object object = {{"v", 1}, {"ts", timestamp_now()}, {"path", options.lock}, {"leader", nullptr}};
        if (leader) object["leader"] = json_of(*leader, now);
        return print(dump(object) + "\n");
    }
    print(timestamp_now() + " " +
          (!leader            ? std::string("no leader")
           : leader->readable ? "leader " + describe(*leader, now) + ", token " + std::to_string(leader->token)
                              : "leader " + describe(*leader, now)) +
          "\n");
}

/// Runs until a signal ends the process or the servers refuse the session.
int watch(const Options& options, Console& console, Session& session) {
    const auto event_queue = std::make_shared<EventQueue>();
    const auto states = session.watch_state([event_queue](SessionState state) { event_queue->post_state(state); });
    LeaderElection election(session, options.lock);
    const auto changes = election.observe([&options, event_queue](const std::optional<Participant>& leader) {
        try {
            show_change(options, leader);
        } catch (const Failure&) {
            event_queue->post_failure(std::current_exception());
        }
    });
    for (bool warned = false;;) {
        pollfd news{event_queue->fd(), POLLIN, 0};
        ::poll(&news, 1, -1);
        const EventQueue::Batch batch = event_queue->take();
        if (batch.failure) std::rethrow_exception(batch.failure);
        for (const StateChange& change : batch.states) {
            if (change.state == SessionState::closed) session.wait_connected(Deadline::passed());  // throws why
            const bool connected = change.state == SessionState::connected;
            if (!connected && !warned) {
                console.warning("no ZooKeeper server answers, so the leader may have changed; zklock goes on watching");
            } else if (connected && warned) {
                console.warning("a ZooKeeper server answers again");
            }
            warned = !connected;
        }
    }
}

}  // namespace

int leader_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    if (options.watch) return watch(options, console, servers.session());
    const std::vector<Participant> candidates = servers.answers().candidates(options.lock);
    if (!options.quiet) show(options, candidates);
    return candidates.empty() ? kBusy : kOk;
}

}  // namespace zkrecipes::zklock
