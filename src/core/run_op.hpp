#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <zkrecipes/deadline.hpp>

#include "base/wait_event.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

// The two ways to wait for an operation that answers inside the strand, once, and has start(deadline) and stop(), of
// which stop() may come before start(). `make` is given what to answer to, and makes it; also the deadline, which it
// may lift: a single attempt is its own limit.

/// Blocks the calling fiber or thread until the answer is there.
template <class Answer, class Make>
Answer run_blocking(const std::shared_ptr<SessionCore>& core, const Make& make, Deadline deadline,
                    std::stop_token stop) {
    // Not on the caller's stack: a fiber that is destroyed while it waits takes its stack with it.
    struct Waiter {
        WaitEvent event;
        Answer answer;  // written inside the strand, before the event
    };
    const auto waiter = std::make_shared<Waiter>();
    const auto op = make(
        [core = core.get(), waiter](Answer answer) {
            waiter->answer = std::move(answer);
            core->defer([waiter] { waiter->event.set(); });
        },
        deadline);
    try {
        // Before the start, so that a stop that was requested already sends nothing.
        const std::stop_callback on_stop(std::move(stop), [&] { core->enter_if_ours([&] { op->stop(); }); });
        core->enter([&] { op->start(deadline); });
        waiter->event.wait();
    } catch (...) {
        core->enter([&] { op->stop(); });
        throw;
    }
    return std::move(waiter->answer);
}

/// `done` gets the answer on the notifier lane, exactly once.
template <class Answer, class Make>
void run_later(const std::shared_ptr<SessionCore>& core, const Make& make, Deadline deadline, std::stop_token stop,
               std::function<void(Answer)> done) {
    using Op = typename decltype(make(std::function<void(Answer)>(), deadline))::element_type;
    struct Later {
        std::shared_ptr<SessionCore> core;
        std::shared_ptr<Op> op;
        std::function<void(Answer)> done;
        struct Stop {
            Later* later;
            void operator()() const {
                later->core->enter_if_ours([this] { later->op->stop(); });
            }
        };
        std::optional<std::stop_callback<Stop>> on_stop;
    };
    const auto later = std::make_shared<Later>();
    later->core = core;
    later->done = std::move(done);
    later->op = make(
        [later](Answer answer) {
            // The stop callback must not be destroyed inside the strand, for which it may be waiting on another thread;
            // and what the user gave us must not be destroyed there either.
            const auto shared = std::make_shared<Answer>(std::move(answer));
            later->core->notify([later, shared] {
                later->on_stop.reset();
                later->op.reset();
                std::exchange(later->done, nullptr)(std::move(*shared));
            });
        },
        deadline);
    const auto op = later->op;
    if (stop.stop_possible()) later->on_stop.emplace(std::move(stop), typename Later::Stop{later.get()});
    core->enter([&] { op->start(deadline); });
}

}  // namespace zkrecipes::internal
