#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/result.hpp>

#include "core/operation/read_op.hpp"
#include "core/operation/to_result.hpp"

namespace zkrecipes::internal {

// A call that consists of several operations, one after the other, is written once, as a coroutine that returns Steps.
// It runs in one of two ways:
//   - get() blocks the calling fiber or thread in each operation. The coroutine is never suspended.
//   - run_later() calls a callback. The first operation is started by the caller, the others on the notifier lane.
// A coroutine that is run later outlives the call: it takes its parameters by value.

/// How the operations of one call are run.
class StepRunner : public std::enable_shared_from_this<StepRunner> {
public:
    StepRunner(Deadline until, std::stop_token on_stop) : deadline(until), stop(std::move(on_stop)) {}
    StepRunner(const StepRunner&) = delete;
    StepRunner& operator=(const StepRunner&) = delete;
    virtual ~StepRunner() = default;

    virtual bool blocks() const noexcept { return true; }
    /// On the notifier lane: the operation has ended that the coroutine waits for at `place`.
    virtual void go_on(std::coroutine_handle<>) {}

    const Deadline deadline;
    const std::stop_token stop;
};

/// co_await runs the operation and says how it ended. Throws its Error.
class Step {
public:
    Step(std::shared_ptr<ReadOp> op, StepRunner& runner) : op_(std::move(op)), runner_(runner) {}

    bool await_ready() {
        if (!runner_.blocks()) return false;
        outcome_ = op_->run(runner_.deadline, runner_.stop);
        return true;
    }
    void await_suspend(std::coroutine_handle<> place) {
        op_->run_later(runner_.deadline, runner_.stop,
                       [this, place, runner = runner_.shared_from_this()](ReadOp::Outcome outcome, const Error* error) {
                           outcome_ = outcome;
                           if (error != nullptr) error_ = *error;
                           runner->go_on(place);
                       });
    }
    ReadOp::Outcome await_resume() const {
        if (error_) throw *error_;
        return outcome_;
    }

protected:
    const std::shared_ptr<ReadOp> op_;

private:
    StepRunner& runner_;
    ReadOp::Outcome outcome_ = ReadOp::Outcome::done;
    std::optional<Error> error_;
};

/// The same where a deadline that passes, or a stop, is an error: unreachable.
class NeededStep : public Step {
public:
    using Step::Step;
    void await_resume() const { op_->must_be_done(Step::await_resume()); }
};

/// As the operand of co_await: an operation of which any end is an answer. Refers to the caller's pointer, and has a
/// constructor: g++ 12 destroys temporary aggregates twice in a co_await expression.
template <std::derived_from<ReadOp> Op>
class EndOf {
public:
    explicit EndOf(const std::shared_ptr<Op>& op) : op_(op) {}
    const std::shared_ptr<Op>& op() const noexcept { return op_; }

private:
    const std::shared_ptr<Op>& op_;
};

template <class T>
class Steps;

class StepsPromise {
public:
    StepRunner* runner = nullptr;
    std::coroutine_handle<> outer;  // of the coroutine that awaits this one; null: none, or it blocks
    std::exception_ptr error;

    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
        struct BackToOuter {
            std::coroutine_handle<> outer;
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept {
                return outer ? outer : std::noop_coroutine();
            }
            void await_resume() const noexcept {}
        };
        return BackToOuter{outer};
    }
    void unhandled_exception() noexcept { error = std::current_exception(); }

    template <std::derived_from<ReadOp> Op>
    NeededStep await_transform(const std::shared_ptr<Op>& op) const {
        return {op, *runner};
    }
    template <class Op>
    Step await_transform(const EndOf<Op>& end) const {
        return {end.op(), *runner};
    }
    template <class T>
    auto await_transform(Steps<T>&& inner) const {
        class Inner {
        public:
            Inner(Steps<T>&& call, StepRunner& how) : steps_(std::move(call)), runner_(how) {}
            bool await_ready() {
                if (runner_.blocks()) steps_.begin(runner_, {});
                return runner_.blocks();
            }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
                return steps_.prepare(runner_, awaiting);
            }
            T await_resume() { return steps_.take(); }

        private:
            Steps<T> steps_;
            StepRunner& runner_;
        };
        return Inner(std::move(inner), *runner);
    }
};

