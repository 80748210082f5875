#include "base/timer_heap.hpp"

#include <utility>

namespace zkrecipes::internal {

TimerId TimerHeap::add(Instant when, std::function<void()> work) {
    if (free_.empty()) {
        slots_.emplace_back();
        free_.reserve(slots_.capacity());
        free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const std::uint32_t slot = free_.back();
    heap_.push_back(Entry{when, next_order_++, slot});
    free_.pop_back();
    slots_[slot].work = std::move(work);
    slots_[slot].used = true;
    ++slots_[slot].generation;
    sift_up(static_cast<std::uint32_t>(heap_.size() - 1));
    return (TimerId{slots_[slot].generation} << 32) | (TimerId{slot} + 1);
}

bool TimerHeap::cancel(TimerId timer, std::function<void()>& work) noexcept {
    const std::uint64_t index = timer & 0xffff'ffffU;
    if (index == 0 || index > slots_.size()) return false;
    const Slot& slot = slots_[index - 1];
    if (!slot.used || slot.generation != static_cast<std::uint32_t>(timer >> 32)) return false;
    work = take(slot.position);
    return true;
}

std::function<void()> TimerHeap::take_due(Instant now) {
    if (heap_.empty() || heap_.front().when > now) return {};
    return take(0);
}

std::vector<std::function<void()>> TimerHeap::take_all() {
    std::vector<std::function<void()>> all;
    all.reserve(heap_.size());
    while (!heap_.empty()) all.push_back(take(static_cast<std::uint32_t>(heap_.size() - 1)));
    return all;
}

std::function<void()> TimerHeap::take(std::uint32_t position) noexcept {
    const std::uint32_t slot = heap_[position].slot;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (position < heap_.size()) {
        place(position, last);
        sift_down(position);
        sift_up(position);
    }
    slots_[slot].used = false;
    free_.push_back(slot);
    return std::exchange(slots_[slot].work, nullptr);
}

void TimerHeap::place(std::uint32_t position, const Entry& entry) noexcept {
    heap_[position] = entry;
    slots_[entry.slot].position = position;
}

void TimerHeap::sift_up(std::uint32_t position) noexcept {
    const Entry entry = heap_[position];
    while (position > 0) {
        const std::uint32_t parent = (position - 1) / 2;
        if (!before(entry, heap_[parent])) break;
        place(position, heap_[parent]);
        position = parent;
    }
    place(position, entry);
}

void TimerHeap::sift_down(std::uint32_t position) noexcept {
    const Entry entry = heap_[position];
    const auto size = static_cast<std::uint32_t>(heap_.size());
    while (true) {
        std::uint32_t child = 2 * position + 1;
        if (child >= size) break;
        if (child + 1 < size && before(heap_[child + 1], heap_[child])) ++child;
        if (!before(heap_[child], entry)) break;
        place(position, heap_[child]);
        position = child;
    }
    place(position, entry);
}

}  // namespace zkrecipes::internal
