#include "core/acquire/acquire_fsm.hpp"

#include <algorithm>
#include <utility>

#include "base/paths.hpp"
#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

AcquireFsm::AcquireFsm(AcquirePort& port, const QueueSpec& spec, Patience patience)
    : port_(port), spec_(spec), patience_(patience) {}

// ---- begin, connection, end ---------------------------------------------------------------------------------------

void AcquireFsm::start() {
    if (port_.connected()) return resume();
    if (patience_ == Patience::try_once) return leave(Ended::timed_out);
    // Before the first connect there is nothing that could have failed: only the deadline limits the wait. In an
    // outage a new call is as badly off as those that were caught by it, and the policy applies.
    if (port_.incarnation() == 0) {
        step_ = Step::awaiting_session;
    } else {
        attempt_failed();
    }
}

void AcquireFsm::resume() {
    // Knowledge of a node is worth nothing in another session: the servers delete, or have deleted, the node (H3).
    if (!same_session()) forget_node();
    go_on();
}

void AcquireFsm::go_on() {
    switch (known_) {
        case Known::none:
            if (patience_ == Patience::try_once && step_ == Step::idle) {
                step_ = Step::looking;
                return send_first_look();
            }
            return send_create();
        case Known::perhaps:
            // A list alone could come from a server that has not yet seen the create, which may have been committed
            // elsewhere: without the sync the node would be missed, and its owner would wait for it for ever.
            step_ = Step::syncing;
            if (step_ == Step::searching) return port_.list(next_ticket());
            return port_.sync(next_ticket());
        case Known::created: return send_list();
    }
}

void AcquireFsm::attempt_failed() {
    drop_watches();
    next_ticket();  // whatever is still to be answered belongs to the past
    fast_grant_ = checking_ = checked_ = false;
    if (patience_ == Patience::try_once) return leave(Ended::timed_out);
    const auto delay = outage_.failed(port_.now(), port_.random(),
                                      [this](const RetryState& state) { return port_.next_delay(state); });
    if (!delay) return fail(Errc::connection_lost, outage_.gave_up());
    step_ = Step::backing_off;
    port_.start_timer(*delay);
}

void AcquireFsm::on_timer() {
    if (step_ != Step::backing_off) return;
    if (port_.connected()) return resume();
    attempt_failed();
}

void AcquireFsm::on_connected() {
    if (step_ == Step::awaiting_session) return resume();
    // Nobody told us that the connection had been away; the watch may have been left on the other server (H19).
    if (is_idle()) {
        drop_watches();
        resume();
    }
}

void AcquireFsm::on_suspended() {
    // Whoever has sent a request learns it from the answer, which comes in any case.
    if (is_idle()) attempt_failed();
}

void AcquireFsm::on_session_lost() {
    switch (step_) {
        case Step::finished:
        case Step::idle:
        case Step::awaiting_session: return;
        case Step::leaving: return finish();  // what may have been created ends with the session
        case Step::backing_off: return forget_node();
        default: break;
    }
    if (known_ != Known::none) port_.note("session lost while waiting: going to the back of the queue");
    forget_node();
    step_ = Step::idle;  // no answer is of interest any more, not even that of a create
    attempt_failed();
}

void AcquireFsm::on_closed(Errc why, std::string detail) {
    if (step_ == Step::finished) return;
    forget_node();  // the session deletes its nodes
    if (step_ == Step::leaving) return finish();
    step_ = Step::idle;
    leave(Ended::failed, why, std::move(detail));
}

void AcquireFsm::deadline() {
    if (step_ != Step::leaving && step_ != Step::finished) leave(Ended::timed_out);
}

void AcquireFsm::stop() {
    if (step_ != Step::leaving && step_ != Step::finished) leave(Ended::stopped);
}

void AcquireFsm::fail(Errc error, std::string detail) { leave(Ended::failed, error, std::move(detail)); }