template <class T>
class [[nodiscard]] Steps {
public:
    struct promise_type : StepsPromise {
        std::optional<T> value;
        Steps get_return_object() { return Steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
        void return_value(T result) { value.emplace(std::move(result)); }
    };

    Steps(Steps&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    Steps& operator=(Steps&&) = delete;
    ~Steps() {
        if (coroutine_) coroutine_.destroy();
    }

    /// Blocks the calling fiber or thread. Throws Error.
    T get(Deadline deadline, std::stop_token stop = {}) {
        StepRunner runner(deadline, std::move(stop));
        begin(runner, {});
        return take();
    }

    std::coroutine_handle<> prepare(StepRunner& runner, std::coroutine_handle<> outer) {
        coroutine_.promise().runner = &runner;
        coroutine_.promise().outer = outer;
        return coroutine_;
    }
    void begin(StepRunner& runner, std::coroutine_handle<> outer) { prepare(runner, outer).resume(); }
    bool done() const { return coroutine_.done(); }
    T take() {
        if (coroutine_.promise().error) std::rethrow_exception(coroutine_.promise().error);
        return std::move(*coroutine_.promise().value);
    }

private:
    explicit Steps(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
    std::coroutine_handle<promise_type> coroutine_;
};

/// One operation, and the place where it puts what it finds. No template of the operation: its class may be in an
/// unnamed namespace, and on a coroutine with such a parameter g++ 14 fails with an internal error.
template <class T>
Steps<T> found_at(std::shared_ptr<ReadOp> op, T& found) {
    co_await op;
    co_return std::move(found);
}

/// One operation, and what it has found.
template <std::derived_from<ReadOp> Op, class T>
Steps<T> found_by(std::shared_ptr<Op> op, T Op::*found) {
    T& place = (*op).*found;
    return found_at<T>(std::move(op), place);
}

/// The asynchronous form of a call: `done` gets on the notifier lane, exactly once, what get() would return or throw.
/// Throws Error closed, and bad_option for an empty callback.
template <class T>
void run_later(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& path, Steps<T> steps,
               Deadline deadline, std::stop_token stop, std::function<void(Result<T>)> done) {
    struct Later final : StepRunner {
        Later(Deadline until, std::stop_token on_stop, Steps<T> what, std::function<void(Result<T>)> callback)
            : StepRunner(until, std::move(on_stop)), call(std::move(what)), tell(std::move(callback)) {}

        bool blocks() const noexcept override { return false; }
        void go_on(std::coroutine_handle<> place) override {
            next = place;
            if (caller_is_out.exchange(true)) resume();
        }
        void resume() {
            next.resume();
            if (call.done()) answer();
        }
        void answer() {
            Result<T> result;
            try {
                result.value = call.take();
            } catch (...) {
                result.error = std::current_exception();
            }
            std::exchange(tell, nullptr)(std::move(result));
        }

        Steps<T> call;
        std::function<void(Result<T>)> tell;
        std::coroutine_handle<> next;
        // Set by the caller when it no longer touches the coroutine, and by the end of the first operation: the second
        // of them goes on.
        std::atomic<bool> caller_is_out{false};
    };
    check_callable(done, operation, path);
    core->throw_if_closed(operation, path);
    const auto later = std::make_shared<Later>(deadline, std::move(stop), std::move(steps), std::move(done));
    later->call.begin(*later, {});
    if (later->call.done()) {  // without any operation, or the first one could not be started
        auto value = later->call.take();
        return core->notify([later, shared = std::make_shared<T>(std::move(value))] {
            std::exchange(later->tell, nullptr)({std::move(*shared), nullptr});
        });
    }
    if (later->caller_is_out.exchange(true)) core->notify([later] { later->resume(); });
}

}  // namespace zkrecipes::internal
