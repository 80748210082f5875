#include "core/acquire/acquire_fsm.hpp"

#include <algorithm>
#include <utility>

#include "base/paths.hpp"
#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

std::optional<NameProblem> check_name(const std::string& node, const std::string& identity, const std::string& base,
                                      bool& many) {
    const std::string pattern[] = {base};
    const auto parsed = parse_queue_name(node, pattern);
    if (!parsed || !node.starts_with(identity)) {
        return NameProblem{Errc::protocol, "the server named the new node " + node};
    }
    const bool used_up = parsed->sequence >= kSequenceLimit || parsed->sequence < 0;
    if (used_up) {
        return NameProblem{Errc::sequence_exhausted, "the next number is " + format_sequence(parsed->sequence) +
                                                         "; delete the lock directory while nobody uses it"};
    }
    many = parsed->sequence >= kSequenceWarning;
    return std::nullopt;
}

AcquireFsm::AcquireFsm(AcquirePort& port, const QueueSpec& spec, Patience patience)
    : QueueingFsm(port, patience), spec_(spec) {}

// ---- begin and end ------------------------------------------------------------------------------------------------

void AcquireFsm::go_on() {
    switch (known_) {
        case Known::none:
            if (once() && step_ == Step::idle) {
                step_ = Step::looking;
                return send_first_look();
            }
            return send_create();
        case Known::unknown:
            // The server may not have seen the create yet, which may have been committed elsewhere. A list without a
            // sync would miss the node, and the session would then wait for its own lost node for ever.
            step_ = Step::syncing;
            return port_.sync(next_ticket());
        case Known::created: return send_list();
    }
}

void AcquireFsm::on_connected() {
    away();
    QueueingFsm::on_connected();
}

void AcquireFsm::on_suspended() {
    away();
    QueueingFsm::on_suspended();
}

/// What was learned before is in no order with what is told from now on.
void AcquireFsm::away() {
    was_away_ = true;
    behind_event_ = false;
    ahead_ = Ahead::none;
}

void AcquireFsm::drop_watches() {
    ahead_ = Ahead::none;
    port_.unwatch();
}

void AcquireFsm::forget_attempt() {
    QueueingFsm::forget_attempt();
    checking_ = false;
}

void AcquireFsm::answer(Ended how, Errc error, std::string detail) { port_.answer(how, error, std::move(detail)); }

void AcquireFsm::give_up_nodes() {
    if (known_ == Known::created) port_.delete_node(node_);
    if (known_ == Known::unknown) port_.delete_by_identity(identity_);
}

// ---- step 1: create ---------------------------------------------------------------------------------------------

void AcquireFsm::send_create() {
    if (waits_for_room()) return;
    if (identity_.empty()) identity_ = make_identity(port_.new_uuid(), spec_.dialect);
    std::string prefix;
    prefix.reserve(identity_.size() + spec_.base.size());
    prefix.append(identity_).append(spec_.base);
    if (!port_.reserve_node(prefix)) {
        return fail(Errc::budget_exceeded, kTooManyNodes);
    }
    node_incarnation_ = port_.incarnation();
    node_session_ = port_.session_id();
    step_ = Step::creating;
    fast_grant_ = true;
    // ClickHouse Keeper does not change a directory's pzxid when a child is deleted, as on_parent() takes for granted.
    const bool names = !port_.zookeeper_serves() || (spec_.fast_handover && !once() && port_.met_queue());
    read_behind_ = names ? ReadBehind::names : ReadBehind::stat;
    read_first_ = false;
    send_create_request(prefix);
}

void AcquireFsm::on_created(Ticket ticket, Rc rc, std::string_view path, const NodeStat& stat, Instant sent_at) {
    // A stale answer is one of a session that is over (H5): within a session nothing else is sent before it arrives.
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
        known_ = Known::unknown;
        return handle_error(rc, "create");
    }
    if (rc == Rc::no_node) return send_make_directory();
    if (rc == Rc::node_exists) {
        return fail(Errc::sequence_exhausted,
                    "the server hands out the same number again; delete the idle lock directory");
    }
    handle_error(rc, "create");
}