void AcquireFsm::leave(Ended how, Errc error, std::string detail) {
    drop_watches();
    port_.stop_timer();
    if (outcome_open()) {
        // The caller has its answer now. Whether there is a node to delete, only the answer of the write can tell:
        // until then somebody must stay behind (H6, H51).
        step_ = Step::leaving;
        port_.answer(how, error, std::move(detail));
        return;
    }
    if (how != Ended::granted && same_session()) give_up_nodes();
    known_ = Known::none;
    step_ = Step::finished;
    port_.answer(how, error, std::move(detail));
    port_.finished();
}

void AcquireFsm::give_up_nodes() {
    if (known_ == Known::created) port_.delete_node(node_);
    if (known_ == Known::perhaps) port_.delete_by_identity(identity_);
}

void AcquireFsm::finish() {
    known_ = Known::none;
    step_ = Step::finished;
    port_.finished();
}

// ---- step 1: create ---------------------------------------------------------------------------------------------

void AcquireFsm::send_create() {
    if (identity_.empty()) {
        identity_ = make_identity(port_.new_uuid(), spec_.dialect);
    }
    const std::string prefix = identity_ + spec_.base;
    if (!port_.reserve_node(prefix)) {
        return fail(Errc::budget_exceeded,
                    "this session owns as many lock nodes as ZooKeeper survives; use another Session for more");
    }
    node_incarnation_ = port_.incarnation();
    node_session_ = port_.session_id();
    step_ = Step::creating;
    fast_grant_ = true;
    send_create_request(prefix);
}

void AcquireFsm::on_created(Ticket ticket, Rc rc, std::string_view path, const NodeStat& stat, Instant sent_at) {
    // A stale answer is one of a session that is over (H5): in the same session nothing is sent before it has come.
    if (ticket != ticket_) return;
    const Meaning what = meaning(rc);
    if (step_ == Step::leaving) {
        if (node_incarnation_ == port_.incarnation()) {
            if (what == Meaning::done) port_.delete_node(std::string(base_name(path)));
            if (what == Meaning::unknown || what == Meaning::session_over) port_.delete_by_identity(identity_);
        }
        return finish();
    }
    if (step_ != Step::creating) return;
    step_ = Step::idle;
    if (what == Meaning::done) return take_node(path, stat, sent_at);
    if (what == Meaning::unknown || what == Meaning::session_over) {
        known_ = Known::perhaps;
        return attempt_failed();
    }
    if (rc == Rc::no_node) return send_make_directory();
    if (rc == Rc::node_exists) {
        return fail(Errc::sequence_exhausted,
                    "the server hands out the same number again; delete the idle lock directory");
    }
    trouble(rc, "create");
}

void AcquireFsm::take_node(std::string_view path, const NodeStat& stat, Instant sent_at) {
    node_ = base_name(path);
    czxid_ = stat.czxid;
    known_ = Known::created;
    directory_attempts_ = 0;
    const bool foreign = stat.ephemeral_owner != node_session_ || node_incarnation_ != port_.incarnation();
    if (foreign) {
        // Made by a session that is not ours any more: it will vanish under whoever relies on it (H3, H4).
        port_.note("the new node belongs to another session: starting again");
        if (node_incarnation_ == port_.incarnation()) port_.delete_node(node_);
        forget_node();
        return attempt_failed();
    }
    port_.lease_committed(sent_at);
    if (check_number()) step_ = Step::checking_parent;
}

/// False: this was the end.
bool AcquireFsm::check_number() {
    const std::string pattern[] = {spec_.base};
    const auto parsed = parse_queue_name(node_, pattern);
    if (!parsed || !node_.starts_with(identity_)) {
        fail(Errc::protocol, "the server named the new node " + node_);
        return false;
    }
    if (parsed->sequence >= kSequenceLimit || parsed->sequence < 0) {
        fail(Errc::sequence_exhausted, "the next number is " + format_sequence(parsed->sequence) +
                                           "; delete the lock directory while nobody uses it");
        return false;
    }
    if (parsed->sequence >= kSequenceWarning) port_.running_out();
    return true;
}

void AcquireFsm::on_parent(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket, Step::checking_parent)) return;
    if (meaning(rc) == Meaning::done) {
        // One child, and the last change of the children was our create: the child is ours, we are alone. (One child
        // alone would not do: somebody may have deleted ours and made another in between.)
        if (stat.num_children == 1 && stat.pzxid == czxid_) return at_head(false);
        return send_list();
    }
    if (rc == Rc::no_node) return own_node_missing();
    trouble(rc, "exists");
}

