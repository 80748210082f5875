#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/runtime.hpp"
#include "base/threads/about_to_block.hpp"
#include "base/threads/lane_owner.hpp"
#include "base/threads/random_source.hpp"
#include "base/threads/shared_threads.hpp"
#include "base/timer_heap.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kLanes = 3;

thread_local const void* t_lanes_of = nullptr;  // the Lanes whose work this thread does now
thread_local std::size_t t_lane = 0;

/// The lanes of one session, and its timers. The shared threads run them, and keep it alive meanwhile, so that the
/// runtime may be stopped, and even destroyed, by work of one of its lanes.
class Lanes : public std::enable_shared_from_this<Lanes> {
public:
    Lanes() : threads_(SharedThreads::of_this_process()) {
        for (std::size_t i = 0; i < kLanes; ++i) {
            lanes_[i].all = this;
            lanes_[i].index = i;
        }
    }

    void start() {
        alarm_ = threads_->loop().make_alarm([weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->time_has_come();
        });
    }

    void post(Lane lane, std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        if (!accepts()) return;
        const auto index = static_cast<std::size_t>(lane);
        lanes_[index].work.push_back(std::move(work));
        schedule(index);
    }

    TimerId at(Instant when, std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        if (phase_ != Phase::running) return 0;
        const TimerId timer = timers_.add(when, std::move(work));
        arm();
        return timer;
    }

    bool cancel(TimerId timer) noexcept {
        std::function<void()> work;  // destroyed after the lock was given back: it may own anything
        const std::lock_guard lock(mutex_);
        return timers_.cancel(timer, work);
    }

    void stop() noexcept {
        if (process_.inherited()) return;  // a forked child has none of the threads
        std::vector<std::function<void()>> dropped;
        std::unique_lock lock(mutex_);
        const bool on_lane = t_lanes_of == this;
        if (phase_ != Phase::running) {
            // Somebody else stops it. A lane must not wait for that: it would wait for itself.
            if (!on_lane) changed_.wait(lock, [this] { return stopped_; });
            return;
        }
        phase_ = Phase::draining;
        dropped = timers_.take_all();
        if (drives_a_loop()) {  // which a lane waits for
            lock.unlock();
            about_to_block();
            lock.lock();
        }
        changed_.wait(lock, [&] { return others_idle(on_lane); });
        phase_ = Phase::ended;
        threads_->loop().remove(alarm_);
        auto threads = std::move(threads_);
        lock.unlock();
        threads.reset();  // joins them, if this was the last session
        lock.lock();
        stopped_ = true;
        changed_.notify_all();
        lock.unlock();
        dropped.clear();
    }

private:
    enum class Phase { running, draining, ended };
    static constexpr auto kProtocol = static_cast<std::size_t>(Lane::protocol);

    struct LaneState : Serial {
        bool run_one() noexcept override { return all->run_one(index); }
        Lanes* all = nullptr;
        std::size_t index = 0;
        std::deque<std::function<void()>> work;
        bool busy = false;
        bool scheduled = false;
        std::uint64_t owner = 0;  // of what is locked by it
    };

    // While draining, what the lanes themselves post still runs: a close that was begun must end. So does what a lane
    // that called stop() posts to itself.
    bool accepts() const noexcept {
        return phase_ == Phase::running || (phase_ == Phase::draining && t_lanes_of == this);
    }

    bool others_idle(bool on_lane) const noexcept {
        for (std::size_t i = 0; i < kLanes; ++i) {
            if (on_lane && i == t_lane) continue;
            if (lanes_[i].busy || !lanes_[i].work.empty()) return false;
        }
        return true;
    }

    void schedule(std::size_t index) noexcept {
        if (std::exchange(lanes_[index].scheduled, true)) return;
        std::shared_ptr<Serial> lane(shared_from_this(), &lanes_[index]);
        if (index == kProtocol)
            threads_->loop().schedule(std::move(lane));
        else
            threads_->workers().schedule(std::move(lane));
    }

    /// The loop tells of the earliest timer. Of one that was cancelled, too: that costs less than to take it back.
    void arm() noexcept {
        const Instant when = timers_.earliest();
        if (when < armed_for_) threads_->loop().set(alarm_, armed_for_ = when);
    }

    void time_has_come() {
        const std::lock_guard lock(mutex_);
        armed_for_ = Instant::max();
        if (phase_ == Phase::running) schedule(kProtocol);
    }

    bool run_one(std::size_t index) noexcept {
        LaneState& lane = lanes_[index];
        std::unique_lock lock(mutex_);
        if (std::function<void()> work = next(index)) {
            lane.busy = true;
            lock.unlock();
            const void* const former = std::exchange(t_lanes_of, this);
            const std::size_t former_lane = std::exchange(t_lane, index);
            {
                const LaneOwner mark(lane.owner);
                work();
                if (process_.inherited()) return false;
                work = nullptr;  // what it owns dies here, outside the lock and before the lane counts as idle
            }
            t_lanes_of = former;
            t_lane = former_lane;
            lock.lock();
            lane.busy = false;
            if (phase_ != Phase::running) changed_.notify_all();
        }
        lane.scheduled = !lane.work.empty() || (index == kProtocol && timers_.earliest() <= boot_now());
        if (index == kProtocol && !lane.scheduled && phase_ == Phase::running) arm();
        return lane.scheduled;
    }

    std::function<void()> next(std::size_t index) {
        // Due timers and posts take turns, so that neither can starve the other.
        auto& queue = lanes_[index].work;
        if (index == kProtocol && !timers_.empty() && (timers_first_ || queue.empty())) {
            timers_first_ = false;
            if (auto work = timers_.take_due(boot_now())) return work;
        }
        timers_first_ = true;
        if (queue.empty()) return {};
        auto work = std::move(queue.front());
        queue.pop_front();
        return work;
    }

    const ProcessMark process_;
    std::mutex mutex_;  // guards everything below
    std::condition_variable changed_;
    std::shared_ptr<SharedThreads> threads_;  // null once stopped
    std::array<LaneState, kLanes> lanes_;
    TimerHeap timers_;
    std::shared_ptr<Alarm> alarm_;
    Instant armed_for_ = Instant::max();  // what the alarm is set to
    bool timers_first_ = true;
    Phase phase_ = Phase::running;
    bool stopped_ = false;
};

class ThreadRuntime final : public Runtime {
public:
    ThreadRuntime() { lanes_->start(); }
    ~ThreadRuntime() override { lanes_->stop(); }

    Instant now() const noexcept override { return boot_now(); }
    Deadline::TimePoint steady_now() const noexcept override { return Deadline::Clock::now(); }
    std::chrono::system_clock::time_point wall_now() const noexcept override {
        return std::chrono::system_clock::now();
    }
    std::uint64_t random() noexcept override { return random_.next(); }

    TimerId at(Instant when, std::function<void()> work) override { return lanes_->at(when, std::move(work)); }
    bool cancel(TimerId timer) noexcept override { return lanes_->cancel(timer); }
    void post(Lane lane, std::function<void()> work) override { lanes_->post(lane, std::move(work)); }
    void stop() noexcept override { lanes_->stop(); }

private:
    const std::shared_ptr<Lanes> lanes_ = std::make_shared<Lanes>();
    RandomSource random_;
};

}  // namespace

std::shared_ptr<Runtime> make_thread_runtime() { return std::make_shared<ThreadRuntime>(); }

}  // namespace zkrecipes::internal
