#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "core/operation/continuous_fsm.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Gives a ContinuousFsm its session and its timer. Owns itself from start() until it is stopped or the session is
/// closed. Everything happens under the session lock.
class ContinuousOperation : public virtual ContinuousPort,
                            public SessionObserver,
                            public std::enable_shared_from_this<ContinuousOperation> {
public:
    void start();
    void stop();  // harmless before start() and after the end

protected:
    explicit ContinuousOperation(std::shared_ptr<SessionCore> core) : core_(std::move(core)) {}

    virtual ContinuousFsm& machine() noexcept = 0;
    virtual void remove_watches() = 0;

    // ContinuousPort
    bool connected() const override { return core_->connected(); }
    std::uint64_t random() override { return core_->runtime().random(); }
    void start_timer(std::chrono::milliseconds delay) override;
    void stop_timer() override;

    // SessionObserver
    void on_connected(bool same_session) override { machine().on_connected(same_session); }
    void on_suspended() override { machine().on_suspended(); }
    void on_session_lost() override { machine().on_session_lost(); }
    void on_closed(const Error&) override { end(); }

    /// Nothing is asked or told any more.
    void end();

    /// Wraps what takes the answer of a request: keeps this object alive until the answer comes. An answer that comes
    /// after the end is dropped.
    template <class Take>
    auto answered(Take take) {
        return [self = shared_from_this(), take = std::move(take)](auto&&... values) {
            if (self->core_) take(std::forward<decltype(values)>(values)...);
        };
    }
    void unwatch(SessionCore::WatchId& watch) {
        if (watch != 0) core_->unwatch(std::exchange(watch, 0));
    }

    std::shared_ptr<SessionCore> core_;  // null after the end

private:
    std::shared_ptr<ContinuousOperation> self_;
    TimerId timer_ = 0;
};

}  // namespace zkrecipes::internal