void AcquireFsm::take_node(std::string_view path, const NodeStat& stat, Instant sent_at) {
    node_ = base_name(path);
    czxid_ = stat.czxid;
    known_ = Known::created;
    directory_attempts_ = 0;
    const bool foreign = stat.ephemeral_owner != node_session_ || node_incarnation_ != port_.incarnation();
    if (foreign) {
        // Made by a former session: the servers will delete it, and a hold on it would not exclude anybody (H3, H4).
        port_.note("the new node belongs to another session: starting again");
        if (node_incarnation_ == port_.incarnation()) port_.delete_node(node_);
        forget_nodes();
        return attempt_failed();
    }
    port_.lease_committed(sent_at);
    if (!check_number()) return;
    if (read_first_) return send_list();
    step_ = read_behind_ == ReadBehind::names ? Step::listing : Step::checking_parent;
}

/// False: this was the end.
bool AcquireFsm::check_number() {
    bool many = false;
    if (auto problem = check_name(node_, identity_, spec_.base, many)) {
        fail(problem->error, std::move(problem->detail));
        return false;
    }
    if (many) port_.running_out();
    return true;
}

void AcquireFsm::on_parent(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (current(ticket, Step::creating)) read_first_ = true;
    if (!current(ticket, Step::checking_parent)) return;
    if (meaning(rc) == Meaning::done) {
        // The directory has one child, and its last change was our create: the child is our node, the queue has no
        // other. The count does not prove that: another client may have replaced our node in between.
        if (stat.num_children == 1 && stat.pzxid == czxid_) return at_head(false);
        return send_list();
    }
    if (rc == Rc::no_node) return own_node_missing();
    handle_error(rc, "exists");
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
    // no_node: the servers removed an ancestor in between. The create is refused again then, and counted.
    if (rc == Rc::ok || rc == Rc::node_exists || rc == Rc::no_node) return send_create();
    handle_error(rc, "making the lock directory");
}

// ---- outcome unknown ----------------------------------------------------------------------------------------------

void AcquireFsm::on_synced(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::syncing)) return;
    if (rc == Rc::ok || rc == Rc::no_node) {
        step_ = Step::searching;
        return port_.list(next_ticket());
    }
    handle_error(rc, "sync");
}

