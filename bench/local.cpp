// One process uses one lock often: hand-overs inside it, and a lock that it keeps.
#include <boost/fiber/all.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/read_write_lock.hpp>

#include "bench/cases.hpp"
#include "bench/floor.hpp"
#include "bench/places.hpp"
#include "bench/processor_time.hpp"
#include "bench/table.hpp"

namespace zkrecipes::bench {
namespace {

using std::chrono::minutes;

int requests_below(const Place& place, const std::string& directory) {
    int requests = 0;
    for (const auto& record : place.trace()) {
        requests += record.kind == testenv::Record::Kind::request && record.path.starts_with(directory);
    }
    return requests;
}

/// `fibers` of this thread take the lock `rounds` times each; from each release to the code of the next holder.
std::vector<double> hand_around(ExclusiveMutex& mutex, int fibers, int rounds) {
    std::vector<double> samples;
    samples.reserve(static_cast<std::size_t>(fibers) * static_cast<std::size_t>(rounds));
    std::optional<Clock::time_point> released;
    std::vector<boost::fibers::fiber> all;
    for (int i = 0; i < fibers; ++i) {
        all.emplace_back(std::allocator_arg, boost::fibers::fixedsize_stack(64 * 1024), [&] {
            for (int round = 0; round < rounds; ++round) {
                Grant grant = mutex.acquire();
                const auto now = Clock::now();
                if (released) samples.push_back(std::chrono::duration<double, std::micro>(now - *released).count());
                released = Clock::now();
                grant.release();
            }
        });
    }
    for (auto& fiber : all) fiber.join();
    return samples;
}

void hand_over_locally(benchmark::State& state, int waiters, std::uint32_t handovers) {
    const std::string directory = "/bench/local/handed";
    LockOptions options;
    options.local_handovers = handovers;
    options.local_turn = minutes(1);
    Place& timed = Place::to_time();
    FloorClient(timed.hosts(0)).make_path(directory);
    Session session = open_session(timed.hosts(0));
    ExclusiveMutex ours(session, directory, options);
    Row waits{"release to next holder", "us, p50", {}, {}, {}};
    Row rate{"holds", "a second", {}, {}, {}};
    for (auto _ : state) {
        const auto begin = Clock::now();
        const auto samples = hand_around(ours, waiters, 4);
        const double took = std::chrono::duration<double>(Clock::now() - begin).count();
        waits.ours.push_back(median(samples));
        rate.ours.push_back(static_cast<double>(samples.size()) / took);
        state.SetIterationTime(took);
    }
    add(state, std::move(waits));
    add(state, std::move(rate));

    Place& counted = Place::one_server();
    Session gated = open_session(counted.hosts(0, true));
    ExclusiveMutex mutex(gated, directory, options);
    counted.reset_trace();
    const auto holds = static_cast<double>(hand_around(mutex, waiters, 4).size() + 1);
    add(state, Row{"requests", "a hold", {}, {requests_below(counted, directory) / holds}, {}});
}

/// What a kept lock saves the process that keeps it, and what it costs the first one elsewhere.
void keep(benchmark::State& state) {
    const std::string directory = "/bench/local/kept";
    const std::string plain_directory = "/bench/local/given_back";
    LockOptions options;
    options.keep_for = minutes(1);
    Place& timed = Place::to_time();
    for (const auto& path : {directory, plain_directory}) FloorClient(timed.hosts(0)).make_path(path);
    Session session = open_session(timed.hosts(0)), other = open_session(timed.hosts(0));
    ExclusiveMutex kept(session, directory, options), plain(session, plain_directory);
    ExclusiveMutex theirs(other, directory), theirs_plain(other, plain_directory);
    Row again{"acquire again", "us, p50", {}, {}, {}};
    Row cycle{"cycle of a lock that is given back", "us, p50", {}, {}, {}};
    Row first{"first acquire elsewhere", "us, p50", {}, {}, {}};
    Row first_plain{"the same, of a lock that is given back", "us, p50", {}, {}, {}};
    constexpr int kCycles = 2000, kContests = 50;
    for (auto _ : state) {
        const auto begin = Clock::now();
        std::vector<double> acquires, cycles, contests, plain_contests;
        const auto settle = [&] {  // the watch that tells of others is set behind the first release
            for (int i = 0; i < 1000; ++i) {
                const auto token = kept.acquire().token();
                if (kept.acquire().token() == token) return;
            }
        };
        settle();
        for (int i = 0; i < kCycles; ++i) {
            std::optional<Grant> grant;
            acquires.push_back(microseconds_of([&] { grant = kept.acquire(); }));
        }
        for (int i = 0; i < kCycles / 10; ++i) {
            cycles.push_back(microseconds_of([&] { plain.acquire().release_and_wait(); }));
        }
        for (int i = 0; i < kContests; ++i) {
            settle();
            contests.push_back(microseconds_of([&] { theirs.acquire().release_and_wait(); }));
            plain.acquire().release_and_wait();
            plain_contests.push_back(microseconds_of([&] { theirs_plain.acquire().release_and_wait(); }));
        }
        again.ours.push_back(median(acquires));
        cycle.ours.push_back(median(cycles));
        first.ours.push_back(median(contests));
        first_plain.ours.push_back(median(plain_contests));
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    // So many of its own cycles, for each acquire elsewhere, make up for what that one waits longer.
    const double saved = median(cycle.ours) - median(again.ours);
    const double lost = median(first.ours) - median(first_plain.ours);
    for (Row* row : {&again, &cycle, &first, &first_plain}) add(state, std::move(*row));
    add(state, Row{"break-even", "own cycles for each elsewhere", {}, {std::max(lost, 0.0) / saved}, {}});

    Place& counted = Place::one_server();
    Session gated = open_session(counted.hosts(0, true));
    ExclusiveMutex mutex(gated, directory, options);
    const auto token = mutex.acquire().token();
    while (mutex.acquire().token() != token) {
    }
    for (bool quiet = false; !quiet;) {  // what sets the watch is still on its way
        counted.reset_trace();
        for (int i = 0; i < kCycles; ++i) mutex.acquire().release();
        quiet = requests_below(counted, directory) == 0;
    }
    counted.reset_trace();
    for (int i = 0; i < kCycles; ++i) mutex.acquire().release();
    const auto a_cycle = requests_below(counted, directory) / double{kCycles};
    add(state, Row{"requests", "a cycle of the kept lock", {}, {a_cycle}, {}});
}

/// Shares that join one node: what they cost the process, and what a heartbeat with them costs the servers.
void join(benchmark::State& state, int shares) {
    const std::string directory = "/bench/local/shared";
    LockOptions options;
    options.local_handovers = static_cast<std::uint32_t>(shares);
    options.local_turn = minutes(10);
    Place& place = Place::one_server();
    FloorClient(place.hosts(0)).make_path(directory);
    Session session = open_session(place.hosts(0, true));
    ReadWriteLock lock(session, directory, options);
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Grant> grants;
    const auto acquire_until = [&](int count) {
        for (int i = static_cast<int>(grants.size()); i < count; ++i) {
            lock.acquire_shared_async(Deadline::never(), {}, [&](AcquireResult result) {
                const std::lock_guard guard(mutex);
                grants.push_back(std::move(result.value));
                changed.notify_one();
            });
        }
        std::unique_lock guard(mutex);
        changed.wait(guard, [&] { return static_cast<int>(grants.size()) == count; });
    };
    Row joins{"join", "us of processor time", {}, {}, {}};
    Row releases{"release", "us of processor time", {}, {}, {}};
    Row names{"names in a heartbeat", "", {}, {}, {}};
    Row bytes{"heartbeat", "bytes", {}, {}, {}};
    for (auto _ : state) {
        const auto begin = Clock::now();
        acquire_until(1);
        double before = processor_microseconds();
        acquire_until(shares);
        joins.ours.push_back((processor_microseconds() - before) / shares);
        place.reset_trace();
        for (const testenv::Record* heartbeat = nullptr; heartbeat == nullptr;) {
            const auto trace = place.trace();
            for (const auto& record : trace) {
                if (record.kind != testenv::Record::Kind::request || record.parts.empty()) continue;
                heartbeat = &record;
                names.ours.push_back(static_cast<double>(record.parts.size()));
                bytes.ours.push_back(static_cast<double>(record.bytes));
                break;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        before = processor_microseconds();
        grants.clear();
        releases.ours.push_back((processor_microseconds() - before) / shares);
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    for (Row* row : {&joins, &releases, &names, &bytes}) add(state, std::move(*row));
}

}  // namespace

void register_local() {
    benchmark::RegisterBenchmark("local/500_waiters",
                                 [](benchmark::State& state) { hand_over_locally(state, 500, 64); })
        ->UseManualTime()
        ->Iterations(paired_runs());
    benchmark::RegisterBenchmark("local/kept", keep)->UseManualTime()->Iterations(paired_runs());
    benchmark::RegisterBenchmark("local/10000_shares", [](benchmark::State& state) { join(state, 10'000); })
        ->UseManualTime()
        ->Iterations(paired_runs());
}

}  // namespace zkrecipes::bench
