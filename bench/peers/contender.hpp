#pragma once

#include <ctime>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace zkrecipes::bench {

/// CLOCK_MONOTONIC, which all processes of a machine share, in nanoseconds.
inline std::int64_t now() {
    std::timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{1000000000} * time.tv_sec + time.tv_nsec;
}

/// One contender of scripts/peers. Prints "ready". Then each line of standard input is a command: two times between
/// which the contender acquires and releases without a pause, and for how long it holds the lock. The answer is one
/// line for each hold (when acquire was called, when it returned, when release was called, when it returned), and
/// "done". Ends with standard input.
template <class Acquire, class Release>
void contend(Acquire&& acquire, Release&& release) {
    struct Hold {
        std::int64_t called, granted, released, confirmed;
    };
    std::puts("ready");
    std::fflush(stdout);
    long long begin = 0;
    long long end = 0;
    long held = 0;
    while (std::scanf("%lld %lld %ld", &begin, &end, &held) == 3) {
        const std::timespec start{static_cast<std::time_t>(begin / 1000000000), static_cast<long>(begin % 1000000000)};
        ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, nullptr);
        std::vector<Hold> holds;
        for (std::int64_t called = now(); called < end; called = now()) {
            acquire();
            const std::int64_t granted = now();
            std::int64_t released = granted;
            if (held > 0) {
                const std::timespec pause{0, held};
                ::nanosleep(&pause, nullptr);
                released = now();
            }
            release();
            holds.push_back({called, granted, released, now()});
        }
        for (const Hold& hold : holds) {
            std::printf("%lld %lld %lld %lld\n", static_cast<long long>(hold.called),
                        static_cast<long long>(hold.granted), static_cast<long long>(hold.released),
                        static_cast<long long>(hold.confirmed));
        }
        std::puts("done");
        std::fflush(stdout);
    }
}

}  // namespace zkrecipes::bench
