#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Timers in the order of their instants, equal ones in the order in which they were added. Adding and cancelling cost
/// log n, and a cancelled timer leaves nothing behind: every blocking call has a timer, nearly all of them are
/// cancelled, and their instants may lie hours ahead. Not thread-safe.
class TimerHeap {
public:
    TimerId add(Instant when, std::function<void()> work);
    /// Takes the timer out. Its work is moved to `work` so that the caller can destroy it where it holds no lock.
    bool cancel(TimerId timer, std::function<void()>& work) noexcept;
    bool empty() const noexcept { return heap_.empty(); }
    std::size_t size() const noexcept { return heap_.size(); }
    Instant earliest() const noexcept { return heap_.empty() ? Instant::max() : heap_.front().when; }
    /// The work of the earliest timer if it is due; else empty.
    std::function<void()> take_due(Instant now);
    /// All of them, for the caller to destroy.
    std::vector<std::function<void()>> take_all();

private:
    struct Entry {
        Instant when;
        std::uint64_t order;
        std::uint32_t slot;
    };
    struct Slot {
        std::function<void()> work;
        std::uint32_t generation = 0;
        std::uint32_t position = 0;  // in heap_
        bool used = false;
    };
    static bool before(const Entry& a, const Entry& b) noexcept {
        return a.when != b.when ? a.when < b.when : a.order < b.order;
    }
    void place(std::uint32_t position, const Entry& entry) noexcept;
    void sift_up(std::uint32_t position) noexcept;
    void sift_down(std::uint32_t position) noexcept;
    std::function<void()> take(std::uint32_t position) noexcept;

    std::vector<Entry> heap_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;  // has room for all slots, so that giving one back cannot fail
    std::uint64_t next_order_ = 0;
};

}  // namespace zkrecipes::internal
