// Locks that take several nodes: what a cycle costs while nobody else wants them.
#include <memory>
#include <random>

#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include "bench/cases.hpp"
#include "bench/floor.hpp"
#include "bench/places.hpp"
#include "bench/processes.hpp"
#include "bench/requests.hpp"
#include "bench/table.hpp"

namespace zkrecipes::bench {
namespace {

/// One lock of one side, with its session at the gate.
struct Lock {
    std::string directory;
    std::int64_t session = 0;
    std::function<void()> acquire;
    std::function<void()> release;  ///< waits for the answer
};

/// The locks of all sides, opened at the same hosts.
struct Locks {
    Lock floor;
    Lock ours;
    std::string curators_directory;
    std::string curators_kind;
    std::shared_ptr<void> kept;  // what the functions use
};

std::vector<std::string> paths_below(const std::string& directory, int count) {
    std::vector<std::string> paths;
    for (int i = 0; i < count; ++i) paths.push_back(directory + "/" + std::to_string(i));
    return paths;
}

Locks sets(const std::string& hosts, int paths) {
    struct Kept {
        Session session;
        MultiLock lock;
        Grant grant;
        std::unique_ptr<FloorSet> floor;
    };
    const std::string top = "/bench/set_of_" + std::to_string(paths);
    std::vector<MultiLock::Member> members;
    for (const auto& path : paths_below(top + "/z", paths)) members.push_back({path});
    Session session = open_session(hosts);
    MultiLock lock(session, members);
    const auto kept = std::make_shared<Kept>(Kept{std::move(session), std::move(lock), Grant(), nullptr});
    kept->grant = kept->lock.acquire();
    const auto directories = paths_below(top + "/f", paths);
    kept->floor = std::make_unique<FloorSet>(hosts, directories, FloorClient(hosts).data_of(kept->grant.node()));
    for (const auto& directory : directories) kept->floor->make_path(directory);
    kept->grant.release_and_wait();
    return {{top + "/f", kept->floor->session_id(), [=] { kept->floor->acquire(); },
             [=] { kept->floor->release_and_wait(); }},
            {top + "/z", kept->session.info().session_id, [=] { kept->grant = kept->lock.acquire(); },
             [=] { kept->grant.release_and_wait(); }},
            top + "/c",
            std::to_string(paths),
            kept};
}

Locks semaphores(const std::string& hosts, int) {
    struct Kept {
        Session session;
        SemaphoreMutex lock;
        Grant grant;
        std::unique_ptr<FloorSemaphoreMutex> floor;
    };
    const std::string top = "/bench/semaphore_mutex";
    Session session = open_session(hosts);
    SemaphoreMutex lock(session, top + "/z");
    const auto kept = std::make_shared<Kept>(Kept{std::move(session), std::move(lock), Grant(), nullptr});
    kept->grant = kept->lock.acquire();
    kept->floor =
        std::make_unique<FloorSemaphoreMutex>(hosts, top + "/f", FloorClient(hosts).data_of(kept->grant.node()));
    for (const char* folder : {"/f/locks", "/f/leases"}) kept->floor->make_path(top + folder);
    kept->grant.release_and_wait();
    return {{top + "/f", kept->floor->session_id(), [=] { kept->floor->acquire(); },
             [=] { kept->floor->release_and_wait(); }},
            {top + "/z", kept->session.info().session_id, [=] { kept->grant = kept->lock.acquire(); },
             [=] { kept->grant.release_and_wait(); }},
            top + "/c",
            "semaphore_mutex",
            kept};
}

double acquire_microseconds(const Lock& lock, int count) {
    std::vector<double> samples;
    for (int i = 0; i < count; ++i) {
        samples.push_back(microseconds_of(lock.acquire));
        lock.release();
    }
    return median(samples);
}

/// The locks at some hosts, and Curator beside them if it is there.
class Sides {
public:
    Sides(const Locks& locks, const std::string& hosts) : locks_(locks), prober_(hosts) {
        if (Curator::why_not().empty()) curator_ = std::make_unique<Curator>(1, std::vector<std::string>{hosts});
        of_curator(1);
        acquire_microseconds(locks_.ours, 3);
    }

