#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <zkrecipes/session.hpp>

#include "base/runtime.hpp"

namespace spdlog {
class logger;
}

namespace zkrecipes::internal {

/// What a listener that was slow is still to be told: the latest state, and before it a `lost`, if there was one. Pure.
class PendingStates {
public:
    using Value = SessionState;
    void push(SessionState state);
    bool empty() const noexcept { return !lost_ && !has_latest_; }
    SessionState pop();

private:
    bool lost_ = false;
    bool has_latest_ = false;
    SessionState latest_{};
};

template <class Pending>
class Subscriber;

/// Tells listeners on the notifier lane what the state of the session is.
class StateNotifier {
public:
    StateNotifier(std::shared_ptr<Runtime> runtime, std::shared_ptr<spdlog::logger> logger);
    ~StateNotifier();

    /// The listener is told `present` first. Must not run at the same time as publish().
    Subscription subscribe(std::function<void(SessionState)> listener, SessionState present);
    void publish(SessionState state);

private:
    using Listener = Subscriber<PendingStates>;
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace zkrecipes::internal
