// Holds a second: against the size of the ensemble, the delay of the network, and the number of locks in use.
#include <algorithm>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>

#include "bench/capacity/capacity.hpp"
#include "bench/contend.hpp"
#include "bench/floor.hpp"
#include "bench/places.hpp"

namespace zkrecipes::bench {
namespace {

using std::chrono::milliseconds;

constexpr int kSessions = 8;
const std::string kContended = "/capacity/contended";

std::string all_hosts(const Place& place, bool gated) {
    std::string all;
    for (const std::string& host : place.all_hosts(gated)) all += (all.empty() ? "" : ";") + host;
    return all;
}

/// So many sessions want one lock all the time.
double contended(const Place& place, bool gated, int holds) {
    FloorClient(place.hosts(0)).make_path(kContended);
    struct Ours {
        ExclusiveMutex mutex;
        Grant grant;
    };
    std::vector<Session> sessions;
    std::vector<Ours> ours;
    std::vector<Contender> contenders;
    ours.reserve(kSessions);
    for (std::size_t i = 0; i < kSessions; ++i) {
        sessions.push_back(open_session(place.hosts(i, gated)));
        Ours& mine = ours.emplace_back(Ours{ExclusiveMutex(sessions.back(), kContended), Grant()});
        contenders.push_back({[&mine] { mine.grant = mine.mutex.acquire(); }, [&mine] { mine.grant.release(); }});
    }
    return contend(contenders, std::max(holds / 4, kSessions), holds).a_second;
}

Clients::Rate uncontended(const Place& place, bool gated, int locks, milliseconds time) {
    Clients clients;
    clients.open(all_hosts(place, gated), std::min(kSessions, locks), std::chrono::seconds(30));
    return clients.cycle(locks, time);
}

/// Until the servers have compiled what they run.
void warm(const Place& place, milliseconds time) { uncontended(place, false, 64, 2 * time); }

testenv::ServerOptions server() {
    auto options = large_server("512m");
    options.java_properties["zookeeper.snapCount"] = "10000000";
    return options;
}

}  // namespace

void measure_rate(bool brief) {
    Csv table(brief, {"servers", "delay in each direction [ms]", "one contended lock: holds a second",
                      "64 callers: holds a second", "64 callers: time to acquire [ms]"});
    const milliseconds time(brief ? 500 : 2000);
    for (const int servers : brief ? std::vector{1, 3} : std::vector{1, 3, 5}) {
        Place place(servers, server());
        warm(place, time);
        for (const int delay : brief ? std::vector{0, 5} : std::vector{0, 1, 5, 20}) {
            const bool gated = delay > 0;
            place.delay(milliseconds(2 * delay));
            const int holds = (gated ? 400 / (1 + delay) + 40 : 4000) / (brief ? 8 : 1);
            const double one = contended(place, gated, holds);
            const auto many = uncontended(place, gated, 64, time);
            table.row({servers, delay, one, many.holds_a_second, many.milliseconds_to_acquire});
        }
    }
}

void measure_writes(bool brief) {
    Csv table(brief, {"servers", "callers", "holds a second", "writes a second", "time to acquire [ms]"});
    const milliseconds time(brief ? 500 : 2000);
    for (const int servers : brief ? std::vector{1, 3} : std::vector{1, 3, 5}) {
        const Place place(servers, server());
        warm(place, time);
        for (const int locks : brief ? std::vector{1, 64} : std::vector{1, 8, 64, 512}) {
            const auto rate = uncontended(place, false, locks, time);
            // A hold is a create and a delete.
            table.row({servers, locks, rate.holds_a_second, 2 * rate.holds_a_second, rate.milliseconds_to_acquire});
        }
    }
}

}  // namespace zkrecipes::bench
