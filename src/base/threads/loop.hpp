#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/process.hpp"
#include "base/runtime.hpp"
#include "base/threads/alarm_heap.hpp"
#include "base/threads/descriptor.hpp"
#include "base/threads/serial.hpp"

namespace zkrecipes::internal {

/// What one thread does for many sessions: it waits for their descriptors and timers, and runs what they schedule. A
/// loop has no thread of its own; whoever drives it calls run(), or poll() each time that fd() is readable. Any thread
/// may call the other functions, but for those that say so. Works in the process in which it was made, not in a child
/// of fork().
class Loop {
public:
    Loop();  ///< Throws std::system_error.
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// `succeed` calls run() on another thread, when the one that drives the loop is about to block. False: there is
    /// none. To be set before that.
    void set_successor(std::function<bool()> succeed) { succeed_ = std::move(succeed); }

    // ---- for the thread that drives it ---------------------------------------------------------------------------
    /// Until end() was called and nothing is scheduled any more, or another thread drives it. In a child of fork() that
    /// this thread makes: returns.
    void run();
    /// Does what can be done now.
    void poll();
    /// Readable when poll() has something to do.
    int fd() const noexcept { return epoll_.get(); }

    void end() noexcept;
    void schedule(std::shared_ptr<Serial> work) noexcept;

    /// An alarm runs its work, which must be short, once for each time that it is set.
    std::shared_ptr<Alarm> make_alarm(std::function<void()> work);
    /// `when` counts on CLOCK_BOOTTIME; Instant::max(): never.
    void set(const std::shared_ptr<Alarm>& alarm, Instant when) noexcept;
    /// Its work does not start any more; it may be under way on the thread that drives the loop.
    void remove(const std::shared_ptr<Alarm>& alarm) noexcept;

    using WatchId = std::uint64_t;  ///< 0: none
    using Ready = std::function<void(std::uint32_t events)>;
    /// Calls `ready` with EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP as long as one of `events` is there. Throws
    /// std::system_error. The connection lives until the watch has ended, also if the descriptor is closed before.
    WatchId watch(int fd, std::uint32_t events, Ready ready);
    /// False: the system refuses it, and all is as before.
    bool want(WatchId watch, std::uint32_t events) noexcept;
    /// `ready` is not called again; a call may be under way on the thread that drives the loop.
    void unwatch(WatchId watch) noexcept;

private:
    struct Watched {
        Watched(int fd, Ready when_ready);
        const Descriptor own;  // a duplicate: a registration in epoll ends with the last descriptor of a connection,
                               // which a child process may have
        const Ready ready;
        std::uint32_t events = 0;  // 0: not registered, since epoll would tell of errors even so
    };

    friend bool drives_a_loop() noexcept;
    friend void about_to_block() noexcept;
    using Driver = std::uint64_t;  // counts the calls of run() and poll()
    bool turn(int timeout_ms, Driver me);
    Driver begin_to_drive() noexcept;
    bool has_driver(Driver me) const noexcept;
    void hand_over(Driver me) noexcept;
    bool over();
    bool run_due_alarms(Driver me);
    bool run_scheduled(Driver me);
    void settle_locked() noexcept;
    bool register_locked(WatchId watch, Watched& watched, std::uint32_t events) noexcept;
    void tell_ready(WatchId watch, std::uint32_t events);
    void wake() noexcept;
    void arm(Instant when) noexcept;

    const ProcessMark process_;
    std::function<bool()> succeed_;
    const Descriptor epoll_, timer_, wake_;
    std::atomic<Driver> last_driver_{0}, driver_{0};
    std::mutex mutex_;  // guards everything below
    SerialQueue scheduled_;
    std::size_t count_scheduled_ = 0;
    AlarmHeap alarms_;
    Instant armed_for_ = Instant::max();  // what the kernel's timer is set to
    std::unordered_map<WatchId, std::shared_ptr<Watched>> watched_;
    WatchId last_watch_ = 0;
    bool woken_ = false;
    bool busy_ = false;  // it looks at what is scheduled before it waits again
    bool ended_ = false;
};

/// CLOCK_BOOTTIME.
Instant boot_now() noexcept;

}  // namespace zkrecipes::internal
