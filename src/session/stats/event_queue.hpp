#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/session_events.hpp>

#include "base/runtime.hpp"
#include "session/stats/counter.hpp"

namespace spdlog {
class logger;
}

namespace zkrecipes::internal {

/// What is to be told to SessionEvents, in its order. Bounded: what is told too slowly is dropped and counted.
///
/// To wake the notifier thread for each event would cost more than all the rest. So common events wait for the others
/// of the next milliseconds.
class EventQueue : public std::enable_shared_from_this<EventQueue> {
public:
    static constexpr Nanoseconds kWaitForOthers = std::chrono::milliseconds(20);
    static constexpr std::size_t kMost = 1024;
    enum class Kind {
        common,  // waits for others
        prompt,
        certain  // prompt, and never dropped
    };
    using Event = std::function<void(SessionEvents&)>;

    EventQueue(std::shared_ptr<Runtime> runtime, std::shared_ptr<SessionEvents> listener)
        : runtime_(std::move(runtime)), listener_(std::move(listener)) {}

    /// Anywhere, on any thread.
    void push(Kind kind, Event event);
    /// *lock held*: what was pushed is told soon. To be called at flush_at().
    void flush();
    Instant flush_at() const noexcept;
    /// Instead of push(), for want of memory.
    void drop() noexcept {
        const std::lock_guard lock(mutex_);
        dropped_.add();
    }
    std::uint64_t dropped() const noexcept { return dropped_.value(); }
    void log_to(std::shared_ptr<spdlog::logger> logger) { logger_ = std::move(logger); }

private:
    void post() noexcept;  // with the mutex
    void tell();

    const std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<SessionEvents> listener_;
    std::shared_ptr<spdlog::logger> logger_;
    std::mutex mutex_;  // guards what follows
    std::vector<Event> events_;
    bool posted_ = false;
    std::atomic<std::int64_t> flush_at_{Instant::max().time_since_epoch().count()};
    Counter dropped_;
};

}  // namespace zkrecipes::internal
