#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/threads/loop.hpp"
#include "base/threads/serial.hpp"

namespace zkrecipes::internal {

/// Threads that do what may block, for many sessions. One is there from the beginning. Further ones are started when
/// scheduled work has waited for kPatience, so that a session whose callback blocks does not delay the others; those
/// that were not needed for kIdle end. If the system refuses a thread, the work waits for those that are there.
class Workers : public std::enable_shared_from_this<Workers> {
public:
    static constexpr Nanoseconds kPatience = std::chrono::milliseconds(5);
    static constexpr Nanoseconds kIdle = std::chrono::seconds(10);

    /// `name`: of the threads. `loop` looks whether work waits.
    Workers(const char* name, std::shared_ptr<Loop> loop, Nanoseconds idle = kIdle)
        : name_(name), loop_(std::move(loop)), idle_for_(idle) {}
    void start();  ///< Throws std::system_error.
    void schedule(std::shared_ptr<Serial> work) noexcept;
    /// Where nothing else is scheduled: does not wait for kPatience, nor for the loop. False: the system refuses a
    /// thread.
    bool schedule_at_once(std::shared_ptr<Serial> work) noexcept;
    /// Does what is scheduled, and joins the threads, but for the calling one.
    void end() noexcept;

private:
    using Threads = std::vector<std::thread>;
    void add_threads(std::size_t count);
    void run() noexcept;
    bool wait_for_work(std::unique_lock<std::mutex>& lock);
    bool not_needed();
    void leave(std::unique_lock<std::mutex>& lock);
    void push_locked(std::shared_ptr<Serial> work) noexcept;
    void look_later_locked() noexcept;
    void look() noexcept;
    static void join(Threads threads) noexcept;

    const char* const name_;
    const std::shared_ptr<Loop> loop_;
    const Nanoseconds idle_for_;
    std::shared_ptr<Alarm> alarm_;  // looks; set by start()
    const ProcessMark process_;
    std::mutex mutex_;  // guards everything below
    std::condition_variable changed_;
    SerialQueue scheduled_;
    std::uint64_t pushed_ = 0, taken_ = 0;  // pieces of work, ever
    Threads threads_;
    Threads left_;  // have ended, or are about to
    std::size_t idle_ = 0;
    std::size_t least_idle_ = 0;  // since least_since_
    Instant least_since_{};
    std::size_t surplus_ = 0;       // so many were idle all the time before that, and are to end
    std::uint64_t waited_for_ = 0;  // the last piece when look() was planned; 0: it is not planned
    bool ended_ = false;
};

}  // namespace zkrecipes::internal
