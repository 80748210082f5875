#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/runtime.hpp"
#include "base/wait_event.hpp"
#include "session/common/internal_thread.hpp"

namespace spdlog {
class logger;
}

namespace zkrecipes::internal {

/// Logs the exception that is being handled, behind these words.
void log_thrown(spdlog::logger& logger, const char* what, const char* happened = "") noexcept;

/// One listener of the user, told on the notifier lane what `Pending` keeps of what happened while it was busy. Lives
/// as long as its subscription, and as a call of it is under way.
///
/// `Pending` has a type Value, push(Value), empty() and pop().
template <class Pending>
class Subscriber : public std::enable_shared_from_this<Subscriber<Pending>> {
public:
    using Value = typename Pending::Value;

    /// `what`: the kind of listener, for the log.
    Subscriber(std::shared_ptr<Runtime> runtime, std::shared_ptr<spdlog::logger> logger, const char* what,
               std::function<void(const Value&)> listener)
        : runtime_(std::move(runtime)), logger_(std::move(logger)), what_(what), listener_(std::move(listener)) {}

    void push(Value value) {
        const std::lock_guard lock(mutex_);
        if (cancelled_) return;
        pending_.push(std::move(value));
        if (scheduled_) return;
        runtime_->post(Lane::notifier, [self = this->shared_from_this()]() mutable {
            const NotifierThread mark;  // it may be the last that knows the listener, and that may own the session
            self->deliver();
            self.reset();
        });
        scheduled_ = true;  // not before: when post() throws, the next push tries again
    }

    /// Afterwards the listener is not running and will not run, unless this is called from within it, or from within a
    /// retry policy, for which the listener may be waiting.
    void cancel() {
        std::unique_lock lock(mutex_);
        cancelled_ = true;
        // From within the callback there is nothing to wait for.
        if (runner_ == std::this_thread::get_id() || PolicyCall::here()) return;
        while (runner_ != std::thread::id()) idle_.wait(lock);
    }

private:
    void deliver() {
        std::unique_lock lock(mutex_);
        while (!cancelled_ && !pending_.empty()) {
            const Value value = pending_.pop();
            runner_ = std::this_thread::get_id();
            lock.unlock();
            call(value);
            lock.lock();
            runner_ = std::thread::id();
            idle_.notify_all();
        }
        scheduled_ = false;
    }

    void call(const Value& value) noexcept {
        try {
            listener_(value);
        } catch (...) {
            log_thrown(*logger_, what_, " threw");
        }
    }

    const std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<spdlog::logger> logger_;
    const char* const what_;
    const std::function<void(const Value&)> listener_;
    std::mutex mutex_;  // guards what follows; never held while the listener runs
    Pending pending_;
    bool scheduled_ = false;
    bool cancelled_ = false;
    std::thread::id runner_;  // the thread that is in the listener
    FiberCondition idle_;
};

}  // namespace zkrecipes::internal
