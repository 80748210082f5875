// Many sessions want one lock all the time: what it costs to hand it over.
#include <memory>
#include <random>

#include <zkrecipes/exclusive_mutex.hpp>

#include "bench/cases.hpp"
#include "bench/contend.hpp"
#include "bench/floor.hpp"
#include "bench/places.hpp"
#include "bench/processes.hpp"
#include "bench/requests.hpp"
#include "bench/table.hpp"

namespace zkrecipes::bench {
namespace {

const std::string kFloor = "/bench/hand_over/f";
const std::string kOurs = "/bench/hand_over/z";
const std::string kCurator = "/bench/hand_over/c";

/// The sessions of all sides at one place.
class Sides {
public:
    Sides(const Place& place, int sessions, bool gated) {
        FloorClient client(place.hosts(0));
        for (const auto& directory : {kFloor, kOurs, kCurator}) client.make_path(directory);
        for (std::size_t i = 0; i < static_cast<std::size_t>(sessions); ++i) {
            sessions_.push_back(open_session(place.hosts(i, gated)));
        }
        ours_.reserve(sessions_.size());
        for (Session& session : sessions_) {
            Ours& mine = ours_.emplace_back(Ours{ExclusiveMutex(session, kOurs), Grant()});
            ours.push_back({[&mine] { mine.grant = mine.mutex.acquire(); }, [&mine] { mine.grant.release(); }});
        }
        Grant grant = ours_.front().mutex.acquire();
        const std::string data = client.data_of(grant.node());
        grant.release_and_wait();
        for (std::size_t i = 0; i < static_cast<std::size_t>(sessions); ++i) {
            FloorLock& lock = *floors_.emplace_back(std::make_unique<FloorLock>(place.hosts(i, gated), kFloor, data));
            floor.push_back({[&lock] { lock.acquire(); }, [&lock] { lock.release(); }});
        }
        if (Curator::why_not().empty()) curator = std::make_unique<Curator>(sessions, place.all_hosts(gated));
    }

    std::vector<Contender> floor;
    std::vector<Contender> ours;
    std::unique_ptr<Curator> curator;  // null: there is none here

    HandOvers contend_curator(int warm, int count) const {
        const auto numbers = curator->ask({"hand_over", kCurator, std::to_string(warm), std::to_string(count)});
        return {numbers.at(0), numbers.at(1)};
    }

private:
    struct Ours {
        ExclusiveMutex mutex;
        Grant grant;
    };
    std::vector<Session> sessions_;
    std::vector<Ours> ours_;
    std::vector<std::unique_ptr<FloorLock>> floors_;
};

double microseconds_of_a_round_trip(FloorClient& client) {
    std::vector<double> samples;
    for (int i = 0; i < 40; ++i) samples.push_back(microseconds_of([&] { client.round_trip(); }));
    return median(samples);
}

struct Times {
    Row waits{"release to grant", "us, p50", {}, {}, {}};
    Row trips{"release to grant", "round trips", {}, {}, {}};
    Row rate{"holds", "a second", {}, {}, {}};

    static void note(const HandOvers& times, double round_trip, std::vector<double> Row::*side, Times& all) {
        (all.waits.*side).push_back(times.microseconds);
        (all.trips.*side).push_back(times.microseconds / round_trip);
        (all.rate.*side).push_back(times.a_second);
    }
};

/// Paired runs, the sides in another order each time.
Times time_hand_overs(benchmark::State& state, Sides& sides, FloorClient& prober, int warm, int count) {
    Times times;
    std::minstd_rand random(1);
    contend(sides.ours, warm, count);  // until all caches are warm
    if (sides.curator) sides.contend_curator(warm, 3 * count);
    for (auto _ : state) {
        const double round_trip = microseconds_of_a_round_trip(prober);
        const auto begin = Clock::now();
        in_random_order(
            random, [&] { Times::note(contend(sides.floor, warm, count), round_trip, &Row::floor, times); },
            [&] { Times::note(contend(sides.ours, warm, count), round_trip, &Row::ours, times); },
            [&] {
                if (!sides.curator) return;
                Times::note(sides.contend_curator(warm, count), round_trip, &Row::curator, times);
            });
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return times;
}

/// Counts at gates, in a run of its own: a gate takes time.
void count_hand_overs(benchmark::State& state, Place& place, int sessions) {
    Sides sides(place, sessions, true);
    const auto count = [&](const std::string& directory, auto contend_them) {
        contend_them(sessions);  // the library remembers whether it had to wait
        place.reset_trace();
        contend_them(200);
        return requests_of_hand_overs(place.trace(), directory);
    };
    const auto floor = count(kFloor, [&](int holds) { contend(sides.floor, sessions, holds); });
    const auto ours = count(kOurs, [&](int holds) { contend(sides.ours, sessions, holds); });
    HandOverRequests curator;
    if (sides.curator) curator = count(kCurator, [&](int holds) { sides.contend_curator(sessions, holds); });
    const auto add_row = [&](const std::string& what, auto number_of) {
        Row row{what, "a hand-over", {number_of(floor)}, {number_of(ours)}, {}};
        if (sides.curator) row.curator.push_back(number_of(curator));
        const bool shown = what.find("heartbeats") != std::string::npos || median(row.floor) > 0 || row.ours[0] > 0.005;
        if (shown) add(state, std::move(row));
    };
    add_row("requests, p50", [](const HandOverRequests& requests) { return requests.usual; });
    add_row("requests, mean", [](const HandOverRequests& requests) { return requests.total(); });
    for (std::size_t i = 0; i < static_cast<std::size_t>(Purpose::count); ++i) {
        const auto purpose = static_cast<Purpose>(i);
        add_row("  " + std::string(to_string(purpose)), [purpose](const auto& requests) { return requests[purpose]; });
    }
}

void on_one_server(benchmark::State& state, int sessions) {
    {
        Place& place = Place::to_time();
        Sides sides(place, sessions, false);
        FloorClient prober(place.hosts(0));
        Times times = time_hand_overs(state, sides, prober, sessions + 20, 200);
        add(state, std::move(times.waits));
        add(state, std::move(times.rate));
    }
    count_hand_overs(state, Place::one_server(), sessions);
}

void on_three_servers(benchmark::State& state, int sessions) {
    Place place(3);
    {
        Sides sides(place, sessions, false);
        FloorClient prober(place.hosts(0));
        Times times = time_hand_overs(state, sides, prober, sessions + 20, 100);
        add(state, std::move(times.waits));
        add(state, std::move(times.rate));
    }
    count_hand_overs(state, place, sessions);
}

void with_a_slow_network(benchmark::State& state, int sessions) {
    Place& place = Place::one_server();
    {
        Sides sides(place, sessions, true);
        FloorClient prober(place.hosts(0, true));
        place.delay(kSlowNetwork);
        Times times = time_hand_overs(state, sides, prober, sessions + 20, 80);
        add(state, std::move(times.waits));
        add(state, std::move(times.trips));
    }
    place.pass();
}

}  // namespace

void register_hand_over() {
    const auto run = [](const std::string& name, auto work, int sessions) {
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { work(state, sessions); })
            ->UseManualTime()
            ->Iterations(paired_runs());
    };
    for (const int sessions : {8, 64}) {
        run("hand_over/" + std::to_string(sessions) + "_sessions", on_one_server, sessions);
        run("hand_over/" + std::to_string(sessions) + "_sessions/three_servers", on_three_servers, sessions);
    }
    run("hand_over/8_sessions/4_ms_network", with_a_slow_network, 8);
}

}  // namespace zkrecipes::bench
