#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "bench/hand_over_meter.hpp"

namespace zkrecipes::bench {

// What the programs of scripts/bench --floors have in common: their command line and what they print.

/// A benchmark of errors says nothing.
[[noreturn]] inline void fail(const std::string& what) {
    std::fprintf(stderr, "bench: %s\n", what.c_str());
    std::_Exit(1);
}

/// One line, which bench/floors/floors.py reads.
inline void print(const char* what, double value) { std::printf("%s: %.2f\n", what, value); }

inline void print(const HandOvers& hand_overs) {
    print("hand-over p50 [us]", hand_overs.microseconds);
    print("hand-overs a second", hand_overs.a_second);
    print("processor [us]", hand_overs.processor);
}

constexpr int kHandOvers = 3000;
/// Hand-overs that are not measured, because some sessions do not want the lock yet.
constexpr int warm_hand_overs(int sessions) { return 4 * sessions + 100; }

/// What a program can measure. The number is that of the sessions or locks.
using Modes = std::map<std::string_view, void (*)(const std::string& hosts, int number)>;

/// The command line: HOSTS MODE [NUMBER]
inline int run(int argc, char** argv, const Modes& modes) {
    const auto mode = argc < 3 ? modes.end() : modes.find(argv[2]);
    const int number = argc < 4 ? 1 : std::atoi(argv[3]);
    if (mode == modes.end() || argc > 4 || number < 1) {
        std::fprintf(stderr, "usage: %s HOSTS MODE [NUMBER]\nThe modes:", argv[0]);
        for (const auto& [name, measure] : modes) std::fprintf(stderr, " %s", std::string(name).c_str());
        std::fprintf(stderr, "\n");
        return 2;
    }
    mode->second(argv[1], number);
    return 0;
}

}  // namespace zkrecipes::bench
