#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <zkrecipes/session_stats.hpp>

namespace zkrecipes::internal {

/// A number that one thread at a time changes (under the session lock) and any thread reads, without a lock.
class Counter {
public:
    void add(std::uint64_t more = 1) noexcept { set(value() + more); }
    void subtract() noexcept { set(value() - 1); }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_{0};
};

template <std::size_t N>
std::array<std::uint64_t, N> values_of(const std::array<Counter, N>& counters) noexcept {
    std::array<std::uint64_t, N> out{};
    std::transform(counters.begin(), counters.end(), out.begin(), [](const Counter& each) { return each.value(); });
    return out;
}

/// Fills a DurationHistogram, as a Counter.
class HistogramCounter {
public:
    void add(std::chrono::nanoseconds time) noexcept {
        const auto& bounds = DurationHistogram::bounds;
        const double seconds = std::chrono::duration<double>(time).count();
        const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
        counts_[static_cast<std::size_t>(bucket)].add();
        sum_.add(static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)));
    }
    DurationHistogram value() const noexcept {
        return {values_of(counts_), std::chrono::nanoseconds(static_cast<std::int64_t>(sum_.value()))};
    }

private:
    std::array<Counter, DurationHistogram::bounds.size() + 1> counts_;
    Counter sum_;
};

}  // namespace zkrecipes::internal
