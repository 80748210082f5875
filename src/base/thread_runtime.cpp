#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <poll.h>

#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/process.hpp"
#include "base/runtime.hpp"
#include "base/signal_mask.hpp"
#include "base/timer_heap.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kLanes = 3;
constexpr std::array<const char*, kLanes> kThreadNames{"zkr-protocol", "zkr-notifier", "zkr-blocking"};

Instant boot_now() noexcept {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return Instant(std::chrono::seconds(ts.tv_sec) + Nanoseconds(ts.tv_nsec));
}

/// A descriptor that another program started by the host does not inherit.
class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {
        if (fd_ < 0) throw std::system_error(errno, std::system_category(), "zkrecipes: timer or event descriptor");
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const noexcept { return fd_; }
    void drain() const noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto ignored = ::read(fd_, &count, sizeof(count));
    }

private:
    const int fd_;
};

/// Unpredictable numbers, straight from the kernel: identities of lock nodes must not repeat between processes.
class RandomSource {
public:
    std::uint64_t next() noexcept {
        const std::lock_guard lock(mutex_);
        if (left_ == 0) refill();
        return words_[--left_];
    }

private:
    void refill() noexcept {
        auto* bytes = reinterpret_cast<unsigned char*>(words_.data());
        std::size_t filled = 0;
        while (filled < sizeof(words_)) {
            const ssize_t got = ::getrandom(bytes + filled, sizeof(words_) - filled, 0);
            if (got > 0)
                filled += static_cast<std::size_t>(got);
            else if (got < 0 && errno != EINTR)
                std::terminate();  // no kernel since 3.17 does that
        }
        left_ = words_.size();
    }

    std::mutex mutex_;  // guards what follows
    std::array<std::uint64_t, 32> words_{};
    std::size_t left_ = 0;
};

thread_local const void* t_lanes_of = nullptr;  // the Lanes that this thread belongs to
thread_local std::size_t t_lane = 0;

/// The three threads and what they share. Each thread keeps it alive, so that the runtime may be stopped, and even
/// destroyed, by work that runs on one of them.
class Lanes : public std::enable_shared_from_this<Lanes> {
public:
    Lanes()
        : timer_fd_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
          wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    /// All of them before there is anything to do: a thread that the system refuses later would break whatever step of
    /// the session first needs it.
    void start() {
        const SignalMaskForNewThreads mask;
        try {
            for (std::size_t i = 0; i < kLanes; ++i) {
                lanes_[i].thread = std::thread([self = shared_from_this(), i] { self->run(i); });
            }
        } catch (...) {
            stop();
            throw;
        }
    }

    void post(Lane lane, std::function<void()> work) {
        const auto index = static_cast<std::size_t>(lane);
        const std::lock_guard lock(mutex_);
        if (!accepts()) return;
        lanes_[index].work.push_back(std::move(work));
        wake(index);
    }

    TimerId at(Instant when, std::function<void()> work) {
        const std::lock_guard lock(mutex_);
        if (phase_ != Phase::running) return 0;
        const TimerId timer = timers_.add(when, std::move(work));
        if (when < armed_for_) arm(when);
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
            if (!on_lane) changed_.wait(lock, [this] { return joined_; });
            return;
        }
        phase_ = Phase::draining;
        dropped = timers_.take_all();
        changed_.wait(lock, [&] { return others_idle(on_lane); });
        phase_ = Phase::ended;
        std::array<std::thread, kLanes> threads;
        for (std::size_t i = 0; i < kLanes; ++i) {
            threads[i] = std::move(lanes_[i].thread);
            wake(i);
        }
        lock.unlock();
        for (std::size_t i = 0; i < kLanes; ++i) {
            if (!threads[i].joinable()) continue;
            if (on_lane && t_lane == i)
                threads[i].detach();
            else
                threads[i].join();
        }
        lock.lock();
        joined_ = true;
        changed_.notify_all();
        lock.unlock();
        dropped.clear();
    }

private:
    enum class Phase { running, draining, ended };
    static constexpr auto kProtocol = static_cast<std::size_t>(Lane::protocol);

    struct LaneState {
        std::deque<std::function<void()>> work;
        std::thread thread;
        std::condition_variable wake;  // not of the protocol lane, which sleeps in poll()
        bool busy = false;
        bool asleep = false;
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

    void wake(std::size_t index) noexcept {
        if (!lanes_[index].asleep) return;
        lanes_[index].asleep = false;  // one wake-up is enough for any number of posts
        if (index != kProtocol) {
            lanes_[index].wake.notify_one();
            return;
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto ignored = ::write(wake_fd_.get(), &one, sizeof(one));
    }

    /// Another thread may arm the timer while the lane sleeps on it: the kernel wakes the lane at the new time.
    void arm(Instant when) noexcept {
        armed_for_ = when;
        itimerspec spec{};
        if (when != Instant::max()) {
            const auto since = std::max(when.time_since_epoch(), Nanoseconds(1));  // zero would disarm
            spec.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(since).count();
            spec.it_value.tv_nsec = (since % std::chrono::seconds(1)).count();
        }
        ::timerfd_settime(timer_fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
    }

    void run(std::size_t index) noexcept {
        t_lanes_of = this;
        t_lane = index;
        pthread_setname_np(pthread_self(), kThreadNames[index]);
        LaneState& lane = lanes_[index];
        std::unique_lock lock(mutex_);
        while (true) {
            std::function<void()> work = next(index);
            if (work) {
                lane.busy = true;
                lock.unlock();
                work();
                if (process_.inherited()) return;  // it has forked, and this thread is all that the child has
                work = nullptr;  // what it owns dies here, outside the lock and before the lane counts as idle
                lock.lock();
                lane.busy = false;
                if (phase_ != Phase::running) changed_.notify_all();
                continue;
            }
            if (phase_ == Phase::ended) return;
            sleep(index, lock);
        }
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

    void sleep(std::size_t index, std::unique_lock<std::mutex>& lock) {
        LaneState& lane = lanes_[index];
        lane.asleep = true;
        if (index != kProtocol) {
            lane.wake.wait(lock, [&] { return !lane.asleep; });
            return;
        }
        if (armed_for_ != timers_.earliest()) arm(timers_.earliest());
        lock.unlock();
        std::array<pollfd, 2> fds{{{timer_fd_.get(), POLLIN, 0}, {wake_fd_.get(), POLLIN, 0}}};
        while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
        }
        if (fds[1].revents != 0) wake_fd_.drain();
        lock.lock();
        lane.asleep = false;
    }

    const ProcessMark process_;
    const Descriptor timer_fd_;
    const Descriptor wake_fd_;
    std::mutex mutex_;  // guards everything below
    std::condition_variable changed_;
    std::array<LaneState, kLanes> lanes_;
    TimerHeap timers_;
    Instant armed_for_ = Instant::max();  // what the kernel timer is set to
    bool timers_first_ = true;
    Phase phase_ = Phase::running;
    bool joined_ = false;
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
