#include "core/acquire/downgrade_fsm.hpp"

#include <algorithm>
#include <utility>

#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

DowngradeFsm::DowngradeFsm(DowngradePort& port, Spec spec, Patience patience)
    : port_(port), spec_(std::move(spec)), patience_(patience) {}

// ---- begin and end ------------------------------------------------------------------------------------------------

void DowngradeFsm::start() {
    incarnation_ = port_.incarnation();
    if (!port_.exclusive_held()) return fail_lost("it was lost before a share was taken");
    identity_ = make_identity(port_.new_uuid(), spec_.dialect);
    node_ = identity_ + spec_.base + format_sequence(spec_.sequence);
    if (port_.connected()) return send_create();
    attempt_failed();
}

void DowngradeFsm::attempt_failed() {
    ++ticket_;  // whatever is still to be answered belongs to the past
    if (patience_ == Patience::try_once) return leave(Ended::timed_out);
    const auto delay = outage_.failed(port_.now(), port_.random(),
                                      [this](const RetryState& state) { return port_.next_delay(state); });
    if (!delay) return leave(Ended::failed, Errc::connection_lost, outage_.gave_up());
    step_ = Step::backing_off;
    port_.start_timer(*delay);
}

void DowngradeFsm::on_timer() {
    if (step_ != Step::backing_off) return;
    if (port_.incarnation() != incarnation_) return on_session_lost();
    port_.connected() ? send_create() : attempt_failed();
}

void DowngradeFsm::on_session_lost() {
    if (step_ == Step::finished || step_ == Step::idle) return;
    known_ = Known::none;  // both nodes end with the session
    if (step_ == Step::leaving) return finish();
    step_ = Step::idle;
    fail_lost("the session ended");
}

void DowngradeFsm::on_closed(Errc why, std::string detail) {
    if (step_ == Step::finished) return;
    known_ = Known::none;
    if (step_ == Step::leaving) return finish();
    step_ = Step::idle;
    leave(Ended::failed, why, std::move(detail));
}

void DowngradeFsm::deadline() {
    if (step_ != Step::leaving && step_ != Step::finished) leave(Ended::timed_out);
}

void DowngradeFsm::stop() {
    if (step_ != Step::leaving && step_ != Step::finished) leave(Ended::stopped);
}

void DowngradeFsm::fail_lost(const char* why) {
    leave(Ended::failed, Errc::lock_lost,
          std::string("the lock that this fiber or thread holds alone is not surely its own any more: ") + why);
}

void DowngradeFsm::leave(Ended how, Errc error, std::string detail) {
    port_.stop_timer();
    if (step_ == Step::creating) {
        // The caller has its answer now. Whether there is a node to delete, only the answer of the create can tell.
        step_ = Step::leaving;
        return port_.answer(how, error, std::move(detail));
    }
    if (how != Ended::granted) clean_up();
    step_ = Step::finished;
    port_.answer(how, error, std::move(detail));
    port_.finished();
}

void DowngradeFsm::clean_up() {
    if (port_.incarnation() != incarnation_) return;
    if (known_ == Known::created) port_.delete_node(node_);
    if (known_ == Known::perhaps) port_.delete_by_identity(identity_);
}

void DowngradeFsm::finish() {
    clean_up();
    step_ = Step::finished;
    port_.finished();
}

// ---- the share ----------------------------------------------------------------------------------------------------

void DowngradeFsm::send_create() {
    if (!port_.reserve_node(node_)) {
        return leave(Ended::failed, Errc::budget_exceeded,
                     "this session owns as many lock nodes as ZooKeeper survives; use another Session for more");
    }
    step_ = Step::creating;
    port_.create(++ticket_, node_);
}

void DowngradeFsm::on_created(Ticket ticket, Rc rc, Instant sent_at) {
    if (ticket != ticket_ || (step_ != Step::creating && step_ != Step::leaving)) return;
    const Meaning what = meaning(rc);
    const bool ours_already = rc == Rc::node_exists && known_ == Known::perhaps;
    if (what == Meaning::done || ours_already) known_ = Known::created;
    if (known_ == Known::none && (what == Meaning::unknown || what == Meaning::session_over)) known_ = Known::perhaps;
    if (step_ == Step::leaving) return finish();
    step_ = Step::idle;
    if (what == Meaning::done) port_.lease_committed(sent_at);
    if (known_ == Known::created && (what == Meaning::done || ours_already)) {
        step_ = Step::looking;
        return;
    }
    if (rc == Rc::no_node) return fail_lost("its node was deleted by somebody else");
    trouble(rc, "create");
}

void DowngradeFsm::on_own(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket, Step::looking)) return;
    if (rc == Rc::no_node) return fail_lost("the node of the share was deleted by somebody else at once");
    if (meaning(rc) != Meaning::done) return trouble(rc, "exists");
    const bool foreign = stat.ephemeral_owner != port_.session_id() || port_.incarnation() != incarnation_;
    if (foreign) {
        return fail_lost("the node of the share belongs to another session");
    }
    czxid_ = stat.czxid;
    grant_or_renew();
}

void DowngradeFsm::grant_or_renew() {
    // The writer's node was there when the share was made, so nobody was let in. But a hold that was told to be lost
    // stays lost, and is no reason to hand out another.
    if (!port_.exclusive_held()) return fail_lost("the lease passed meanwhile");
    if (port_.begin_hold(node_, czxid_)) return leave(Ended::granted);
    step_ = Step::renewing_lease;
    port_.renew_lease(++ticket_, node_);
}

void DowngradeFsm::on_lease_renewed(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::renewing_lease)) return;
    if (rc == Rc::no_node) return fail_lost("the node of the share was deleted by somebody else at once");
    if (meaning(rc) != Meaning::done) return trouble(rc, "check");
    grant_or_renew();
}

void DowngradeFsm::trouble(Rc rc, const char* what) {
    switch (meaning(rc)) {
        case Meaning::not_done:
        case Meaning::unknown:
        case Meaning::session_over:
            // Sent again, the transaction answers that it exists already, and says that nothing was missed.
            if (known_ == Known::created) known_ = Known::perhaps;
            return attempt_failed();
        case Meaning::done:
        case Meaning::refused:
        case Meaning::failed: break;
    }
    leave(Ended::failed, error_of(rc), std::string(what) + " was answered: " + to_string(rc));
}

}  // namespace zkrecipes::internal
