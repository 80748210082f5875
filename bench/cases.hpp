#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <vector>

namespace zkrecipes::bench {

// The cases. Each file adds its own, by name; scripts/bench --case selects.
void register_hand_over();
void register_uncontended();
void register_sets();
void register_crowds();
void register_local();

/// How often each comparison is repeated: ZKRECIPES_BENCH_RUNS, otherwise 5.
int paired_runs();

/// The round trip of the network in the cases that delay it.
constexpr std::chrono::milliseconds kSlowNetwork{4};

using Clock = std::chrono::steady_clock;

template <class Work>
double microseconds_of(Work&& work) {
    const auto begin = Clock::now();
    work();
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Whatever the machine does meanwhile then hits all sides alike.
template <class... Work>
void in_random_order(std::minstd_rand& random, Work&&... work) {
    std::vector<std::function<void()>> all{work...};
    std::shuffle(all.begin(), all.end(), random);
    for (const auto& each : all) each();
}

}  // namespace zkrecipes::bench
