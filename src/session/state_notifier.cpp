#include "session/state_notifier.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/fiber/condition_variable.hpp>
#include <exception>
#include <thread>
#include <utility>

#include "session/internal_thread.hpp"

namespace zkrecipes::internal {

void PendingStates::push(SessionState state) {
    if (state == SessionState::lost) {
        // What came before it is outdated; a second loss before the first was told is told as one.
        lost_ = true;
        has_latest_ = false;
        return;
    }
    has_latest_ = true;
    latest_ = state;
}

SessionState PendingStates::pop() {
    if (std::exchange(lost_, false)) return SessionState::lost;
    has_latest_ = false;
    return latest_;
}

/// One listener. Lives as long as its subscription, and as a call of it is under way.
class StateNotifier::Subscriber : public std::enable_shared_from_this<Subscriber> {
public:
    Subscriber(std::shared_ptr<Runtime> runtime, std::shared_ptr<spdlog::logger> logger,
               std::function<void(SessionState)> listener)
        : runtime_(std::move(runtime)), logger_(std::move(logger)), listener_(std::move(listener)) {}

    void push(SessionState state) {
        const std::lock_guard lock(mutex_);
        if (cancelled_) return;
        pending_.push(state);
        if (std::exchange(scheduled_, true)) return;
        runtime_->post(Lane::notifier, [self = shared_from_this()] { self->deliver(); });
    }

    void cancel() {
        std::unique_lock lock(mutex_);
        cancelled_ = true;
        // From within the callback there is nothing to wait for.
        if (runner_ == std::this_thread::get_id()) return;
        idle_.wait(lock, [this] { return runner_ == std::thread::id(); });
    }

private:
    void deliver() {
        const NotifierThread mark;
        std::unique_lock lock(mutex_);
        while (!cancelled_ && !pending_.empty()) {
            const SessionState state = pending_.pop();
            runner_ = std::this_thread::get_id();
            lock.unlock();
            call(state);
            lock.lock();
            runner_ = std::thread::id();
            idle_.notify_all();
        }
        scheduled_ = false;
    }

    void call(SessionState state) noexcept {
        try {
            listener_(state);
        } catch (const std::exception& error) {
            logger_->error("a session state listener threw on '{}': {}", to_string(state), error.what());
        } catch (...) {
            logger_->error("a session state listener threw on '{}'", to_string(state));
        }
    }

    const std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<spdlog::logger> logger_;
    const std::function<void(SessionState)> listener_;
    std::mutex mutex_;  // guards what follows; never held while the listener runs
    PendingStates pending_;
    bool scheduled_ = false;
    bool cancelled_ = false;
    std::thread::id runner_;  // the thread that is in the listener; none: nobody
    boost::fibers::condition_variable_any idle_;
};

struct StateNotifier::Shared {
    const std::shared_ptr<Runtime> runtime;
    const std::shared_ptr<spdlog::logger> logger;
    std::mutex mutex{};  // guards subscribers
    std::vector<std::shared_ptr<Subscriber>> subscribers{};
};

StateNotifier::StateNotifier(std::shared_ptr<Runtime> runtime, std::shared_ptr<spdlog::logger> logger)
    : shared_(std::make_shared<Shared>(std::move(runtime), std::move(logger))) {}

StateNotifier::~StateNotifier() = default;

StateSubscription StateNotifier::subscribe(std::function<void(SessionState)> listener, SessionState present) {
    auto subscriber = std::make_shared<Subscriber>(shared_->runtime, shared_->logger, std::move(listener));
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->subscribers.push_back(subscriber);
    }
    subscriber->push(present);
    return StateSubscription([subscriber, weak = std::weak_ptr<Shared>(shared_)] {
        if (const auto shared = weak.lock()) {
            const std::lock_guard lock(shared->mutex);
            std::erase(shared->subscribers, subscriber);
        }
        subscriber->cancel();
    });
}

void StateNotifier::publish(SessionState state) {
    std::vector<std::shared_ptr<Subscriber>> subscribers;
    {
        const std::lock_guard lock(shared_->mutex);
        subscribers = shared_->subscribers;
    }
    for (const auto& subscriber : subscribers) subscriber->push(state);
}

}  // namespace zkrecipes::internal
