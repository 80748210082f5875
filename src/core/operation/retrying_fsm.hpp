#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/retry_policy.hpp>

#include "client/result.hpp"
#include "core/operation/operation_fsm.hpp"
#include "core/operation/types.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// What the state machines of all operations have in common: when to begin, when to try again and when to give up. The
/// protocol goes on in resume(), from what it knows, each time that a server can be asked.
///
/// `Steps` names the steps of the protocol and, first, these: idle, awaiting_session (never connected so far),
/// backing_off (the connection broke, or is away; until the retry timer), leaving (answered; the outcome of a write is
/// still to come), finished. Pure: it owns no clock, thread or connection.
template <class Port, class Steps>
class RetryingFsm : public OperationFsm {
public:
    void start() override {
        if (port_.connected()) return resume();
        // Before the first connect there is nothing that could have failed: only the deadline limits the wait. In an
        // outage a new call is as badly off as those that were caught by it, and the policy applies.
        await_connection();
    }
    void deadline() override {
        if (!is_over()) leave(is_busy() ? Ended::busy : Ended::unreachable);
    }
    bool is_busy() const override { return port_.connected() && others_in_the_way(); }
    void stop() override {
        if (!is_over()) leave(Ended::stopped);
    }
    void on_timer() override {
        if (step_ == Step::backing_off) return port_.connected() ? resume() : attempt_failed();
        if (!port_.connected()) on_suspended();
    }
    void on_connected() override {
        outage_.connected();
        if (step_ == Step::awaiting_session) return resume();
        if (!is_idle()) return;
        port_.stop_timer();
        if (watch_goes_on()) return outage_.over();
        // Nobody told us that the connection had been away; a watch may have been left on the other server (H19).
        drop_watches();
        resume();
    }
    void on_suspended() override {
        // An open request is answered in any case, and that answer tells.
        if (!is_idle()) return;
        watch_goes_on() ? wait_on() : attempt_failed();
    }
    void on_closed(Errc why, std::string detail) override {
        if (step_ == Step::finished) return;
        forget_nodes();  // the session deletes its nodes
        if (step_ == Step::leaving) return finish();
        step_ = Step::idle;
        leave(Ended::failed, why, std::move(detail));
    }

    bool is_finished() const noexcept { return step_ == Step::finished; }

protected:
    using Step = Steps;

    RetryingFsm(Port& port, Patience patience) : port_(port), patience_(patience) {}

    // ---- the protocol ----
    /// Connected: goes on from what is known.
    virtual void resume() = 0;
    /// The one answer.
    virtual void answer(Ended how, Errc error, std::string detail) = 0;
    virtual bool is_idle() const noexcept { return false; }  // no request is open; it waits for an event
    /// While idle: what it waits for is told after the connection has been away, too. The client sets the watches of a
    /// session again with each connection, and an event that was missed comes then.
    virtual bool watch_goes_on() const noexcept { return false; }
    virtual bool outcome_open() const noexcept { return false; }  // the answer decides what to delete
    /// While connected: it waits for others, or only for the last answers behind such a wait.
    virtual bool others_in_the_way() const { return is_idle(); }
    virtual void drop_watches() {}
    virtual void forget_nodes() {}    // their session is over
    virtual void clean_up() {}        // it ends without what was asked for: deletes what was made
    virtual void forget_attempt() {}  // it has failed
    /// The one attempt of a call that waits for nobody has failed.
    virtual void attempt_was_the_only_one() { leave(Ended::unreachable); }
    virtual void policy_gave_up(const std::string& why) { leave(Ended::failed, Errc::connection_lost, why); }

    // ---- what it may use ----
    bool once() const noexcept { return patience_ == Patience::try_once; }
    bool is_over() const noexcept { return step_ == Step::leaving || step_ == Step::finished; }
    Ticket next_ticket() noexcept { return ++ticket_; }
    bool current(Ticket ticket, Step step) const noexcept { return ticket == ticket_ && step_ == step; }

    void await_connection() {
        if (once()) return attempt_was_the_only_one();
        if (port_.incarnation() != 0) return attempt_failed();
        step_ = Step::awaiting_session;
    }

    void attempt_failed() {
        drop_watches();
        next_ticket();  // whatever is still to be answered belongs to the past
        forget_attempt();
        if (once()) return attempt_was_the_only_one();
        if (try_later()) step_ = Step::backing_off;
    }

    /// Nothing needs to be asked when the connection is back. But an outage that is too long for the policy ends it.
    void wait_on() {
        forget_attempt();
        try_later();
    }

    /// False: the policy gave up, and this was the end.
    bool try_later() {
        port_.stop_timer();
        const auto delay = outage_.failed(port_.now(), port_.random(),
                                          [this](const RetryState& state) { return port_.next_delay(state); });
        if (!delay) {
            const bool in_vain = last_ != Rc::connection_loss && last_ != Rc::ok;
            policy_gave_up(outage_.gave_up() +
                           (in_vain ? std::string("; the last answer was: ") + to_string(last_) : std::string()));
            return false;
        }
        port_.start_timer(*delay);
        return true;
    }

    /// Deals with an answer that is neither done nor a refusal that has a meaning at this step: it is sent again, as
    /// far as the policy goes on, or the operation fails.
    void handle_error(Rc rc, const std::string& what) {
        switch (meaning_or_failed(rc)) {
            case Meaning::not_done:
            case Meaning::unknown:
            case Meaning::session_over: last_ = rc; return attempt_failed();
            case Meaning::done:
            case Meaning::refused:
            case Meaning::failed: break;
        }
        fail(error_of(rc), answer_in_words(what, rc));
    }

    void fail(Errc error, std::string detail) { leave(Ended::failed, error, std::move(detail)); }

    void leave(Ended how, Errc error = {}, std::string detail = {}) {
        drop_watches();
        port_.stop_timer();
        if (outcome_open()) {
            // The caller has its answer now. Only the answer of the write can tell whether there is a node to delete:
            // until then this operation stays (H6, H51).
            step_ = Step::leaving;
            port_.outcome_left_open();
            return answer(how, error, std::move(detail));
        }
        if (how != Ended::granted) clean_up();
        step_ = Step::finished;
        answer(how, error, std::move(detail));
        port_.finished();
    }

    /// After the answer, when the outcome of the write is known.
    void finish() {
        step_ = Step::finished;
        port_.finished();
    }

    Port& port_;
    const Patience patience_;
    Step step_ = Step::idle;
    Ticket ticket_ = 0;
    Outage outage_;
    Rc last_ = Rc::ok;  // of the answers that handle_error() dealt with
};

}  // namespace zkrecipes::internal
