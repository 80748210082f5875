#include "core/acquire/semaphore_fsm.hpp"

#include <utility>

#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

SemaphoreFsm::SemaphoreFsm(AcquirePort& port, LeasePort& leases, const QueueSpec& spec, Patience patience,
                           SemaphoreTerms& terms, std::int32_t wanted)
    : AcquireFsm(port, spec, patience), lease_port_(leases), terms_(terms), wanted_(wanted) {}

Ticket SemaphoreFsm::go_to(Head head) {
    step_ = Step::beyond;
    head_ = head;
    return next_ticket();
}

// ---- in the queue -------------------------------------------------------------------------------------------------

void SemaphoreFsm::send_create_request(const std::string& prefix) {
    AcquireFsm::send_create_request(prefix);
    // Sent behind the create and its read: if they show that our node is first, this is the look at the leases.
    look_ticket_ = ticket_;
    lease_port_.look(ticket_);
}

void SemaphoreFsm::look_again() {
    // The list first: what counts is the number of leases when our node is first. No check of the own node is needed,
    // as the transaction contains it.
    send_list();
    look_ticket_ = ticket_;
    lease_port_.look(ticket_);
}

void SemaphoreFsm::at_head(bool again) {
    if (again || look_ticket_ != ticket_) return send_look();
    step_ = Step::beyond;  // the look is on its way, sent behind the read that showed our place
    head_ = Head::looking;
}

void SemaphoreFsm::send_first_look() {
    first_looked_ = false;
    look_ticket_ = next_ticket();
    port_.list(look_ticket_);
    lease_port_.look(look_ticket_);
}

void SemaphoreFsm::on_first_look(bool free, bool directory) {
    if (!free) return leave(Ended::busy);
    first_looked_ = true;
    queue_exists_ = directory;
    if (look_ticket_ == ticket_) return;  // the answer of the other half follows
    look_ticket_ = ticket_;
    lease_port_.look(ticket_);
}

void SemaphoreFsm::go_on() {
    const bool too_many = wanted_ > terms_.limit;
    if (known_ == Known::none && taken_ == Taken::no && too_many) {
        // More than there are in all: refused, unless the number was raised since this object last read it. The call
        // does not wait in the queue to learn it.
        look_ticket_ = go_to(Head::asking);
        return lease_port_.look(look_ticket_);
    }
    if (taken_ == Taken::no) return AcquireFsm::go_on();
    // As for the own node: without the sync the server may not have seen the transaction yet.
    lease_port_.sync_leases(go_to(Head::syncing));
}

bool SemaphoreFsm::is_idle() const noexcept {
    return AcquireFsm::is_idle() || (step_ == Step::beyond && head_ == Head::waiting);
}

bool SemaphoreFsm::outcome_open() const noexcept {
    return AcquireFsm::outcome_open() || (step_ == Step::beyond && head_ == Head::taking);
}

void SemaphoreFsm::drop_watches() {
    AcquireFsm::drop_watches();
    lease_port_.unwatch_leases();
}

void SemaphoreFsm::give_up_nodes() {
    AcquireFsm::give_up_nodes();
    if (taken_ == Taken::yes) lease_port_.delete_leases(leases_);
    const bool perhaps = taken_ == Taken::unknown || doubtful_;
    if (perhaps) lease_port_.delete_leases_by_identity(identity_);
}

void SemaphoreFsm::own_node_missing() {
    // Only an operator deletes the place in the queue, or a transaction of ours that did happen, late.
    const bool late_leases = doubtful_ && same_session();
    if (late_leases) lease_port_.delete_leases_by_identity(identity_);
    AcquireFsm::own_node_missing();
}

void SemaphoreFsm::forget_nodes() {
    AcquireFsm::forget_nodes();
    taken_ = Taken::no;
    doubtful_ = false;
    leases_.clear();
}

// ---- the look at the leases -----------------------------------------------------------------------------------------

void SemaphoreFsm::send_look() {
    look_ticket_ = go_to(Head::looking);
    lease_port_.look(look_ticket_);
}

void SemaphoreFsm::on_look(Ticket ticket, Rc rc, std::string_view data, const NodeStat& stat) {
    if (step_ == Step::finished || step_ == Step::leaving) return;
    if (ticket == look_ticket_) look_ticket_ = 0;
    if (at(ticket, Head::confirming)) return on_confirmed(rc, stat);
    // Also while still in the queue: a call that does not agree must not wait to learn it.
    if (rc == Rc::ok && !agree(data, stat)) return;
    if (ticket != ticket_) return;
    if (at(ticket, Head::asking)) {
        if (rc == Rc::no_node) return refuse_wanted();
        if (rc != Rc::ok) return handle_error(rc, "reading the leases");
        step_ = Step::idle;
        return AcquireFsm::go_on();
    }
    if (step_ == Step::looking && first_looked_) {
        if (rc == Rc::no_node) return AcquireFsm::on_first_look(true, queue_exists_);
        if (rc == Rc::ok) return AcquireFsm::on_first_look(enough(stat), queue_exists_);
        return handle_error(rc, "reading the leases");
    }
    if (!at(ticket, Head::looking)) return;
    if (rc == Rc::no_node) {
        if (may_make_directory()) lease_port_.make_leases(go_to(Head::making_leases));
        return;
    }
    if (rc != Rc::ok) return handle_error(rc, "reading the leases");
    if (enough(stat)) return send_take();
    if (once()) return leave(Ended::busy);
    met_others_ = true;
    if (!lease_port_.may_watch_leases()) {
        return fail(Errc::budget_exceeded, kTooManyWatches);
    }
    lease_port_.watch_leases(go_to(Head::setting_watch));
}

