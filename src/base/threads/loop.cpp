#include "base/threads/loop.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/threads/about_to_block.hpp"

namespace zkrecipes::internal {
namespace {

// What epoll tells of the loop's own descriptors. Watches count from 1.
constexpr std::uint64_t kTimer = ~std::uint64_t{0};
constexpr std::uint64_t kWake = kTimer - 1;
constexpr int kEventsAtOnce = 64;

bool control(const Descriptor& epoll, int operation, int fd, std::uint32_t events, std::uint64_t id) noexcept {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return ::epoll_ctl(epoll.get(), operation, fd, &event) == 0;
}

thread_local Loop* t_driven = nullptr;
thread_local std::uint64_t t_me = 0;

[[noreturn]] void refused() { throw std::system_error(errno, std::system_category(), "zkrecipes: epoll"); }

}  // namespace

Instant boot_now() noexcept {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return Instant(std::chrono::seconds(ts.tv_sec) + Nanoseconds(ts.tv_nsec));
}

Loop::Loop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!control(epoll_, EPOLL_CTL_ADD, timer_.get(), EPOLLIN, kTimer) ||
        !control(epoll_, EPOLL_CTL_ADD, wake_.get(), EPOLLIN, kWake)) {
        refused();
    }
}

Loop::~Loop() = default;

bool drives_a_loop() noexcept { return t_driven != nullptr; }

void about_to_block() noexcept {
    if (Loop* const loop = t_driven) loop->hand_over(t_me);
}

void Loop::run() {
    const Driver me = begin_to_drive();
    while (!over()) {
        if (!turn(-1, me)) break;
    }
    t_driven = nullptr;
}

void Loop::poll() {
    turn(0, begin_to_drive());
    t_driven = nullptr;
}

Loop::Driver Loop::begin_to_drive() noexcept {
    t_driven = this;
    return driver_ = t_me = ++last_driver_;
}

/// False: this thread has to leave the loop alone. Another one drives it, or this is a child process.
bool Loop::has_driver(Driver me) const noexcept { return driver_ == me && !process_.inherited(); }

void Loop::hand_over(Driver me) noexcept {
    if (!succeed_ || !has_driver(me)) return;
    {
        const std::lock_guard lock(mutex_);
        driver_ = 0;
        settle_locked();
    }
    t_driven = nullptr;
    if (succeed_()) return;
    const std::lock_guard lock(mutex_);
    driver_ = me;
    busy_ = true;
    t_driven = this;
}

bool Loop::over() {
    const std::lock_guard lock(mutex_);
    return ended_ && scheduled_.empty();
}

bool Loop::turn(int timeout_ms, Driver me) {
    std::array<epoll_event, kEventsAtOnce> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, timeout_ms);
    {
        const std::lock_guard lock(mutex_);
        busy_ = true;
    }
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (event.data.u64 < kWake) {
            tell_ready(event.data.u64, event.events);
            if (!has_driver(me)) return false;
        } else {
            const std::lock_guard lock(mutex_);
            if (event.data.u64 == kWake) {
                wake_.drain();
                woken_ = false;
            } else {
                armed_for_ = Instant::min();  // the timer stays readable until it is set again
            }
        }
    }
    return run_due_alarms(me) && run_scheduled(me);
}

void Loop::tell_ready(WatchId watch, std::uint32_t events) {
    std::shared_ptr<Watched> watched;
    {
        const std::lock_guard lock(mutex_);
        const auto found = watched_.find(watch);
        if (found == watched_.end()) return;  // ended since epoll has told of it
        watched = found->second;
    }
    watched->ready(events);
}

bool Loop::run_due_alarms(Driver me) {
    const Instant now = boot_now();
    for (;;) {
        std::unique_lock lock(mutex_);
        const std::shared_ptr<Alarm> due = alarms_.take_due(now);
        if (!due) return true;
        lock.unlock();
        due->work();
        if (!has_driver(me)) return false;
    }
}

