#include "bench/contend.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "bench/median.hpp"

namespace zkrecipes::bench {

HandOvers contend(const std::vector<Contender>& contenders, int warm, int count) {
    using Clock = std::chrono::steady_clock;
    // All but `inside` are written by the holder alone.
    std::atomic<int> inside{0};
    std::atomic<int> holds{0};
    std::atomic<Clock::time_point> released{Clock::time_point{}};
    std::vector<double> samples;
    samples.reserve(static_cast<std::size_t>(count));
    Clock::time_point begin;
    Clock::time_point end;
    const auto hold = [&](Clock::time_point now) {
        if (inside.fetch_add(1) != 0) {
            std::fprintf(stderr, "bench: two sessions hold one lock\n");
            std::_Exit(1);
        }
        const int number = holds++;
        if (number == warm) begin = now;
        if (number >= warm && number < warm + count) {
            samples.push_back(std::chrono::duration<double, std::micro>(now - released.load()).count());
            end = now;
        }
        inside.fetch_sub(1);
    };
    std::vector<std::thread> threads;
    for (const Contender& contender : contenders) {
        threads.emplace_back([&] {
            while (holds < warm + count) {
                contender.acquire();
                hold(Clock::now());
                released = Clock::now();
                contender.release();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return {median(samples), (count - 1) / std::chrono::duration<double>(end - begin).count()};
}

}  // namespace zkrecipes::bench