void AcquireFsm::send_make_directory() {
    if (!may_make_directory()) return;
    step_ = Step::making_directory;
    port_.make_directory(next_ticket());
}

/// False: this was the end.
bool AcquireFsm::may_make_directory() {
    if (!spec_.create_parents) {
        fail(Errc::no_parent, "the lock directory does not exist, and the options forbid to make it");
        return false;
    }
    if (++directory_attempts_ > kDirectoryAttempts) {
        fail(Errc::no_parent, "the lock directory vanishes each time it has been made");
        return false;
    }
    return true;
}

void AcquireFsm::on_directory(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::making_directory)) return;
    // no_node: an ancestor was reaped in between; the create will say so again, and is counted.
    if (rc == Rc::ok || rc == Rc::node_exists || rc == Rc::no_node) return send_create();
    trouble(rc, "making the lock directory");
}

// ---- outcome unknown ----------------------------------------------------------------------------------------------

void AcquireFsm::on_synced(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::syncing)) return;
    if (rc == Rc::ok || rc == Rc::no_node) {
        step_ = Step::searching;
        return port_.list(next_ticket());
    }
    trouble(rc, "sync");
}

void AcquireFsm::search(const std::vector<std::string>& names) {
    const std::string prefix = identity_ + spec_.base;
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.starts_with(prefix); });
    if (found == names.end()) {
        // It did not happen, and after the sync on a new connection it never will. The identity is kept: should it
        // happen nevertheless, the next list shows two nodes of it, and sweep() removes the other one.
        known_ = Known::none;
        return send_create();
    }
    node_ = *found;
    sweep(names);
    step_ = Step::checking_owner;
    port_.look_at(next_ticket(), node_);
}

void AcquireFsm::on_own(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket, Step::checking_owner)) return;
    if (rc == Rc::no_node) return own_node_missing();
    if (meaning(rc) != Meaning::done) return trouble(rc, "exists");
    if (stat.ephemeral_owner != node_session_) {
        port_.note("a node of this identity belongs to another session: deleting it and starting again");
        port_.delete_node(node_);
        forget_node();
        return send_create();
    }
    known_ = Known::created;
    czxid_ = stat.czxid;
    fast_grant_ = false;
    if (check_number()) send_list();
}

void AcquireFsm::sweep(const std::vector<std::string>& names) {
    for (const auto& name : names) {
        if (name != node_ && name.starts_with(identity_)) {
            port_.note("deleting a second node of the same create");
            port_.delete_node(name);
        }
    }
}

// ---- steps 2 to 4: the queue ------------------------------------------------------------------------------------

void AcquireFsm::send_list() {
    step_ = Step::listing;
    checking_ = checked_ = false;
    port_.list(next_ticket());
}

void AcquireFsm::on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names) {
    if (ticket != ticket_) return;
    const Step step = step_;
    if (step != Step::looking && step != Step::searching && step != Step::listing) return;
    if (rc == Rc::ok) {
        if (step == Step::searching) return search(names);
        if (step == Step::looking) {
            return on_first_look(spec_.rule->would_hold(names), true);
        }
        sweep(names);
        return apply(spec_.rule->position(names, node_));
    }
    if (rc == Rc::no_node) {  // no directory, and so no node of ours in it
        if (step == Step::listing) return own_node_missing();
        known_ = Known::none;
        return step == Step::looking ? on_first_look(true, false) : send_make_directory();
    }
    trouble(rc, "list");
}

void AcquireFsm::on_first_look(bool free, bool directory) {
    if (!free) return leave(Ended::timed_out);
    directory ? send_create() : send_make_directory();
}

void AcquireFsm::apply(const QueuePosition& position) {
    switch (position.kind) {
        case QueuePosition::Kind::missing: return own_node_missing();
        case QueuePosition::Kind::held: return at_head(false);
        case QueuePosition::Kind::wait:
            if (patience_ == Patience::try_once) return leave(Ended::timed_out);
            fast_grant_ = false;
            predecessor_ = position.predecessor;
            only_predecessor_ = position.only_predecessor;
            return send_watch();
    }
}

