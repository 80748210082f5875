#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <zkrecipes/error.hpp>
#include <zkrecipes/retry_policy.hpp>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// What the state machine of every operation asks of its surroundings. A protocol adds its requests; each request is
/// answered by the function named beside it, exactly once, never from inside the request, with the ticket that it was
/// given.
class OperationPort {
public:
    virtual ~OperationPort() = default;
    virtual bool connected() const = 0;
    virtual std::uint64_t incarnation() const = 0;  // of the session; 0: there was none yet
    virtual std::int64_t session_id() const = 0;
    virtual bool zookeeper_serves() const = 0;  // made_by_zookeeper()
    virtual Instant now() const = 0;
    virtual std::uint64_t random() = 0;
    virtual std::string new_uuid() = 0;
    virtual std::optional<std::chrono::milliseconds> next_delay(const RetryState& state) = 0;  // of the retry policy
    virtual void start_timer(std::chrono::milliseconds delay) = 0;                             // on_timer
    virtual void stop_timer() = 0;
    /// After the one answer, once: nothing of this operation is open any more, no node, no request that matters, no
    /// timer, no watch.
    virtual void finished() = 0;
    /// So many calls are over whose nodes are still there that no more nodes are to be made before on_room.
    virtual bool many_given_up() { return false; }
    /// It has answered, and the outcome of a write is still to come.
    virtual void outcome_left_open() {}
};

/// What the state machine of every operation is told. Pure: it owns no clock, thread or connection.
class OperationFsm {
public:
    OperationFsm() = default;
    OperationFsm(const OperationFsm&) = delete;
    OperationFsm& operator=(const OperationFsm&) = delete;
    virtual ~OperationFsm() = default;

    virtual void start() = 0;
    virtual void deadline() = 0;
    virtual void stop() = 0;
    virtual void on_timer() = 0;

    // ---- the session; each request is answered, also when the connection breaks ----
    virtual void on_connected() {}
    virtual void on_suspended() {}
    virtual void on_session_lost() {}
    virtual void on_room() {}
    virtual void on_closed(Errc why, std::string detail) = 0;

    /// Whether what keeps it waiting, now, is others, as far as the servers' answers tell: not a missing answer.
    virtual bool is_busy() const { return false; }
};

}  // namespace zkrecipes::internal