void AcquireFsm::search(const std::vector<std::string>& names) {
    const std::string prefix = identity_ + spec_.base;
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.starts_with(prefix); });
    if (found == names.end()) {
        // It did not happen, and after the sync on a new connection it cannot happen any more. The identity is kept:
        // if it does happen, the next list shows two nodes of it, and sweep() removes the other one.
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
    if (meaning(rc) != Meaning::done) return handle_error(rc, "exists");
    if (stat.ephemeral_owner != node_session_) {
        port_.note("a node of this identity belongs to another session: deleting it and starting again");
        port_.delete_node(node_);
        forget_nodes();
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
    if (step == Step::creating) read_first_ = true;
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
    handle_error(rc, "list");
}

void AcquireFsm::on_first_look(bool free, bool directory) {
    if (!free) return leave(Ended::busy);
    directory ? send_create() : send_make_directory();
}

void AcquireFsm::apply(const QueuePosition& position) {
    switch (position.kind) {
        case QueuePosition::Kind::missing: return own_node_missing();
        case QueuePosition::Kind::held:
            if (fast_grant_) port_.remember_queue(false);
            return at_head(false);
        case QueuePosition::Kind::wait:
            if (once()) return leave(Ended::busy);
            port_.remember_queue(true);
            met_others_ = true;
            fast_grant_ = false;
            predecessor_ = position.predecessor;
            only_predecessor_ = position.only_predecessor;
            second_ = position.second;
            port_.in_front(position.in_front);
            return send_watch();
    }
}

void AcquireFsm::send_watch() {
    if (!port_.may_watch(predecessor_)) {
        return fail(Errc::budget_exceeded, kTooManyWatches);
    }
    step_ = Step::setting_watch;
    was_away_ = behind_event_ = false;
    ahead_ = Ahead::none;
    port_.watch(next_ticket(), predecessor_);
    if (!grants_on_event() || second_.empty()) return;
    ahead_ = Ahead::second;
    port_.watch_second(ticket_, second_);
}

void AcquireFsm::on_watching(Ticket ticket, Rc rc, std::int64_t owner) {
    if (!current(ticket, Step::setting_watch)) return;
    if (rc == Rc::no_node)
        return predecessor_gone();  // it went between the list and the watch, so there is no watch (H15)
    if (meaning(rc) == Meaning::done) {
        step_ = Step::waiting;
        outage_.over();  // back in the queue
        return prepare(owner);
    }
    drop_watches();
    handle_error(rc, "watching the one before us");
}

void AcquireFsm::on_watch_fired(Ticket ticket, WatchEventType type) {
    if (ticket != ticket_ || (step_ != Step::waiting && step_ != Step::setting_watch)) return;
    if (type == WatchEventType::deleted) return predecessor_gone();
    // After an outage it may be another node of the same name, if somebody has emptied the directory meanwhile.
    if (was_away_) return send_list();
    send_watch();  // its data changed: it is still there
}

// ---- the grant on the event ---------------------------------------------------------------------------------------

/// The predecessor, of the session `owner`, is watched.
void AcquireFsm::prepare(std::int64_t owner) {
    const bool other_session = owner != node_session_;
    if (!other_session) ahead_ = Ahead::none;
    if (grants_on_event() && other_session && only_predecessor_) send_own_watch();
}

void AcquireFsm::on_second(Ticket ticket, Rc rc) {
    if (!at(ticket, Ahead::second)) return;
    if (rc == Rc::no_node) return send_look_ahead();
    if (rc != Rc::ok) ahead_ = Ahead::none;
}

void AcquireFsm::on_second_fired(Ticket ticket, WatchEventType type) {
    if (!at(ticket, Ahead::second)) return;
    if (type == WatchEventType::deleted) return send_look_ahead();
    port_.watch_second(ticket_, second_);  // its data changed: it is still there
}

void AcquireFsm::send_look_ahead() {
    ahead_ = Ahead::looking;
    if (!port_.look_ahead(ticket_)) ahead_ = Ahead::none;
}

void AcquireFsm::on_looked_ahead(Ticket ticket, Rc rc, const std::vector<std::string>& names) {
    if (current(ticket, Step::listing)) return on_children(ticket, rc, names);
    if (!at(ticket, Ahead::looking)) return;
    ahead_ = Ahead::none;
    if (rc != Rc::ok) return;
    sweep(names);
    const QueuePosition position = spec_.rule->position(names, node_);
    if (position.kind == QueuePosition::Kind::missing) return own_node_missing();
    if (position.kind != QueuePosition::Kind::wait || position.predecessor != predecessor_) return;
    port_.in_front(position.in_front);
    if (position.only_predecessor) {
        only_predecessor_ = true;
        is_next(Ahead::directory);
    } else if (!position.second.empty()) {  // whoever has gone had only waited
        second_ = position.second;
        ahead_ = Ahead::second;
        port_.watch_second(ticket_, second_);
    }
}

void AcquireFsm::on_directory_fired(Ticket ticket) {
    // Somebody came, most often. It tells only once, so from now on the own node is watched by itself.
    if (at(ticket, Ahead::directory)) send_own_watch();
}

void AcquireFsm::send_own_watch() {
    ahead_ = Ahead::own_asked;
    port_.watch_own(ticket_, node_);
}

void AcquireFsm::on_own_watched(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!at(ticket, Ahead::own_asked)) return;
    ahead_ = Ahead::none;
    const bool made_again = rc == Rc::ok && stat.czxid != czxid_;  // by somebody else, under our name
    if (rc == Rc::no_node || made_again) return own_node_missing();
    if (rc == Rc::ok) is_next(Ahead::own);
}

