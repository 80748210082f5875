#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Something that happens again and again at instants that are set one at a time.
struct Alarm {
    explicit Alarm(std::function<void()> what) : work(std::move(what)) {}
    const std::function<void()> work;

private:
    friend class AlarmHeap;
    Instant when_ = Instant::max();  // never
    std::size_t position_ = 0;
};

/// Alarms, the earliest first. Only adding one takes memory. Not thread-safe.
class AlarmHeap {
public:
    void add(std::shared_ptr<Alarm> alarm) {
        alarm->position_ = heap_.size();
        heap_.push_back(std::move(alarm));
    }
    void remove(const Alarm& alarm) noexcept {
        const std::size_t position = alarm.position_;
        swap(position, heap_.size() - 1);
        heap_.pop_back();
        if (position < heap_.size()) settle(position);
    }
    void set(Alarm& alarm, Instant when) noexcept {
        alarm.when_ = when;
        settle(alarm.position_);
    }
    Instant earliest() const noexcept { return heap_.empty() ? Instant::max() : heap_.front()->when_; }
    /// The earliest one if it is due, set to never; else null.
    std::shared_ptr<Alarm> take_due(Instant now) noexcept {
        if (earliest() > now || earliest() == Instant::max()) return nullptr;
        std::shared_ptr<Alarm> due = heap_.front();
        set(*due, Instant::max());
        return due;
    }

private:
    bool before(std::size_t a, std::size_t b) const noexcept { return heap_[a]->when_ < heap_[b]->when_; }
    void swap(std::size_t a, std::size_t b) noexcept {
        std::swap(heap_[a], heap_[b]);
        heap_[a]->position_ = a;
        heap_[b]->position_ = b;
    }
    void settle(std::size_t at) noexcept {
        for (; at > 0 && before(at, (at - 1) / 2); at = (at - 1) / 2) swap(at, (at - 1) / 2);
        for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
            if (child + 1 < heap_.size() && before(child + 1, child)) ++child;
            if (!before(child, at)) return;
            swap(at, child);
            at = child;
        }
    }

    std::vector<std::shared_ptr<Alarm>> heap_;
};

}  // namespace zkrecipes::internal
