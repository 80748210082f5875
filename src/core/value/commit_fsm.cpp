#include "core/value/commit_fsm.hpp"

#include <utility>

namespace zkrecipes::internal {

using What = CommitPort::What;

CommitFsm::CommitFsm(CommitPort& port, Mark mark, Patience patience)
    : RetryingFsm(port, patience), has_mark_(mark == Mark::yes) {}

// ---- begin, connection --------------------------------------------------------------------------------------------

void CommitFsm::start() {
    if (!port_.connected() && !port_.all_held()) return fail_lost();
    RetryingFsm::start();
}

void CommitFsm::resume() {
    const bool held = port_.all_held();
    if (!held && mark_ == Known::none) return fail_lost();
    if (has_mark_ && !port_.reserve_mark()) {
        return fail(Errc::budget_exceeded,
                    "this session owns as many ephemeral nodes as ZooKeeper survives; use another Session for more");
    }
    incarnation_ = port_.incarnation();
    send(held ? What::all : What::mark_alone);
}

void CommitFsm::send(What what) {
    what_ = what;
    step_ = Step::sent;
    port_.send(next_ticket(), what);
}

void CommitFsm::attempt_was_the_only_one() { give_up(How::timed_out, "the connection broke before the answer came"); }

void CommitFsm::policy_gave_up(const std::string& why) {
    if (mark_ != Known::none) return fail_unknown(why + " before it was found out");
    fail(Errc::connection_lost, why + "; nothing was written");
}

void CommitFsm::on_session_lost() {
    if (step_ != Step::backing_off) return;  // what was sent will be answered
    if (mark_ != Known::none) {
        mark_ = Known::none;
        return fail_unknown("the session ended, and with it what could have told");
    }
    if (!port_.all_held()) fail_lost();
}

void CommitFsm::on_closed(Errc why, std::string detail) {
    if (step_ == Step::finished) return;
    const bool unknown = step_ == Step::sent || mark_ != Known::none;
    mark_ = Known::none;  // it ends with the session
    if (step_ == Step::leaving) return finish();
    step_ = Step::idle;
    unknown ? fail_unknown("the session was closed before the answer came") : fail(why, std::move(detail));
}

void CommitFsm::deadline() { give_up(How::timed_out, "the deadline passed before the answer came"); }
void CommitFsm::stop() { give_up(How::stopped, "it was stopped before the answer came"); }

// ---- answers ------------------------------------------------------------------------------------------------------

void CommitFsm::on_answer(Ticket ticket, Rc rc, std::size_t refused_at) {
    if (ticket != ticket_ || (step_ != Step::sent && step_ != Step::leaving)) return;
    const bool asked_before = mark_ != Known::none;  // an earlier request of ours may have made it, or has
    settle_mark(rc, refused_at);
    if (step_ == Step::leaving) {
        drop_mark();
        return finish();
    }
    step_ = Step::idle;
    switch (meaning(rc)) {
        case Meaning::done:
            if (what_ == What::which_mark) return leave({How::committed_before});
            // The mark alone: it had not been there, so nothing has happened, and nothing will.
            return what_ == What::mark_alone ? fail_lost() : leave({How::committed});
        case Meaning::refused:
        case Meaning::failed:
            if (what_ == What::which_mark && rc == Rc::bad_version) return fail_lost();  // ours, sent alone
            if (asked_before && mark_ == Known::there) return mark_is_there();
            // It could be made, and only not be marked as one that was sent alone: as above.
            if (what_ == What::mark_alone && mark_ == Known::none) return fail_lost();
            return refused(rc);
        case Meaning::not_done: return attempt_failed();
        case Meaning::unknown:
        case Meaning::session_over: return lost_answer(rc);
    }
}

/// It was not this request that made it.
void CommitFsm::mark_is_there() {
    if (alone_perhaps_) return send(What::which_mark);
    leave({How::committed_before});
}

/// What the answer says of the mark.
void CommitFsm::settle_mark(Rc rc, std::size_t refused_at) {
    if (!has_mark_) return;
    switch (meaning(rc)) {
        case Meaning::done: mark_ = Known::there; return;
        case Meaning::refused:
        case Meaning::failed:
            if (what_ == What::which_mark) {
                if (rc == Rc::no_node) mark_ = Known::none;
            } else if (refused_at != 0) {
                mark_ = Known::none;  // the create of the mark itself was all right: it is not there
            } else if (rc == Rc::node_exists && mark_ == Known::unknown) {
                mark_ = Known::there;
            }
            return;
        case Meaning::not_done: return;
        case Meaning::unknown: mark_ = Known::unknown; return;
        case Meaning::session_over: mark_ = Known::none; return;
    }
}

void CommitFsm::refused(Rc rc) {
    if (mark_ == Known::unknown || what_ == What::which_mark) {
        // The mark cannot be made any more, for another reason than that it is there.
        return fail_unknown("what could have told was made impossible by somebody else");
    }
    leave({How::refused, rc, {}, {}});
}

void CommitFsm::lost_answer(Rc rc) {
    if (meaning(rc) == Meaning::session_over) return fail_unknown("the session ended before the answer came");
    if (!is_known(rc)) return fail_unknown(answer_in_words("the transaction", rc));
    if (!has_mark_) return fail_unknown("the connection broke before the answer came");
    if (what_ == What::mark_alone) alone_perhaps_ = true;
    attempt_failed();
}

// ---- the end ------------------------------------------------------------------------------------------------------

void CommitFsm::give_up(How how, const char* unknown_because) {
    if (is_over()) return;
    if (step_ == Step::sent || mark_ != Known::none) return fail_unknown(unknown_because);
    leave({how});
}

void CommitFsm::fail(Errc error, std::string detail) { leave({How::failed, {}, error, std::move(detail)}); }

void CommitFsm::fail_lost() {
    fail(Errc::lock_lost, "a required grant is not guaranteed any more; nothing was written; stop the guarded work");
}

void CommitFsm::fail_unknown(const std::string& because) {
    fail(Errc::outcome_unknown, because +
                                    "; it has happened as a whole or not at all: look at what it would have changed, "
                                    "by read_node with Fresh::yes");
}

void CommitFsm::leave(CommitEnd end) {
    end_ = std::move(end);
    if (!outcome_open()) drop_mark();
    RetryingFsm::leave(Ended::failed);  // or not: `end_` says it
}

void CommitFsm::drop_mark() {
    if (mark_ == Known::none || port_.incarnation() != incarnation_) return;
    mark_ == Known::there ? port_.delete_mark() : port_.delete_mark_if_any();
    mark_ = Known::none;
}

}  // namespace zkrecipes::internal