void AcquireFsm::is_next(Ahead by) {
    ahead_ = by;
    port_.is_next(node_);
}

void AcquireFsm::on_own_fired(Ticket ticket, WatchEventType type) {
    // Whoever has deleted it, and also after an outage: a server that knows of its create has told.
    if (current(ticket, Step::waiting) && type == WatchEventType::deleted) return own_node_missing();
    if (at(ticket, Ahead::own) || at(ticket, Ahead::own_asked)) send_own_watch();
}

void AcquireFsm::on_next_refused(std::string_view name, Rc rc) {
    if (step_ != Step::waiting || name != node_) return;
    if (rc == Rc::no_node) return own_node_missing();
    ahead_ = Ahead::none;  // it may not be read: a check decides, and says so
}

// ---- the predecessor has gone -------------------------------------------------------------------------------------

bool AcquireFsm::granted_at_once() {
    const bool own_node_there = ahead_ == Ahead::directory || ahead_ == Ahead::own;
    if (!only_predecessor_ || !own_node_there || !port_.begin_hold(node_, czxid_)) return false;
    port_.granted_on_event();
    leave(Ended::granted);
    return true;
}

void AcquireFsm::predecessor_gone() {
    if (granted_at_once()) return;
    // The names that are on their way are those after the event: a server answers behind what it has told.
    const bool names_follow = ahead_ == Ahead::looking;
    if (!names_follow) drop_watches();
    // If it was the head of the queue, our node is now first: earlier contenders only become fewer. Our own node may be
    // gone, however: an operator may have emptied the directory, or the session may be over. So one committed check of
    // it comes before the grant.
    if (only_predecessor_) return at_head(true);
    // Otherwise there may be another predecessor. Most often there is none: the queue was long and has moved on. So the
    // check is sent together with the list, and the hand-over takes one round trip in this case, too.
    if (!names_follow) return look_again();
    ahead_ = Ahead::none;
    step_ = Step::listing;
    behind_event_ = port_.lease_is_fresh();
    checking_ = !behind_event_;
    checked_ = false;
    if (checking_) port_.renew_lease(ticket_, node_);
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
    // Right after the own create, its commit renews the lease. After a wait a committed check is needed: a server that
    // is cut off from the quorum would answer reads in the same way, if they show nothing that has happened since.
    if ((fast_grant_ || checked_ || behind_event_) && port_.begin_hold(node_, czxid_)) return leave(Ended::granted);
    send_renewal();
}

void AcquireFsm::send_renewal() {
    step_ = Step::renewing_lease;
    checking_ = checked_ = behind_event_ = false;
    port_.renew_lease(next_ticket(), node_);
}

void AcquireFsm::on_lease_renewed(Ticket ticket, Rc rc) {
    if (ticket != ticket_ || (step_ != Step::renewing_lease && step_ != Step::listing)) return;
    if (rc == Rc::no_node) return own_node_missing();
    if (meaning(rc) != Meaning::done) return handle_error(rc, "check");
    if (step_ == Step::listing) {
        checked_ = true;
        return;
    }
    if (!port_.begin_hold(node_, czxid_)) return send_renewal();  // the answer took so long that the lease is old again
    leave(Ended::granted);
}

void AcquireFsm::own_node_missing() {
    drop_watches();
    port_.note("the own lock node was deleted by somebody else: going to the tail of the queue");
    forget_nodes();
    if (once()) return leave(Ended::busy);
    send_create();
}

void AcquireFsm::forget_nodes() {
    known_ = Known::none;
    fast_grant_ = checking_ = checked_ = behind_event_ = false;
    identity_.clear();
    node_.clear();
    czxid_ = 0;
}

}  // namespace zkrecipes::internal
