// What a lock costs, beside the least that it could cost. Each iteration does the same work once through the library
// and once straight on the C client, in random order, so that whatever the machine does meanwhile hits both sides
// alike. The ratio compares the medians.

#include <benchmark/benchmark.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "bench/floor.hpp"

namespace zkrecipes::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr const char* kOurs = "/bench/ours";
constexpr const char* kFloor = "/bench/floor";

std::string hosts;  // set once by main

Session open_session() {
    SessionOptions options;
    options.hosts = hosts;
    options.timeout = std::chrono::seconds(30);
    return Session(std::move(options));
}

double median(std::vector<double>& samples) {
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::nth_element(samples.begin(), middle, samples.end());
    return *middle;
}

template <class Work>
double microseconds_of(Work&& work) {
    const auto begin = Clock::now();
    work();
    return Microseconds(Clock::now() - begin).count();
}

/// Runs ours() and floor() alternately; each answers how many microseconds its measured part took.
template <class Ours, class Floor>
void compare(benchmark::State& state, Ours&& ours, Floor&& floor) {
    std::vector<double> our_samples;
    std::vector<double> floor_samples;
    std::minstd_rand random(1);
    for (int i = 0; i < 50; ++i) {  // until the servers' and our own caches are warm
        ours();
        floor();
    }
    for (auto _ : state) {
        const bool ours_first = random() % 2 == 0;
        double mine = ours_first ? ours() : 0;
        floor_samples.push_back(floor());
        if (!ours_first) mine = ours();
        our_samples.push_back(mine);
        state.SetIterationTime(mine / 1e6);
    }
    const double mine = median(our_samples);
    const double least = median(floor_samples);
    state.counters["ours_us"] = mine;
    state.counters["floor_us"] = least;
    state.counters["ratio"] = mine / least;
}

/// A lock of ours and the floor beside it, each with a session of its own on a directory of its own, and nodes of equal
/// size.
struct Pair {
    Session session = open_session();
    ExclusiveMutex mutex{session, kOurs};
    std::unique_ptr<FloorLock> floor;

    Pair() {
        FloorLock(hosts, kOurs).make_directory();
        FloorLock(hosts, kFloor).make_directory();
        const Grant grant = mutex.acquire();
        floor = std::make_unique<FloorLock>(hosts, kFloor, FloorLock(hosts, kOurs).data_of(grant.node()));
    }
};

const Deadline kLong = std::chrono::hours(1);

void acquire(benchmark::State& state) {
    Pair pair;
    compare(
        state,
        [&] {
            Grant grant;
            const double took = microseconds_of([&] { grant = pair.mutex.acquire(); });
            grant.release_and_wait(kLong);
            return took;
        },
        [&] {
            const double took = microseconds_of([&] { pair.floor->acquire(); });
            pair.floor->release_and_wait();
            return took;
        });
}

void release(benchmark::State& state) {
    Pair pair;
    compare(
        state,
        [&] {
            Grant grant = pair.mutex.acquire();
            return microseconds_of([&] { grant.release_and_wait(kLong); });
        },
        [&] {
            pair.floor->acquire();
            return microseconds_of([&] { pair.floor->release_and_wait(); });
        });
}

/// Acquire and give back without waiting for the answer, four times in a row: what a service does that locks often.
void cycle(benchmark::State& state) {
    constexpr int kCycles = 4;
    Pair pair;
    compare(
        state,
        [&] {
            return microseconds_of([&] {
                       for (int i = 0; i < kCycles; ++i) pair.mutex.acquire().release();
                   }) /
                   kCycles;
        },
        [&] {
            return microseconds_of([&] {
                       for (int i = 0; i < kCycles; ++i) {
                           pair.floor->acquire();
                           pair.floor->release();
                       }
                   }) /
                   kCycles;
        });
}

/// From the holder's release to the moment at which the next one, of another session, knows that it holds.
void hand_over(benchmark::State& state) {
    Pair pair;
    Session next_session = open_session();
    ExclusiveMutex next(next_session, kOurs);
    FloorLock observer(hosts, kOurs);
    FloorLock next_floor(hosts, kFloor);

    std::atomic<bool> stop{false};
    Clock::time_point held_at;
    Countdown go;
    Countdown held;
    go.arm(1);
    held.arm(1);
    std::thread waiter([&] {
        for (;;) {
            go.wait();
            if (stop) return;
            go.arm(1);
            Grant grant = next.acquire();
            held_at = Clock::now();
            grant.release_and_wait(kLong);
            held.done();
        }
    });
    compare(
        state,
        [&] {
            Grant grant = pair.mutex.acquire();
            go.done();
            while (observer.contenders() < 2) std::this_thread::yield();
            // Its watch follows its node; once this has been answered too, the waiter has nothing left to do.
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            const auto begin = Clock::now();
            grant.release();
            held.wait();
            held.arm(1);
            return Microseconds(held_at - begin).count();
        },
        [&] {
            pair.floor->acquire();
            next_floor.queue_behind(pair.floor->node());
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            const auto begin = Clock::now();
            pair.floor->release();
            next_floor.wait_for_turn();
            const double took = Microseconds(Clock::now() - begin).count();
            next_floor.release_and_wait();
            return took;
        });
    stop = true;
    go.done();
    waiter.join();
}

/// Many sessions want one lock all the time: how many times a second it changes hands.
void contended(benchmark::State& state) {
    const auto contenders = static_cast<int>(state.range(0));
    FloorLock(hosts, "/bench/contended").make_directory();
    std::atomic<std::int64_t> cycles{0};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    std::atomic<int> overlap{0};
    std::atomic<int> overlaps{0};
    for (int i = 0; i < contenders; ++i) {
        threads.emplace_back([&] {
            Session session = open_session();
            ExclusiveMutex mutex(session, "/bench/contended");
            while (!stop) {
                Grant grant = mutex.acquire();
                if (overlap.fetch_add(1) != 0) ++overlaps;
                ++cycles;
                overlap.fetch_sub(1);
            }
        });
    }
    while (cycles < contenders) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::int64_t before = cycles;
    for (auto _ : state) {
        const std::int64_t goal = cycles + 200;
        while (cycles < goal) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    state.SetItemsProcessed(cycles - before);
    stop = true;
    for (std::thread& thread : threads) thread.join();
    if (overlaps != 0) state.SkipWithError("two holders at the same time");
}

}  // namespace
}  // namespace zkrecipes::bench

int main(int argc, char** argv) {
    using namespace zkrecipes::bench;
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    spdlog::set_level(spdlog::level::warn);

    // A server of our own, unless the environment names another one to measure.
    std::unique_ptr<zkrecipes::testenv::ZkServer> server;
    if (const char* given = std::getenv("ZKRECIPES_BENCH_HOSTS"); given != nullptr && *given != '\0') {
        hosts = given;
    } else {
        server = std::make_unique<zkrecipes::testenv::ZkServer>();
        hosts = server->connect_string();
    }
    const auto run = [](const char* name, void (*work)(benchmark::State&)) {
        return benchmark::RegisterBenchmark(name, work)->Unit(benchmark::kMicrosecond);
    };
    run("acquire", acquire)->UseManualTime()->Iterations(4000);
    run("release", release)->UseManualTime()->Iterations(4000);
    run("cycle", cycle)->UseManualTime()->Iterations(1500);
    run("hand_over", hand_over)->UseManualTime()->Iterations(600);
    run("contended", contended)->Arg(2)->Arg(8)->Arg(32)->UseRealTime()->Iterations(5);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
