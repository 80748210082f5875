#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/runtime.hpp"
#include "testing/world.hpp"

namespace zkrecipes::sim {

using internal::Instant;
using internal::Lane;
using internal::Nanoseconds;
using internal::TimerId;

/// How punctual one process is.
struct RuntimeShape {
    SimTime lane_delay = 50 * kMicro;       // at most, usually
    SimTime notifier_delay = 200 * kMicro;  // at most, usually
    unsigned slow_notifier_one_in = 0;      // 0: never; a callback before ours was slow
    SimTime slow_notifier = 2 * kSecond;
    SimTime timer_delay = kMilli;  // timers fire late by at most this much
};

/// What one session of a simulated process gets as its surroundings: its own lanes and timers on the process's clock.
class SimRuntime final : public internal::Runtime, public std::enable_shared_from_this<SimRuntime> {
public:
    SimRuntime(Actor& process, RuntimeShape shape);

    Instant now() const noexcept override;
    Deadline::TimePoint steady_now() const noexcept override;
    std::chrono::system_clock::time_point wall_now() const noexcept override;
    std::uint64_t random() noexcept override { return random_.next(); }
    TimerId at(Instant when, std::function<void()> work) override;
    bool cancel(TimerId timer) noexcept override;
    void post(Lane lane, std::function<void()> work) override;
    void stop() noexcept override;

    Actor& process() const noexcept { return process_; }
    Deadline deadline_in(Nanoseconds from_now) const noexcept { return Deadline::after(steady_now(), from_now); }
    /// For the leak check: timers and posts that have not run.
    std::size_t open_timers() const noexcept { return timers_; }
    std::size_t open_posts() const noexcept;
    bool stopped() const noexcept { return stopped_; }

private:
    struct Item {
        EventId event;
        std::function<void()> work;
    };
    struct Queue {
        std::vector<std::shared_ptr<Item>> items;  // in order
        SimTime last = 0;
    };
    void run_item(Lane lane, const std::shared_ptr<Item>& item);

    Actor& process_;
    World& world_;
    const RuntimeShape shape_;
    Rng random_;
    Rng delays_;
    std::array<Queue, 3> lanes_;
    std::size_t timers_ = 0;
    bool stopped_ = false;
};

}  // namespace zkrecipes::sim