void AcquireFsm::send_watch() {
    if (!port_.may_watch(predecessor_)) {
        return fail(Errc::budget_exceeded,
                    "this session watches as many nodes as ZooKeeper survives; use another Session for more");
    }
    step_ = Step::setting_watch;
    port_.watch(next_ticket(), predecessor_);
}

void AcquireFsm::on_watching(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::setting_watch)) return;
    if (rc == Rc::no_node)
        return predecessor_gone();  // gone between the list and the watch, and no watch was left (H15)
    if (meaning(rc) == Meaning::done) {
        step_ = Step::waiting;
        outage_.over();  // back in the queue
        return;
    }
    port_.unwatch();
    trouble(rc, "watching the one before us");
}

void AcquireFsm::on_watch_fired(Ticket ticket, WatchEventType type) {
    if (ticket != ticket_ || (step_ != Step::waiting && step_ != Step::setting_watch)) return;
    port_.unwatch();
    if (type == WatchEventType::deleted) return predecessor_gone();
    send_watch();  // its data changed, or the watch was taken away: it is still there
}

void AcquireFsm::predecessor_gone() {
    port_.unwatch();
    // If it was the head of the queue, nobody can be before us: those before us only become fewer. What is not sure is
    // that our own node is still there (an operator may have emptied the directory, the session may be over), and the
    // committed check tells just that.
    if (only_predecessor_) return at_head(true);
    // Otherwise somebody else may be before us. Most often nobody is (we came late to a long queue, which has moved on
    // since), and so the check goes out with the list: the hand-over takes one round trip in this case, too.
    look_again();
}

void AcquireFsm::look_again() {
    step_ = Step::listing;
    checking_ = true;
    checked_ = false;
    const Ticket ticket = next_ticket();
    port_.renew_lease(ticket, node_);
    port_.list(ticket);
}

void AcquireFsm::at_head(bool again) { again ? send_renewal() : grant_or_renew(); }

void AcquireFsm::grant_or_renew() {
    if (checking_ && !checked_) {
        step_ = Step::renewing_lease;  // its answer is on the way
        return;
    }
    // The own create was committed a moment ago and is a lease by itself. After a wait nothing is known of the session
    // that a server cut off from the others would not say too.
    if ((fast_grant_ || checked_) && port_.begin_hold(node_, czxid_)) return leave(Ended::granted);
    send_renewal();
}

void AcquireFsm::send_renewal() {
    step_ = Step::renewing_lease;
    checking_ = checked_ = false;
    port_.renew_lease(next_ticket(), node_);
}

void AcquireFsm::on_lease_renewed(Ticket ticket, Rc rc) {
    if (ticket != ticket_ || (step_ != Step::renewing_lease && step_ != Step::listing)) return;
    if (rc == Rc::no_node) return own_node_missing();
    if (meaning(rc) != Meaning::done) return trouble(rc, "check");
    if (step_ == Step::listing) {
        checked_ = true;
        return;
    }
    if (!port_.begin_hold(node_, czxid_)) return send_renewal();  // the answer took so long that the lease is old again
    leave(Ended::granted);
}

void AcquireFsm::own_node_missing() {
    drop_watches();
    port_.note("the own lock node was deleted by somebody else: going to the back of the queue");
    forget_node();
    if (patience_ == Patience::try_once) return leave(Ended::timed_out);
    send_create();
}

void AcquireFsm::forget_node() {
    known_ = Known::none;
    fast_grant_ = checking_ = checked_ = false;
    identity_.clear();
    node_.clear();
    czxid_ = 0;
}

void AcquireFsm::trouble(Rc rc, const char* what) {
    switch (meaning(rc)) {
        case Meaning::not_done:
        case Meaning::unknown:
        case Meaning::session_over: return attempt_failed();
        case Meaning::done:
        case Meaning::refused:
        case Meaning::failed: break;
    }
    fail(error_of(rc), std::string(what) + " was answered: " + to_string(rc));
}

}  // namespace zkrecipes::internal
