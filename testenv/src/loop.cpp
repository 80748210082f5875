#include "loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <csignal>
#include <vector>

namespace zkrecipes::testenv::internal {

namespace {

// Tokens of the loop's own descriptors; watch() counts from 2.
constexpr std::uint64_t wake_token = 0;
constexpr std::uint64_t timer_token = 1;

}  // namespace

std::shared_ptr<Loop> Loop::shared() {
    static std::mutex mutex;
    static std::weak_ptr<Loop> current;
    static pid_t owner = 0;
    const std::lock_guard lock(mutex);
    auto loop = current.lock();
    if (!loop || owner != ::getpid()) {  // a forked child has the object but not the thread
        loop = std::make_shared<Loop>();
        current = loop;
        owner = ::getpid();
    }
    return loop;
}

Loop::Loop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = wake_token;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
    event.data.u64 = timer_token;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &event);
    // This thread must not get the signals of the program.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Loop::~Loop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        wake();
    }
    thread_.join();
}

std::uint64_t Loop::watch(int fd, std::uint32_t events, Handler handler) {
    const std::uint64_t token = next_token_++;
    handlers_[token] = std::make_shared<Handler>(std::move(handler));
    epoll_event event{};
    event.events = events;
    event.data.u64 = token;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    return token;
}

void Loop::change(std::uint64_t token, int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = token;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::unwatch(std::uint64_t token, int fd) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    handlers_.erase(token);
}

void Loop::wake() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

// A timeout of epoll_wait has whole milliseconds. With it, a gate would deliver late what is due in between, and
// together what came one after the other.
void Loop::set_timer(Clock::time_point due) {
    if (due == timer_due_) {
        return;
    }
    timer_due_ = due;
    itimerspec when{};  // all zero: no timer
    if (due != Clock::time_point::max()) {
        const auto since = std::max(due.time_since_epoch(), Clock::duration(1));
        const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
        when.it_value.tv_sec = seconds.count();
        when.it_value.tv_nsec = std::chrono::nanoseconds(since - seconds).count();
    }
    ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Loop::run() {
    std::vector<epoll_event> events(64);
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        Clock::time_point due = Clock::time_point::max();
        for (const Timed* timed : timed_) {
            due = std::min(due, timed->next_due());
        }
        set_timer(due);
        lock.unlock();
        const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
        lock.lock();
        for (int i = 0; i < count; ++i) {
            const auto& event = events[static_cast<std::size_t>(i)];
            std::uint64_t ignored = 0;
            if (event.data.u64 == wake_token) {
                (void)!::read(wake_.get(), &ignored, sizeof ignored);
            } else if (event.data.u64 == timer_token) {
                (void)!::read(timer_.get(), &ignored, sizeof ignored);
                timer_due_ = Clock::time_point::max();  // it has fired and is off
            } else if (const auto found = handlers_.find(event.data.u64); found != handlers_.end()) {
                const auto handler = found->second;  // it may unwatch itself
                (*handler)(event.events);
            }
        }
        const auto now = Clock::now();
        for (Timed* timed : std::vector<Timed*>(timed_.begin(), timed_.end())) {
            if (timed_.count(timed) != 0 && timed->next_due() <= now) {
                timed->on_due(now);
            }
        }
    }
}

}  // namespace zkrecipes::testenv::internal
