#pragma once

#include <chrono>
#include <cstdint>

#include "core/operation/types.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// What the state machine of everything that goes on for as long as its owner wants (a watch, a persistent node) asks
/// of its surroundings. A protocol adds its requests; each request is answered by the function named beside it, at most
/// once, never from inside the request, with the ticket that it was given.
class ContinuousPort {
public:
    virtual ~ContinuousPort() = default;
    virtual bool connected() const = 0;
    virtual std::uint64_t random() = 0;
    virtual void start_timer(std::chrono::milliseconds delay) = 0;  // on_timer
    virtual void stop_timer() = 0;
};

/// What such a state machine is told. Pure: it owns no clock, thread or connection.
class ContinuousFsm {
public:
    ContinuousFsm() = default;
    ContinuousFsm(const ContinuousFsm&) = delete;
    ContinuousFsm& operator=(const ContinuousFsm&) = delete;
    virtual ~ContinuousFsm() = default;

    virtual void start() = 0;
    virtual void on_timer() = 0;
    virtual void on_connected(bool same_session) = 0;
    virtual void on_suspended() {}
    virtual void on_session_lost() = 0;

protected:
    /// How long to wait after a failure: longer and longer, with jitter.
    std::chrono::milliseconds next_pause(ContinuousPort& port) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(backoff_.next(port.random()));
    }
    void succeeded() {
        failures_ = 0;
        backoff_.reset();
    }
    int failed() noexcept { return ++failures_; }  // so many times in a row

private:
    int failures_ = 0;
    ExponentialBackoff backoff_{std::chrono::milliseconds(100), std::chrono::seconds(5)};
};

}  // namespace zkrecipes::internal