    double round_trip() {
        std::vector<double> samples;
        for (int i = 0; i < 20; ++i) samples.push_back(microseconds_of([&] { prober_.round_trip(); }));
        return median(samples);
    }
    double of_curator(int cycles) {
        if (!curator_) return 0;
        return curator_->ask({"cycles", locks_.curators_kind, locks_.curators_directory, std::to_string(cycles)}).at(0);
    }
    /// One paired run, in units of so many microseconds. Curator, which takes one path after the other, may need fewer
    /// cycles, or none.
    void time(std::minstd_rand& random, int count, int curators_count, double unit, Row& row) {
        in_random_order(
            random, [&] { row.floor.push_back(acquire_microseconds(locks_.floor, count) / unit); },
            [&] { row.ours.push_back(acquire_microseconds(locks_.ours, count) / unit); },
            [&] {
                if (curator_ && curators_count > 0) row.curator.push_back(of_curator(curators_count) / unit);
            });
    }
    bool has_curator() const { return curator_ != nullptr; }
    const Locks& locks() const { return locks_; }

private:
    const Locks locks_;
    FloorClient prober_;
    std::unique_ptr<Curator> curator_;
};

/// The network must be slow, so that requests that are sent together are seen together.
void count_cycle(benchmark::State& state, Place& place, Sides& sides) {
    Row trips{"acquire, counted", "round trips", {}, {}, {}};
    Row requests{"requests", "a cycle", {}, {}, {}};
    const auto count = [&](const std::string& directory, std::int64_t session, std::vector<double> Row::*side,
                           const std::function<void()>& acquire, const std::function<void()>& release) {
        place.reset_trace();
        acquire();
        // Curator counts whole cycles, and waits for the answer to each delete.
        if (session != 0) (trips.*side).push_back(round_trips(place.trace(), session));
        release();
        (requests.*side).push_back(requests_of_cycles(place.trace(), directory, 1).requests);
    };
    const Locks& locks = sides.locks();
    count(locks.floor.directory, locks.floor.session, &Row::floor, locks.floor.acquire, locks.floor.release);
    count(locks.ours.directory, locks.ours.session, &Row::ours, locks.ours.acquire, locks.ours.release);
    if (sides.has_curator()) {
        count(
            locks.curators_directory, 0, &Row::curator, [&] { sides.of_curator(1); }, [] {});
    }
    add(state, std::move(trips));
    add(state, std::move(requests));
}

void uncontended_set(benchmark::State& state, Locks (*make)(const std::string& hosts, int paths), int paths) {
    Place& place = Place::one_server();
    Sides direct(make(Place::to_time().hosts(0), paths), Place::to_time().hosts(0));
    Sides slow(make(place.hosts(0, true), paths), place.hosts(0, true));
    const bool many = paths > 16;
    Row times{"acquire", "us, p50", {}, {}, {}};
    Row trips{"acquire, 4 ms network", "round trips, p50", {}, {}, {}};
    std::minstd_rand random(1);
    for (auto _ : state) {
        const auto begin = Clock::now();
        direct.time(random, many ? 10 : 100, many ? 1 : 100, 1, times);
        place.delay(kSlowNetwork);
        slow.time(random, many ? 10 : 20, many ? 0 : 20, slow.round_trip(), trips);
        place.pass();
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    add(state, std::move(times));
    add(state, std::move(trips));
    place.delay(kSlowNetwork);
    count_cycle(state, place, slow);
    place.pass();
}

}  // namespace

void register_sets() {
    const auto run = [](const std::string& name, auto make, int paths) {
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { uncontended_set(state, make, paths); })
            ->UseManualTime()
            ->Iterations(paired_runs());
    };
    run("multi_lock/4_paths", sets, 4);
    run("multi_lock/256_paths", sets, 256);
    run("semaphore_mutex", semaphores, 1);
}

}  // namespace zkrecipes::bench
