// One session takes a free lock again and again.
#include <memory>
#include <random>

#include <zkrecipes/exclusive_mutex.hpp>

#include "bench/cases.hpp"
#include "bench/floor.hpp"
#include "bench/places.hpp"
#include "bench/processes.hpp"
#include "bench/processor_time.hpp"
#include "bench/requests.hpp"
#include "bench/table.hpp"

namespace zkrecipes::bench {
namespace {

const std::string kFloor = "/bench/uncontended/f";
const std::string kOurs = "/bench/uncontended/z";
const std::string kCurator = "/bench/uncontended/c";

struct Sides {
    Sides(const Place& place, bool gated)
        : session(open_session(place.hosts(0, gated))), client(place.hosts(0)), mutex(session, kOurs) {
        for (const auto& directory : {kFloor, kOurs, kCurator}) client.make_path(directory);
        Grant grant = mutex.acquire();
        floor = std::make_unique<FloorLock>(place.hosts(0, gated), kFloor, client.data_of(grant.node()));
        if (Curator::why_not().empty()) curator = std::make_unique<Curator>(1, place.all_hosts(gated));
    }

    Session session;
    FloorClient client;
    ExclusiveMutex mutex;
    std::unique_ptr<FloorLock> floor;
    std::unique_ptr<Curator> curator;  // null: there is none here
};

/// What one side needed, over all blocks of a paired run.
struct Samples {
    std::vector<double> acquires;
    std::vector<double> releases;
    std::vector<double> cycles;
    std::vector<double> processor;

    template <class Acquire, class Release>
    void take_cycles(int count, Acquire&& acquire, Release&& release) {
        const double before = processor_microseconds();
        for (int i = 0; i < count; ++i) {
            acquires.push_back(microseconds_of(acquire));
            releases.push_back(microseconds_of(release));
        }
        processor.push_back((processor_microseconds() - before) / count);
    }
};

/// Blocks of cycles in random order: whatever the machine does meanwhile hits all sides alike, and a block is long
/// enough for its processor time to be told.
void uncontended(benchmark::State& state) {
    constexpr int kBlocks = 8;
    constexpr int kCycles = 100;
    Sides sides(Place::to_time(), false);
    Row acquire{"acquire", "us, p50", {}, {}, {}};
    Row release{"release, confirmed", "us, p50", {}, {}, {}};
    Row row{"acquire and release, not confirmed", "us, p50", {}, {}, {}};
    Row processor{"processor time of the client", "us a cycle", {}, {}, {}};
    std::minstd_rand random(1);
    if (sides.curator) sides.curator->ask({"cycles", "mutex", kCurator, "3000"});  // until it is compiled
    for (auto _ : state) {
        Samples floor;
        Samples ours;
        Samples theirs;
        Grant grant;
        const auto begin = Clock::now();
        for (int block = 0; block < kBlocks; ++block) {
            in_random_order(
                random,
                [&] {
                    floor.take_cycles(
                        kCycles, [&] { sides.floor->acquire_free(); }, [&] { sides.floor->release_and_wait(); });
                    for (int i = 0; i < kCycles / 4; ++i) {
                        floor.cycles.push_back(microseconds_of([&] {
                            sides.floor->acquire_free();
                            sides.floor->release();
                        }));
                    }
                },
                [&] {
                    ours.take_cycles(
                        kCycles, [&] { grant = sides.mutex.acquire(); }, [&] { grant.release_and_wait(); });
                    for (int i = 0; i < kCycles / 4; ++i) {
                        ours.cycles.push_back(microseconds_of([&] { sides.mutex.acquire().release(); }));
                    }
                },
                [&] {
                    if (!sides.curator) return;
                    const auto numbers = sides.curator->ask({"cycles", "mutex", kCurator, std::to_string(kCycles)});
                    theirs.acquires.push_back(numbers.at(0));
                    theirs.releases.push_back(numbers.at(1));
                    theirs.processor.push_back(numbers.at(2));
                });
        }
        const auto note = [](Row& into, const auto& samples, auto Samples::*what, std::vector<double> Row::*side) {
            if (!(samples.*what).empty()) (into.*side).push_back(median(samples.*what));
        };
        const auto note_all = [&](const Samples& samples, std::vector<double> Row::*side) {
            note(acquire, samples, &Samples::acquires, side);
            note(release, samples, &Samples::releases, side);
            note(row, samples, &Samples::cycles, side);
            note(processor, samples, &Samples::processor, side);
        };
        note_all(floor, &Row::floor);
        note_all(ours, &Row::ours);
        note_all(theirs, &Row::curator);
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    for (Row* each : {&acquire, &release, &row, &processor}) add(state, std::move(*each));

    // Requests and bytes, in a run of its own.
    Place& place = Place::one_server();
    Sides counted(place, true);
    const auto count = [&](const std::string& directory, auto cycle) {
        cycle();  // what is sent only once, has been sent
        place.reset_trace();
        for (int i = 0; i < kCycles; ++i) cycle();
        return requests_of_cycles(place.trace(), directory, kCycles);
    };
    const CycleRequests floor = count(kFloor, [&] {
        counted.floor->acquire_free();
        counted.floor->release_and_wait();
    });
    const CycleRequests ours = count(kOurs, [&] { counted.mutex.acquire().release_and_wait(); });
    Row requests{"requests", "a cycle", {floor.requests}, {ours.requests}, {}};
    Row bytes{"bytes to the server without the data of nodes", "a cycle", {floor.bytes}, {ours.bytes}, {}};
    if (counted.curator) {
        const CycleRequests curator = count(kCurator, [&] {
            counted.curator->ask({"cycles", "mutex", kCurator, "1"});
        });
        requests.curator.push_back(curator.requests);
        bytes.curator.push_back(curator.bytes);
    }
    add(state, std::move(requests));
    add(state, std::move(bytes));
}

}  // namespace

void register_uncontended() {
    benchmark::RegisterBenchmark("uncontended", uncontended)->UseManualTime()->Iterations(paired_runs());
}

}  // namespace zkrecipes::bench
