#include "session/common/state_notifier.hpp"

#include <utility>

#include "base/process.hpp"
#include "session/common/subscriber.hpp"

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

struct StateNotifier::Shared {
    Shared(std::shared_ptr<Runtime> runtime_of, std::shared_ptr<spdlog::logger> logger_of)
        : runtime(std::move(runtime_of)), logger(std::move(logger_of)) {}

    const std::shared_ptr<Runtime> runtime;
    const std::shared_ptr<spdlog::logger> logger;
    std::mutex mutex;  // guards subscribers
    std::vector<std::shared_ptr<Listener>> subscribers;
};

StateNotifier::StateNotifier(std::shared_ptr<Runtime> runtime, std::shared_ptr<spdlog::logger> logger)
    : shared_(std::make_shared<Shared>(std::move(runtime), std::move(logger))) {}

StateNotifier::~StateNotifier() = default;

Subscription StateNotifier::subscribe(std::function<void(SessionState)> listener, SessionState present) {
    auto subscriber =
        std::make_shared<Listener>(shared_->runtime, shared_->logger, "a session state listener", std::move(listener));
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->subscribers.push_back(subscriber);
    }
    subscriber->push(present);
    return Subscription([subscriber, process = ProcessMark(), weak = std::weak_ptr<Shared>(shared_)] {
        if (process.inherited()) return;
        if (const auto shared = weak.lock()) {
            const std::lock_guard lock(shared->mutex);
            std::erase(shared->subscribers, subscriber);
        }
        subscriber->cancel();
    });
}

void StateNotifier::publish(SessionState state) {
    std::vector<std::shared_ptr<Listener>> subscribers;
    {
        const std::lock_guard lock(shared_->mutex);
        subscribers = shared_->subscribers;
    }
    for (const auto& subscriber : subscribers) subscriber->push(state);
}

}  // namespace zkrecipes::internal
