#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

#include "bench/floors/program.hpp"
#include "bench/median.hpp"
#include "bench/processor_time.hpp"

namespace zkrecipes::bench {

/// Measures cycles, in each of which a free lock is acquired and released. Several threads may use it at the same time.
class CycleMeter {
public:
    using Clock = std::chrono::steady_clock;

    /// For one lock, and for many on one session.
    static CycleMeter of_one_lock() { return {800, 4000}; }
    static CycleMeter of_many_locks() { return {2000, 16'000}; }

    /// A cycle has ended. False: there are enough.
    bool add(Clock::time_point called, Clock::time_point granted) {
        const auto now = Clock::now();
        const std::lock_guard guard(mutex_);
        const int number = ++ended_ - warm_;  // 0 and less: not measured
        if (number == 0) {
            begin_ = now;
            processor_ = processor_microseconds();
        }
        if (number > 0 && number <= count_) {
            acquires_.push_back(microseconds(granted - called));
            cycles_.push_back(microseconds(now - called));
        }
        if (number == count_) {
            end_ = now;
            processor_ = processor_microseconds() - processor_;
        }
        return number < count_;
    }

    void print_result() const {
        print("acquire p50 [us]", median(acquires_));
        print("acquire p99 [us]", quantile(acquires_, 0.99));
        print("cycle p50 [us]", median(cycles_));
        print("cycles a second", count_ / microseconds(end_ - begin_) * 1e6);
        print("processor [us]", processor_ / count_);
    }

private:
    CycleMeter(int warm, int count) : warm_(warm), count_(count) {
        acquires_.reserve(static_cast<std::size_t>(count));
        cycles_.reserve(static_cast<std::size_t>(count));
    }
    static double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

    const int warm_;  // cycles before the ones that are measured
    const int count_;
    std::mutex mutex_;  // guards the members below
    int ended_ = 0;
    std::vector<double> acquires_;
    std::vector<double> cycles_;
    Clock::time_point begin_;
    Clock::time_point end_;
    double processor_ = 0;
};

/// Calls both in turn until there are enough cycles. Both block: `acquire` until the lock is held, `release` until the
/// server has confirmed it.
template <class Acquire, class Release>
void run_cycles(CycleMeter& meter, Acquire&& acquire, Release&& release) {
    CycleMeter::Clock::time_point called, granted;
    do {
        called = CycleMeter::Clock::now();
        acquire();
        granted = CycleMeter::Clock::now();
        release();
    } while (meter.add(called, granted));
}

/// One thread and one lock.
template <class Acquire, class Release>
void measure_uncontended(Acquire&& acquire, Release&& release) {
    CycleMeter meter = CycleMeter::of_one_lock();
    run_cycles(meter, acquire, release);
    meter.print_result();
}

}  // namespace zkrecipes::bench