/// False: this was the end.
bool SemaphoreFsm::agree(std::string_view data, const NodeStat& stat) {
    version_ = stat.version;
    directory_ = stat.czxid;
    unwritten_ = data.empty();
    auto written = unwritten_ ? terms_.limit : read_limit(data);
    if (!written) {
        fail(Errc::bad_data, "the node of the leases holds something else than their number");
        return false;
    }
    const bool followed = terms_.follows && terms_.directory == stat.czxid;
    if (*written != terms_.limit && !followed) {
        fail(Errc::bad_option, "here are " + std::to_string(*written) + " leases, but this object was made for " +
                                   std::to_string(terms_.limit));
        return false;
    }
    if (!unwritten_) {
        terms_.limit = *written;
        terms_.directory = stat.czxid;
    }
    if (wanted_ <= terms_.limit) return true;
    refuse_wanted();
    return false;
}

void SemaphoreFsm::refuse_wanted() {
    fail(Errc::bad_option, std::to_string(wanted_) + " leases at once were asked for, and there are " +
                               std::to_string(terms_.limit) + " in all");
}

bool SemaphoreFsm::enough(const NodeStat& stat) const noexcept {
    return std::int64_t{stat.num_children} + wanted_ <= terms_.limit;
}

void SemaphoreFsm::on_leases_made(Ticket ticket, Rc rc) {
    if (!at(ticket, Head::making_leases)) return;
    // no_node: the servers removed an ancestor in between. The next look shows that again, and is counted.
    if (rc == Rc::ok || rc == Rc::node_exists || rc == Rc::no_node) return send_look();
    handle_error(rc, "making the directory of the leases");
}

void SemaphoreFsm::on_leases_watched(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!at(ticket, Head::setting_watch)) return;
    if (rc == Rc::no_node) return send_look();
    if (meaning(rc) != Meaning::done) return handle_error(rc, "watching the leases");
    // Between the look and the watch. Taking uses the watch up; to remove it first would remove the guard, too.
    if (enough(stat)) return send_take();
    head_ = Head::waiting;
    outage_.over();  // at our place again
}

void SemaphoreFsm::on_leases_changed(Ticket ticket) {
    if (!at(ticket, Head::waiting) && !at(ticket, Head::setting_watch)) return;
    drop_watches();
    send_look();
}

// ---- taking ---------------------------------------------------------------------------------------------------------

void SemaphoreFsm::send_take() {
    LeaseRequest taking;
    taking.place = node_;
    for (std::int32_t i = 0; i < wanted_; ++i) taking.leases.push_back(identity_ + "lease-" + format_sequence(i));
    taking.version = version_;
    if (unwritten_) taking.terms = write_limit(terms_.limit);
    taking.told = terms_.writable;
    if (!lease_port_.reserve_leases(taking.leases)) {
        return fail(Errc::budget_exceeded, kTooManyNodes);
    }
    leases_ = taking.leases;
    confirmed_ = unwritten_;
    // That no event came before the answer proves something only where the servers keep this order.
    if (!confirmed_ && port_.zookeeper_serves()) lease_port_.guard_leases(directory_);
    lease_port_.take(go_to(Head::taking), taking);
}

void SemaphoreFsm::on_taken(Ticket ticket, Rc rc, TakingStep refused, const NodeStat& lease, Instant sent_at) {
    if (ticket != ticket_) return;
    const Meaning what = meaning(rc);
    const bool open = what == Meaning::unknown || what == Meaning::session_over;
    if (step_ == Step::leaving) {
        if (same_session()) {
            if (what == Meaning::done) {
                lease_port_.left_queue();
                lease_port_.delete_leases(leases_);
            } else {
                port_.delete_node(node_);
                if (open || doubtful_) lease_port_.delete_leases_by_identity(identity_);
            }
        }
        return finish();
    }
    if (!at(ticket, Head::taking)) return;
    step_ = Step::idle;  // whatever comes now, the outcome is not open any more
    head_ = Head::none;
    lease_port_.unwatch_leases();
    if (open) {
        taken_ = Taken::unknown;
        return handle_error(rc, "taking the leases");
    }
    if (refused == TakingStep::data) {  // nothing was taken; most likely there is no right to write
        terms_.writable = false;
        return send_take();
    }
    if (what == Meaning::refused) return on_taking_refused(rc, refused);
    if (what != Meaning::done) return handle_error(rc, "taking the leases");
    taken_ = Taken::yes;
    known_ = Known::none;  // the place in the queue went with the same transaction
    lease_port_.left_queue();
    port_.lease_committed(sent_at);
    if (unwritten_) terms_.directory = directory_;
    if (lease.czxid != 0) return use_leases(lease);
    step_ = Step::beyond;
    head_ = Head::reading_lease;
}

