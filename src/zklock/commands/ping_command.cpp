#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <cstdio>
#include <optional>
#include <vector>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/version.hpp>

#include "zklock/command_line/duration.hpp"
#include "zklock/commands/lock_session.hpp"
#include "zklock/commands/look_commands.hpp"
#include "zklock/commands/read_only_session.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"
#include "zklock/system/boot_clock.hpp"

namespace zkrecipes::zklock {
namespace {

/// The times of some requests that were sent one after the other, shortest first. Never empty.
struct RoundTrips {
    static constexpr std::size_t kMost = 5;
    static constexpr std::chrono::seconds kWithin{2};  // a slow server is asked less often

    std::vector<Nanoseconds> times;

    Nanoseconds median() const { return times[times.size() / 2]; }
};

RoundTrips measure(Session& session, Fresh fresh) {
    RoundTrips result;
    const Instant begin = BootClock::now();
    do {
        const Instant sent = BootClock::now();
        try {
            read_node(session, "/", fresh, ReadOnlySession::answer_by());
        } catch (const Error& error) {
            if (error.errc() == Errc::unreachable) {
                throw Failure(kUnavailable, "connected to " + session.info().server +
                                                ", but no ZooKeeper server answered a request in time: look at the "
                                                "log of the servers");
            }
            if (error.errc() != Errc::no_permission) throw;  // that is an answer, too
        }
        result.times.push_back(BootClock::now() - sent);
    } while (result.times.size() < RoundTrips::kMost && BootClock::now() - begin < RoundTrips::kWithin);
    std::sort(result.times.begin(), result.times.end());
    return result;
}

std::int64_t in_us(Nanoseconds duration) {
    return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

boost::json::object trips_json(const RoundTrips& trips) {
    return {{"count", trips.times.size()},
            {"min", in_us(trips.times.front())},
            {"median", in_us(trips.median())},
            {"max", in_us(trips.times.back())}};
}

std::string in_words(const RoundTrips& trips) {
    const auto ms = [](Nanoseconds duration) { return static_cast<double>(in_us(duration)) / 1000; };
    char text[128];
    std::snprintf(text, sizeof text, "%.2f ms (median of %zu; %.2f to %.2f ms)", ms(trips.median()), trips.times.size(),
                  ms(trips.times.front()), ms(trips.times.back()));
    return text;
}

/// After a wait that was in vain: the lock was held, or the servers are slow. Null: it is free now.
std::optional<Failure> why_in_vain(Session& session, const Options& options) {
    std::string by;
    try {
        const std::vector<Participant> held =
            holders(inspect_lock(session, options.lock, Deadline(std::chrono::seconds(1)), false));
        if (held.empty()) return {};
        if (!options.quiet) by = " by " + describe(held.front(), std::chrono::system_clock::now());
    } catch (const Error& error) {
        if (error.errc() == Errc::unreachable) return Failure(kUnavailable, why_no_answer_came(session, options));
    }
    return Failure(kBusy, options.lock + " was still held after " + format_duration(*options.wait_limit) + by);
}

}  // namespace

int ping_command(const Options& options, Console& console) {
    ReadOnlySession servers(options, console);
    const SessionInfo info = servers.session().info();
    const RoundTrips server = measure(servers.session(), Fresh::no);
    const RoundTrips leader = measure(servers.session(), Fresh::yes);
    if (options.json) {
        print(dump({{"v", 1},
                    {"server", info.server},
                    {"session", hex(info.session_id)},
                    {"session_timeout_ms", info.timeout.count()},
                    {"round_trip_us", trips_json(server)},
                    {"leader_round_trip_us", trips_json(leader)},
                    {"client_version", client_version()},
                    {"features", boost::json::value_from(features())}}) +
              "\n");
    } else {
        std::string text = "connected to " + info.server + ", session " + hex(info.session_id) + ", session timeout " +
                           format_duration(info.timeout) + ", client " + client_version();
        for (const std::string& feature : features()) text += " +" + feature;
        if (features().empty()) text += " (neither TLS nor SASL)";
        text += "\nround trip to this server: " + in_words(server);
        text += "\nround trip to the leader:  " + in_words(leader);
        print(text + "\n");
    }
    return kOk;
}

int wait_command(const Options& options, Console& console) {
    const Deadline deadline = options.wait_limit ? Deadline(*options.wait_limit) : Deadline::never();
    Session session = open_session(options, console);
    await_connection(session, options);
    if (wait_until_free(session, options.lock, deadline)) return kOk;
    if (const auto failure = why_in_vain(session, options)) throw *failure;
    return kOk;
}

}  // namespace zkrecipes::zklock
