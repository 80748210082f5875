#include "core/acquire/downgrade_fsm.hpp"

#include <algorithm>
#include <utility>

#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

DowngradeFsm::DowngradeFsm(DowngradePort& port, Spec spec, Patience patience)
    : RetryingFsm(port, patience), spec_(std::move(spec)) {}

// ---- begin and end ------------------------------------------------------------------------------------------------

void DowngradeFsm::start() {
    incarnation_ = port_.incarnation();
    if (!port_.exclusive_held()) return fail_lost("it was lost before the shared hold was taken");
    identity_ = make_identity(port_.new_uuid(), spec_.dialect);
    node_ = identity_ + spec_.base + format_sequence(spec_.sequence);
    RetryingFsm::start();
}

void DowngradeFsm::resume() { port_.incarnation() == incarnation_ ? send_create() : on_session_lost(); }

void DowngradeFsm::on_session_lost() {
    if (step_ == Step::finished || step_ == Step::idle) return;
    known_ = Known::none;  // both nodes end with the session
    if (step_ == Step::leaving) return finish();
    step_ = Step::idle;
    fail_lost("the session ended");
}

void DowngradeFsm::fail_lost(const char* why) {
    fail(Errc::lock_lost, std::string("the exclusive hold is not guaranteed any more: ") + why);
}

void DowngradeFsm::clean_up() {
    if (port_.incarnation() != incarnation_) return;
    if (known_ == Known::created) port_.delete_node(node_);
    if (known_ == Known::unknown) port_.delete_by_identity(identity_);
}

// ---- the share ----------------------------------------------------------------------------------------------------

void DowngradeFsm::send_create() {
    if (!port_.reserve_node(node_)) {
        return fail(Errc::budget_exceeded, kTooManyNodes);
    }
    step_ = Step::creating;
    port_.create(next_ticket(), node_);
}

void DowngradeFsm::on_created(Ticket ticket, Rc rc, Instant sent_at) {
    if (ticket != ticket_ || (step_ != Step::creating && step_ != Step::leaving)) return;
    const Meaning what = meaning(rc);
    const bool ours_already = rc == Rc::node_exists && known_ == Known::unknown;
    if (what == Meaning::done || ours_already) known_ = Known::created;
    if (known_ == Known::none && (what == Meaning::unknown || what == Meaning::session_over)) known_ = Known::unknown;
    if (step_ == Step::leaving) {
        clean_up();
        return finish();
    }
    step_ = Step::idle;
    if (what == Meaning::done) port_.lease_committed(sent_at);
    if (known_ == Known::created && (what == Meaning::done || ours_already)) {
        step_ = Step::looking;
        return;
    }
    if (rc == Rc::no_node) return fail_lost("its node was deleted by somebody else");
    handle_error(rc, "create");
}

void DowngradeFsm::on_own(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket, Step::looking)) return;
    if (rc == Rc::no_node) return fail_lost("the node of the share was deleted by somebody else at once");
    if (meaning(rc) != Meaning::done) return handle_error(rc, "exists");
    const bool foreign = stat.ephemeral_owner != port_.session_id() || port_.incarnation() != incarnation_;
    if (foreign) {
        return fail_lost("the node of the share belongs to another session");
    }
    czxid_ = stat.czxid;
    grant_or_renew();
}

void DowngradeFsm::grant_or_renew() {
    // The writer's node was there when the reader's was made, so no other writer got in. But the caller was told of a
    // loss, and a hold that was lost must not turn into another one.
    if (!port_.exclusive_held()) return fail_lost("the lease passed meanwhile");
    if (port_.begin_hold(node_, czxid_)) return leave(Ended::granted);
    step_ = Step::renewing_lease;
    port_.renew_lease(next_ticket(), node_);
}

void DowngradeFsm::on_lease_renewed(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::renewing_lease)) return;
    if (rc == Rc::no_node) return fail_lost("the node of the share was deleted by somebody else at once");
    if (meaning(rc) != Meaning::done) return handle_error(rc, "check");
    grant_or_renew();
}

void DowngradeFsm::handle_error(Rc rc, const char* what) {
    const Meaning answer = meaning(rc);
    const bool again = answer == Meaning::not_done || answer == Meaning::unknown || answer == Meaning::session_over;
    // The transaction is sent again. It is answered "exists already", which proves that the node was there all along.
    if (again && known_ == Known::created) known_ = Known::unknown;
    RetryingFsm::handle_error(rc, what);
}

}  // namespace zkrecipes::internal