void SemaphoreFsm::on_taking_refused(Rc rc, TakingStep refused) {
    if (refused == TakingStep::place && rc == Rc::no_node) return own_node_missing();
    // Not our own, of a transaction that happened late: with that our place would be gone, which is looked at first.
    if (refused == TakingStep::leases && rc == Rc::node_exists)
        return fail(Errc::protocol, "a lease with a new name is there already");
    // The number was changed since it was read, or the directory was deleted.
    if (rc == Rc::bad_version || rc == Rc::no_node) return send_look();
    handle_error(rc, "taking the leases");
}

void SemaphoreFsm::on_lease(Ticket ticket, Rc rc, const NodeStat& stat) {
    const bool recovering = at(ticket, Head::finding);
    if (!recovering && !at(ticket, Head::reading_lease)) return;
    if (rc == Rc::no_node) {
        if (!recovering || taken_ == Taken::yes) return leases_gone();
        // It did not happen, and after the sync on a new connection it cannot happen any more. If it does, our place
        // is found missing, and the leases are deleted by their identity.
        taken_ = Taken::no;
        doubtful_ = true;
        return AcquireFsm::go_on();
    }
    if (meaning(rc) != Meaning::done) {
        return handle_error(rc, "exists");
    }
    if (!recovering) return use_leases(stat);
    if (foreign(stat)) return foreign_leases();
    if (taken_ == Taken::unknown) {
        taken_ = Taken::yes;
        known_ = Known::none;
        lease_port_.left_queue();
    }
    czxid_ = stat.czxid;
    lease_port_.renew_leases(go_to(Head::renewing_leases), leases_);
}

/// They were just taken.
void SemaphoreFsm::use_leases(const NodeStat& first) {
    if (foreign(first)) return foreign_leases();
    czxid_ = first.czxid;
    if (lease_port_.guarded_leases() == directory_) confirmed_ = true;
    grant_or_renew_leases();
}

bool SemaphoreFsm::foreign(const NodeStat& lease) const {
    return lease.ephemeral_owner != node_session_ || !same_session();
}

void SemaphoreFsm::foreign_leases() {
    port_.note("leases of this identity belong to another session: starting again");
    // Only the first of several was looked at: if another client made that one, the rest may be ours.
    if (same_session()) {
        lease_port_.delete_leases_by_identity(identity_);
        // It may be why the transaction did not happen: then our place in the queue is still there.
        if (taken_ == Taken::unknown) port_.delete_node(node_);
    }
    forget_nodes();
    attempt_failed();
}

void SemaphoreFsm::on_leases_synced(Ticket ticket, Rc rc) {
    if (!at(ticket, Head::syncing)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return handle_error(rc, "sync");
    lease_port_.find_lease(go_to(Head::finding), leases_.front());
}

/// The transaction was committed a moment ago, and so has renewed the lease.
void SemaphoreFsm::grant_or_renew_leases() {
    if (!confirmed_) return lease_port_.look(go_to(Head::confirming));
    if (lease_port_.begin_lease_hold(leases_, czxid_)) return leave(Ended::granted);
    lease_port_.renew_leases(go_to(Head::renewing_leases), leases_);
}

void SemaphoreFsm::on_confirmed(Rc rc, const NodeStat& stat) {
    if (rc == Rc::no_node) return leases_gone();
    if (meaning(rc) != Meaning::done) return handle_error(rc, "reading the leases");
    if (stat.czxid != directory_)
        return start_over(
            "the directory of the leases was made anew while they were taken: going to the tail of the queue");
    confirmed_ = true;
    grant_or_renew_leases();
}

void SemaphoreFsm::on_leases_renewed(Ticket ticket, Rc rc) {
    if (!at(ticket, Head::renewing_leases)) return;
    if (rc == Rc::no_node) return leases_gone();
    if (meaning(rc) != Meaning::done) return handle_error(rc, "check");
    grant_or_renew_leases();
}

void SemaphoreFsm::leases_gone() {
    start_over("a lease was deleted by somebody else before it was held: going to the tail of the queue");
}

void SemaphoreFsm::start_over(const char* why) {
    port_.note(why);
    lease_port_.delete_leases(leases_);  // what is left of them
    forget_nodes();
    if (once()) return leave(Ended::busy);
    send_create();
}

}  // namespace zkrecipes::internal
