#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>

#include "core/operation/operation_fsm.hpp"
#include "core/operation/reservation.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// Gives the state machine of one call its session, deadline and retry timer. What a protocol adds is its requests, and
/// what its end is for the caller. Owns itself from start() until the machine says finished(), which may be later than
/// its answer. Everything happens under the session lock.
class Operation : public virtual OperationPort, public SessionObserver, public std::enable_shared_from_this<Operation> {
public:
    void start(Deadline deadline);
    void stop();  // also before start()
    /// *lock held*: from start() until it has answered. As OperationFsm.
    bool is_busy() { return machine().is_busy(); }

protected:
    Operation(std::shared_ptr<SessionCore> core, const char* operation)
        : core_(std::move(core)), operation_(operation) {}

    virtual OperationFsm& machine() noexcept = 0;
    /// First of all in start().
    virtual void on_start() {}

    // OperationPort
    bool connected() const override { return core_->connected(); }
    std::uint64_t incarnation() const override { return core_->incarnation().number; }
    std::int64_t session_id() const override { return core_->incarnation().session_id; }
    bool zookeeper_serves() const override { return core_->incarnation().by_zookeeper; }
    Instant now() const override;
    std::uint64_t random() override;
    std::string new_uuid() override;
    std::optional<std::chrono::milliseconds> next_delay(const RetryState& state) override;
    void start_timer(std::chrono::milliseconds delay) override;
    void stop_timer() override;
    void finished() override;
    bool many_given_up() override { return core_->many_given_up(); }

    /// Wraps what takes the answer of a request: keeps this object alive until the answer comes. An answer that comes
    /// after the end is dropped.
    template <class Take>
    auto answered(Take take) {
        return [self = shared_from_this(), take = std::move(take)](auto&&... values) mutable {
            if (self->core_) take(std::forward<decltype(values)>(values)...);
        };
    }

    std::shared_ptr<SessionCore> core_;  // null when finished
    const char* const operation_;        // as errors and the log name it
    Deadline deadline_;                  // from start()
    Reservation reserved_;

private:
    // SessionObserver
    void on_connected(bool same_session) override;
    void on_suspended() override;
    void on_session_lost() override;
    void on_room() override { machine().on_room(); }
    void on_closed(const Error& why) override;

    std::shared_ptr<Operation> self_;
    TimerId deadline_timer_ = 0;
    TimerId retry_timer_ = 0;
    bool started_ = false;
    bool stopped_early_ = false;
    bool observing_ = false;
};

}  // namespace zkrecipes::internal
