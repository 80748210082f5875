#pragma once

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <utility>

#include "base/runtime.hpp"

namespace zkrecipes::testing {

using internal::Instant;
using internal::Lane;
using internal::Nanoseconds;
using internal::TimerId;

/// A runtime whose time stands still until the test moves it, and whose lanes run when the test says so, all on the
/// test's own thread.
class FakeRuntime final : public internal::Runtime {
public:
    Instant now() const noexcept override {
        ++looks_;
        return now_;
    }
    std::size_t looks() const noexcept { return looks_; }  // how often somebody asked for the time
    Deadline::TimePoint steady_now() const noexcept override {
        return Deadline::TimePoint(std::chrono::hours(1) + now_.time_since_epoch());
    }
    std::chrono::system_clock::time_point wall_now() const noexcept override { return {}; }
    std::uint64_t random() noexcept override { return random_ = random_ * 6364136223846793005u + 1442695040888963407u; }

    TimerId at(Instant when, std::function<void()> work) override {
        if (stopped_) return 0;
        timers_.emplace(std::pair(when, ++last_timer_), std::move(work));
        return last_timer_;
    }
    bool cancel(TimerId timer) noexcept override {
        for (auto it = timers_.begin(); it != timers_.end(); ++it) {
            if (it->first.second != timer) continue;
            timers_.erase(it);
            return true;
        }
        return false;
    }
    void post(Lane lane, std::function<void()> work) override {
        if (refuses_posts_) throw std::bad_alloc();
        if (!stopped_) lanes_[static_cast<std::size_t>(lane)].push_back(std::move(work));
    }
    void stop() noexcept override {
        stopped_ = true;
        timers_.clear();
    }

    /// Runs what is posted and what is due, until nothing is left.
    void run() {
        while (step()) {
        }
    }
    void advance(Nanoseconds by) {
        const Instant target = now_ + by;
        run();
        while (!timers_.empty() && timers_.begin()->first.first <= target) {
            now_ = std::max(now_, timers_.begin()->first.first);
            run();
        }
        now_ = target;
        run();
    }
    /// Time passes, and nothing of ours runs meanwhile: the process was stopped.
    void freeze_for(Nanoseconds by) { now_ += by; }
    void refuse_posts(bool refuse) { refuses_posts_ = refuse; }  // memory is short
    void hold_lane(Lane lane, bool hold) { held_[static_cast<std::size_t>(lane)] = hold; }

    /// Runs `blocking` on a fiber while the runtime goes on.
    template <class Work>
    void while_running(Work&& blocking) {
        boost::fibers::fiber fiber(boost::fibers::launch::dispatch, std::forward<Work>(blocking));
        for (int i = 0; i < 1000; ++i) {
            run();
            boost::this_fiber::yield();
        }
        // Nothing happens any more by itself: let time pass, for whoever waits for that.
        for (int i = 0; i < 100; ++i) {
            advance(std::chrono::milliseconds(100));
            boost::this_fiber::yield();
        }
        fiber.join();
    }

    bool stopped() const { return stopped_; }
    std::size_t timers() const { return timers_.size(); }

private:
    bool step() {
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            if (held_[i] || lanes_[i].empty()) continue;
            auto work = std::move(lanes_[i].front());
            lanes_[i].pop_front();
            work();
            return true;
        }
        if (timers_.empty() || timers_.begin()->first.first > now_ || held_[0]) return false;
        auto work = std::move(timers_.begin()->second);
        timers_.erase(timers_.begin());
        work();
        return true;
    }

    mutable std::size_t looks_ = 0;
    Instant now_{std::chrono::hours(100)};
    std::uint64_t random_ = 1;
    std::map<std::pair<Instant, TimerId>, std::function<void()>> timers_;
    std::array<std::deque<std::function<void()>>, 3> lanes_;
    std::array<bool, 3> held_{};
    TimerId last_timer_ = 0;
    bool stopped_ = false;
    bool refuses_posts_ = false;
};

}  // namespace zkrecipes::testing