/// What is scheduled meanwhile has its turn after the descriptors and alarms.
bool Loop::run_scheduled(Driver me) {
    std::unique_lock lock(mutex_);
    for (std::size_t left = count_scheduled_; left > 0; --left) {
        std::shared_ptr<Serial> work = scheduled_.pop();
        --count_scheduled_;
        lock.unlock();
        const bool more = work->run_one();
        if (process_.inherited()) return false;
        if (more)
            schedule(std::move(work));
        else
            work.reset();  // outside the lock: it may be the last reference
        if (!has_driver(me)) return false;
        lock.lock();
    }
    settle_locked();
    return true;
}

/// Before this thread waits, or leaves the loop to another one.
void Loop::settle_locked() noexcept {
    busy_ = false;
    if (!scheduled_.empty() || ended_) wake();
    if (armed_for_ != alarms_.earliest()) arm(alarms_.earliest());
}

void Loop::schedule(std::shared_ptr<Serial> work) noexcept {
    if (process_.inherited()) return;
    const std::lock_guard lock(mutex_);
    scheduled_.push(std::move(work));
    ++count_scheduled_;
    if (!busy_) wake();
}

void Loop::end() noexcept {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake();
}

/// One wake-up is enough for whatever comes until the next turn.
void Loop::wake() noexcept {
    if (!std::exchange(woken_, true)) wake_.signal();
}

std::shared_ptr<Alarm> Loop::make_alarm(std::function<void()> work) {
    auto alarm = std::make_shared<Alarm>(std::move(work));
    const std::lock_guard lock(mutex_);
    alarms_.add(alarm);
    return alarm;
}

void Loop::set(const std::shared_ptr<Alarm>& alarm, Instant when) noexcept {
    if (process_.inherited()) return;
    const std::lock_guard lock(mutex_);
    alarms_.set(*alarm, when);
    if (!busy_ && alarms_.earliest() < armed_for_) arm(alarms_.earliest());
}

void Loop::remove(const std::shared_ptr<Alarm>& alarm) noexcept {
    if (process_.inherited()) return;
    const std::lock_guard lock(mutex_);
    alarms_.remove(*alarm);
}

void Loop::arm(Instant when) noexcept {
    armed_for_ = when;
    itimerspec spec{};
    if (when != Instant::max()) {
        const auto since = std::max(when.time_since_epoch(), Nanoseconds(1));  // zero would disarm
        spec.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(since).count();
        spec.it_value.tv_nsec = (since % std::chrono::seconds(1)).count();
    }
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

Loop::Watched::Watched(int fd, Ready when_ready) : own(::fcntl(fd, F_DUPFD_CLOEXEC, 0)), ready(std::move(when_ready)) {}

Loop::WatchId Loop::watch(int fd, std::uint32_t events, Ready ready) {
    const auto watched = std::make_shared<Watched>(fd, std::move(ready));
    const std::lock_guard lock(mutex_);
    const WatchId id = ++last_watch_;
    watched_.emplace(id, watched);
    if (!register_locked(id, *watched, events)) {
        watched_.erase(id);
        refused();
    }
    return id;
}

bool Loop::register_locked(WatchId watch, Watched& watched, std::uint32_t events) noexcept {
    const std::uint32_t former = std::exchange(watched.events, events);
    if (former == events) return true;
    const int operation = former == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    const bool done = control(epoll_, operation, watched.own.get(), events, watch);
    if (!done) watched.events = former;
    return done;
}

bool Loop::want(WatchId watch, std::uint32_t events) noexcept {
    if (process_.inherited()) return true;
    const std::lock_guard lock(mutex_);
    const auto found = watched_.find(watch);
    return found == watched_.end() || register_locked(watch, *found->second, events);
}

void Loop::unwatch(WatchId watch) noexcept {
    if (process_.inherited()) return;
    std::shared_ptr<Watched> last;  // destroyed after the lock was given back
    const std::lock_guard lock(mutex_);
    const auto found = watched_.find(watch);
    if (found == watched_.end()) return;
    last = std::move(found->second);
    watched_.erase(found);
    register_locked(watch, *last, 0);
}

}  // namespace zkrecipes::internal
