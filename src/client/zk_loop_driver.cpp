#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/process.hpp"
#include "base/socket.hpp"
#include "base/threads/shared_threads.hpp"
#include "client/zk_driver.hpp"

namespace zkrecipes::internal {
namespace {

constexpr auto kNextAttempt = std::chrono::milliseconds(50);  // where the system refuses a descriptor

std::uint32_t for_epoll(short events) {
    return ((events & POLLIN) != 0 ? EPOLLIN : 0U) | ((events & POLLOUT) != 0 ? EPOLLOUT : 0U);
}
short for_poll(std::uint32_t events) {
    return static_cast<short>(((events & EPOLLIN) != 0 ? POLLIN : 0) | ((events & EPOLLOUT) != 0 ? POLLOUT : 0) |
                              ((events & (EPOLLERR | EPOLLHUP)) != 0 ? POLLERR : 0));
}

/// What the loop knows of the driver, and whoever has a call of `drive` under way. Each such call may be the last that
/// its thread does for the loop (about_to_block.hpp): then the next one comes on another thread, and has to wait.
class Driven final : public Serial, public std::enable_shared_from_this<Driven> {
public:
    explicit Driven(ZkDriver::Drive drive) : threads_(SharedThreads::of_this_process()), drive_(std::move(drive)) {}

    void begin() {
        const Socket needed(::eventfd(0, EFD_CLOEXEC));  // as the C client will need one, but cannot say it here
        if (!needed) throw std::system_error(errno, std::generic_category(), "a descriptor for the ZooKeeper client");
        alarm_ = loop().make_alarm([weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->look();
        });
        look();
    }

    void look() noexcept {
        const std::lock_guard lock(mutex_);
        if (std::exchange(scheduled_, true) || over_) return;
        loop().schedule(shared_from_this());
    }

    bool run_one() noexcept override {
        {
            const std::lock_guard lock(mutex_);
            scheduled_ = false;
        }
        drive(0);
        return false;
    }

    void end() noexcept {
        if (process_.inherited()) return;
        std::unique_lock lock(mutex_);
        over_ = true;
        idle_.wait(lock, [this] { return !busy_ || runner_ == std::this_thread::get_id(); });
        lock.unlock();
        loop().unwatch(watch_);
        loop().remove(alarm_);
    }

private:
    Loop& loop() const noexcept { return threads_->loop(); }

    void drive(short ready) noexcept {
        std::unique_lock lock(mutex_);
        if (over_) return;
        if (busy_) {
            once_more_ = true;
            loop().want(watch_, 0);
            return;
        }
        busy_ = true;
        runner_ = std::this_thread::get_id();
        do {
            once_more_ = false;
            lock.unlock();
            const ZkDriver::Wait wait = drive_(ready != 0 ? ready : ready_now());
            if (process_.inherited()) return;  // it has forked
            lock.lock();
            if (over_) break;
            wait_for(wait);
            ready = 0;
        } while (once_more_);
        busy_ = false;
        runner_ = std::thread::id();
        idle_.notify_all();
    }

    /// To the C client, which looks at the clock first, it may be too late for an answer that has come.
    short ready_now() const noexcept {
        pollfd polled{wait_.socket, wait_.events, 0};
        return wait_.socket != -1 && ::poll(&polled, 1, 0) > 0 ? polled.revents : short{0};
    }

    /// mutex_ is held.
    void wait_for(const ZkDriver::Wait& wait) noexcept {
        if (wait.is_new || wait.socket != wait_.socket) loop().unwatch(std::exchange(watch_, 0));
        wait_ = wait;
        Nanoseconds time = wait.time;
        bool watched = true;
        if (wait.socket != -1 && watch_ == 0) {
            try {
                watch_ =
                    loop().watch(wait.socket, for_epoll(wait.events), [weak = weak_from_this()](std::uint32_t events) {
                        if (const auto self = weak.lock()) self->drive(for_poll(events));
                    });
            } catch (const std::exception&) {
                watched = false;
            }
        } else {
            watched = loop().want(watch_, for_epoll(wait.events));
        }
        if (!watched && (time < Nanoseconds(0) || time > kNextAttempt)) time = kNextAttempt;
        if (time == Nanoseconds(0)) {
            if (!std::exchange(scheduled_, true)) loop().schedule(shared_from_this());
            time = Nanoseconds(-1);
        }
        loop().set(alarm_, time < Nanoseconds(0) ? Instant::max() : boot_now() + time);
    }

    const ProcessMark process_;
    const std::shared_ptr<SharedThreads> threads_;
    const ZkDriver::Drive drive_;
    std::shared_ptr<Alarm> alarm_;
    std::mutex mutex_;  // guards everything below; not held while `drive` runs
    std::condition_variable idle_;
    bool scheduled_ = false, busy_ = false, once_more_ = false, over_ = false;
    std::thread::id runner_;  // who is in `drive`
    ZkDriver::Wait wait_;     // written by who is in `drive`
    Loop::WatchId watch_ = 0;
};

class LoopDriver final : public ZkDriver {
public:
    explicit LoopDriver(Drive drive) : driven_(std::make_shared<Driven>(std::move(drive))) { driven_->begin(); }
    ~LoopDriver() override { driven_->end(); }
    LoopDriver(const LoopDriver&) = delete;
    LoopDriver& operator=(const LoopDriver&) = delete;
    void look() noexcept override { driven_->look(); }

private:
    const std::shared_ptr<Driven> driven_;
};

}  // namespace

std::unique_ptr<ZkDriver> ZkDriver::on_the_loop(Drive drive) { return std::make_unique<LoopDriver>(std::move(drive)); }

}  // namespace zkrecipes::internal
