#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/result.hpp>

#include "core/operation/operation.hpp"
#include "core/operation/to_result.hpp"
#include "core/operation/wait.hpp"

namespace zkrecipes::internal {

/// How a Waiting ended. False: the deadline passed, or it was stopped.
struct WaitAnswer {
    bool value = false;
    std::optional<Error> error{};
};

/// The asynchronous form of a call that waits for something which another part of the session tells, and sends no
/// request of its own. Everything happens under the session lock.
class Waiting : public Operation {
public:
    using Done = std::function<void(WaitAnswer)>;

    Waiting(std::shared_ptr<SessionCore> core, const char* operation, Patience patience, Done done)
        : Operation(std::move(core), operation), once_(patience == Patience::try_once), done_(std::move(done)) {}

    /// The first call counts.
    void tell(bool value, std::optional<Error> error = {}) {
        const auto done = std::exchange(done_, nullptr);
        if (!done) return;
        at_end();
        done({value, std::move(error)});
        finished();
    }

protected:
    virtual void begin() = 0;  // tell() now, or arrange that it is called
    virtual void at_end() {}   // nothing may tell any more
    virtual void connected_now() {}
    /// The session is closed, perhaps since before the begin.
    virtual void closed(Errc why, std::string detail) = 0;

private:
    struct Machine final : OperationFsm {
        explicit Machine(Waiting& operation) : op(operation) {}
        void start() override {
            op.begin();
            if (op.once_) op.tell(false);
        }
        void deadline() override { op.tell(false); }
        void stop() override { op.tell(false); }
        void on_timer() override {}
        void on_connected() override { op.connected_now(); }
        void on_closed(Errc why, std::string detail) override { op.closed(why, std::move(detail)); }
        Waiting& op;
    };
    OperationFsm& machine() noexcept override { return machine_; }

    const bool once_;
    Done done_;
    Machine machine_{*this};
};

/// Runs what `make` makes, as run_later() does, with the answer of a public call.
template <class Make>
void wait_later(const std::shared_ptr<SessionCore>& core, const Make& make, Deadline deadline, std::stop_token stop,
                std::function<void(Result<bool>)> done) {
    run_later<WaitAnswer>(core, make, deadline, std::move(stop), [done = std::move(done)](const WaitAnswer& answer) {
        done(to_result(answer.value, answer.error));
    });
}

}  // namespace zkrecipes::internal
