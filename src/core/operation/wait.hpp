#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <zkrecipes/deadline.hpp>

#include "base/wait_event.hpp"
#include "core/operation/operation.hpp"
#include "core/operation/types.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

// The two ways to wait for an Operation. `make` is given how patient the call is and what to answer to: once, under the
// session lock. An answer has an `error`, if there is one, and if something must not be left behind where nobody takes
// the answer, it has discard().

/// What a blocking call waits on. Not on the caller's stack: a fiber that is destroyed while it waits takes its stack
/// with it.
///
/// When a step of the session fails, the operation may be broken and never answer. So this is told, too, after it.
class CallWaiter : public SessionObserver, public std::enable_shared_from_this<CallWaiter> {
public:
    /// *lock held*: after the operation was started.
    void begin(SessionCore& core) {
        core_ = &core;
        if (!over_) core.add_waiter(*this);
    }
    /// *lock held*: nothing that the caller reads may change any more.
    bool over() const noexcept { return over_; }
    /// *lock held*
    void answer(SessionCore& core) {
        core.wake({shared_from_this(), &event_});
        answered_ = over_ = true;
        core.remove_observer(*this);
    }
    /// Blocks the calling fiber or thread. Throws what the session was closed with, if there is no answer.
    void wait(SessionCore& core) {
        if (!wait()) core.throw_if_closed("session", {});
    }
    /// False: there is no answer, as the session failed.
    bool wait() {
        event_.wait();
        return answered_;
    }

private:
    void on_connected(bool) override {}
    void on_suspended() override {}
    void on_session_lost() override {}
    void on_closed(const Error& why) override {
        if (why.errc() != kStepFailed) return core_->add_waiter(*this);  // the operation answers
        over_ = true;
        // At once, since memory may be short; but only where fibers can be woken.
        fibers_work_here() ? event_.set() : core_->wake({shared_from_this(), &event_});
    }

    SessionCore* core_ = nullptr;  // the caller has it
    WaitEvent event_;
    // Under the session lock, before the event.
    bool answered_ = false;
    bool over_ = false;
};

/// A deadline that has passed already makes one attempt, which is its own limit: the deadline becomes never().
inline Patience patience_of(const SessionCore& core, Deadline& deadline) {
    if (!deadline.is_passed(core.runtime().steady_now())) return Patience::wait;
    deadline = Deadline::never();
    return Patience::try_once;
}

template <class Answer>
void discard(Answer& answer) {
    if constexpr (requires { answer.discard(); }) answer.discard();
}

/// Blocks the calling fiber or thread until the answer is there. Throws its error.
template <class Answer, class Make>
Answer run_blocking(const std::shared_ptr<SessionCore>& core, const Make& make, Deadline deadline,
                    std::stop_token stop) {
    struct Waiter : CallWaiter {
        Answer answer;           // written under the session lock, before the event
        bool abandoned = false;  // under the session lock: nobody waits any more (a fiber was destroyed)
    };
    const auto waiter = std::make_shared<Waiter>();
    const auto op = make(patience_of(*core, deadline), [core = core.get(), waiter](Answer answer) {
        if (waiter->abandoned || waiter->over()) return discard(answer);
        waiter->answer = std::move(answer);
        waiter->CallWaiter::answer(*core);
    });
    try {
        // Before the start, so that a stop that was requested already sends nothing.
        const std::stop_callback on_stop(std::move(stop), [&] { core->run_locked_or_post([op] { op->stop(); }); });
        core->run_locked([&] {
            op->start(deadline);
            waiter->begin(*core);
        });
        waiter->wait(*core);
    } catch (...) {
        core->run_locked([&] {
            waiter->abandoned = true;
            core->remove_observer(*waiter);
            discard(waiter->answer);
            op->stop();
        });
        throw;
    }
    if (waiter->answer.error) throw *waiter->answer.error;
    return std::move(waiter->answer);
}

/// `done` gets the answer on the notifier lane, exactly once.
template <class Answer, class Make>
void run_later(const std::shared_ptr<SessionCore>& core, const Make& make, Deadline deadline, std::stop_token stop,
               std::function<void(Answer)> done) {
    struct Later : SessionObserver {
        std::shared_ptr<SessionCore> core;
        std::shared_ptr<Operation> op;
        std::function<void(Answer)> done;
        std::shared_ptr<Later> self;  // until it is answered
        struct Stop {
            Later* later;
            void operator()() const {
                later->core->run_locked_or_post([op = later->op] { op->stop(); });
            }
        };
        std::optional<std::stop_callback<Stop>> on_stop;

        void answer(Answer answered) {
            if (!self) return discard(answered);
            // The stop callback must not be destroyed under the session lock, for which it may be waiting on another
            // thread; and what the user gave us must not be destroyed there either.
            const auto shared = std::make_shared<Answer>(std::move(answered));
            core->notify([later = self, shared] {
                later->on_stop.reset();
                later->op.reset();
                std::exchange(later->done, nullptr)(std::move(*shared));
            });
            core->remove_observer(*this);
            self.reset();
        }
        void on_connected(bool) override {}
        void on_suspended() override {}
        void on_session_lost() override {}
        void on_closed(const Error& why) override {  // as CallWaiter
            if (why.errc() != kStepFailed) return core->add_waiter(*this);
            Answer answered;
            answered.error = why;
            if constexpr (requires { answered.how; }) answered.how = Answer::How::failed;
            try {
                answer(std::move(answered));
            } catch (...) {
                core->add_waiter(*this);  // to be told again
                throw;
            }
        }
    };
    const auto later = std::make_shared<Later>();
    later->self = later;
    later->core = core;
    later->done = std::move(done);
    const auto patience = patience_of(*core, deadline);
    const std::shared_ptr<Operation> op = make(patience, [later](Answer answer) { later->answer(std::move(answer)); });
    later->op = op;
    try {
        if (stop.stop_possible()) later->on_stop.emplace(std::move(stop), typename Later::Stop{later.get()});
        core->run_locked([&] {
            op->start(deadline);
            if (later->self) core->add_waiter(*later);
        });
    } catch (...) {
        if (!later->self) return;  // `done` is told
        later->on_stop.reset();    // not under the session lock, for which it may be waiting
        core->run_locked_or_post([op] { op->stop(); });
        later->op.reset();
        later->self.reset();
        throw;
    }
}

}  // namespace zkrecipes::internal
