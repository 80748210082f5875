#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/median.hpp"
#include "bench/processor_time.hpp"

namespace zkrecipes::bench {

struct HandOvers {
    double microseconds = 0;  ///< from a release to the next grant, median
    double a_second = 0;
    double processor = 0;  ///< what this process used of the processors for one of them, in microseconds
};

/// Measures `count` hand-overs of one lock, after `warm` others. The holders call it, each on any thread. Ends the
/// program if two hold the lock at the same time.
class HandOverMeter {
public:
    using Clock = std::chrono::steady_clock;

    HandOverMeter(int warm, int count) : warm_(warm), count_(count) {
        samples_.reserve(static_cast<std::size_t>(count));
    }

    bool enough() const { return holds_ >= warm_ + count_; }

    /// The caller holds the lock since `now`.
    void held(Clock::time_point now) {
        if (inside_.fetch_add(1) != 0) {
            std::fprintf(stderr, "bench: two sessions hold one lock\n");
            std::_Exit(1);
        }
        const int number = holds_++ - warm_;  // negative: not measured
        if (number == 0) {
            begin_ = now;
            processor_ = processor_microseconds();
        }
        if (number < 0 || number >= count_) return;
        samples_.push_back(std::chrono::duration<double, std::micro>(now - released_.load()).count());
        if (number + 1 < count_) return;
        end_ = now;
        processor_ = processor_microseconds() - processor_;
    }
    /// The caller releases the lock now.
    void releases() {
        inside_.fetch_sub(1);
        released_ = Clock::now();
    }

    /// When all holders have released the lock.
    HandOvers result() const {
        const double hand_overs = count_ - 1;
        return {median(samples_), hand_overs / std::chrono::duration<double>(end_ - begin_).count(),
                processor_ / hand_overs};
    }

private:
    const int warm_;
    const int count_;
    // All but inside_ are written by the holder alone.
    std::atomic<int> inside_{0};
    std::atomic<int> holds_{0};
    std::atomic<Clock::time_point> released_{Clock::time_point{}};
    std::vector<double> samples_;
    Clock::time_point begin_;
    Clock::time_point end_;
    double processor_ = 0;
};

}  // namespace zkrecipes::bench
