#include "core/acquire/multi_acquire_fsm.hpp"

#include <algorithm>
#include <utility>

#include "base/paths.hpp"
#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

MultiAcquireFsm::MultiAcquireFsm(MultiAcquirePort& port, const MultiQueueSpec& spec, Patience patience)
    : QueueingFsm(port, patience), spec_(spec), nodes_(spec.members.size()), standing_(spec.members.size()) {}

Ticket MultiAcquireFsm::begin(Step step, std::size_t answers) {
    step_ = step;
    open_ = answers;
    return next_ticket();
}

// ---- begin, connection, end ---------------------------------------------------------------------------------------

void MultiAcquireFsm::go_on() {
    switch (known_) {
        case Known::none:
            if (once() && step_ == Step::idle) {
                const Ticket ticket = begin(Step::looking, size());
                for (std::size_t i = 0; i < size(); ++i) port_.list(ticket, i);
                return;
            }
            return send_create();
        case Known::unknown: return port_.sync(begin(Step::syncing, 1));  // lists alone could miss the nodes
        case Known::created: look_anew(); return send_places();
    }
}

void MultiAcquireFsm::give_up_nodes() {
    if (known_ == Known::created) port_.delete_nodes(nodes_);
    if (known_ == Known::unknown) port_.delete_by_identity(identity_);
}

void MultiAcquireFsm::fail(Errc error, std::string detail, std::optional<std::size_t> member) {
    about_ = member;
    QueueingFsm::fail(error, std::move(detail));
}

void MultiAcquireFsm::forget_attempt() {
    QueueingFsm::forget_attempt();
    about_.reset();
}

void MultiAcquireFsm::answer(Ended how, Errc error, std::string detail) {
    port_.answer(how, error, std::move(detail), about_);
}

// ---- step 1: one transaction --------------------------------------------------------------------------------------

void MultiAcquireFsm::send_create() {
    if (waits_for_room()) return;
    if (identity_.empty()) identity_ = make_identity(port_.new_uuid());
    if (!port_.reserve_nodes(identity_)) {
        return fail(Errc::budget_exceeded, kTooManyNodes);
    }
    node_incarnation_ = port_.incarnation();
    node_session_ = port_.session_id();
    fast_grant_ = port_.zookeeper_serves();  // whose pzxid tells of deletions, too
    missing_.clear();
    const bool marked = port_.may_mark();
    port_.create(begin(Step::creating, size()), identity_, marked);
}

void MultiAcquireFsm::on_created(Ticket ticket, Rc rc, const CreatedSet& created, Instant sent_at) {
    if (ticket != ticket_) return;  // of a session that is over (H5)
    const Meaning what = meaning(rc);
    if (step_ == Step::leaving) {
        if (node_incarnation_ == port_.incarnation()) {
            if (what == Meaning::done) {
                for (std::size_t i = 0; i < size(); ++i) nodes_[i] = base_name(created.paths[i]);
                port_.delete_nodes(nodes_);
            }
            if (what == Meaning::unknown || what == Meaning::session_over) port_.delete_by_identity(identity_);
        }
        return finish();
    }
    if (step_ != Step::creating) return;
    step_ = Step::idle;
    if (what == Meaning::done) return take_nodes(created, sent_at);
    if (what == Meaning::unknown || what == Meaning::session_over) {
        known_ = Known::unknown;
        return handle_error(rc, "create", std::nullopt);
    }
    if (rc == Rc::no_node) {
        step_ = Step::finding_missing;
        return;
    }
    if (created.marker_refused) {  // nothing was created; most likely there is no right to write
        port_.never_mark_again();
        return send_create();
    }
    const auto member = created.refused < size() ? std::optional(created.refused) : std::nullopt;
    if (rc == Rc::node_exists) {
        return fail(Errc::sequence_exhausted,
                    "the server hands out the same number again; delete the idle lock directory", member);
    }
    handle_error(rc, "create", member);
}

void MultiAcquireFsm::take_nodes(const CreatedSet& created, Instant sent_at) {
    for (std::size_t i = 0; i < size(); ++i) nodes_[i] = base_name(created.paths[i]);
    czxid_ = created.marker.mzxid;  // 0: there was no marker
    known_ = Known::created;
    directory_attempts_ = 0;
    if (node_incarnation_ != port_.incarnation()) return attempt_failed();  // resume() forgets the nodes
    if (czxid_ != 0 && foreign(created.marker)) return foreign_nodes();
    port_.lease_committed(sent_at);
    if (!check_numbers()) return;
    look_anew();
    step_ = Step::reading_parents;
}

/// False: this was the end.
bool MultiAcquireFsm::check_numbers() {
    for (std::size_t i = 0; i < size(); ++i) {
        bool many = false;
        if (auto problem = check_name(nodes_[i], identity_, spec_.members[i].base, many)) {
            fail(problem->error, std::move(problem->detail), i);
            return false;
        }
        if (many) port_.running_out(i);
    }
    return true;
}

void MultiAcquireFsm::on_parent(Ticket ticket, std::size_t member, Rc rc, const NodeStat& stat) {
    if (ticket != ticket_) return;
    if (step_ == Step::finding_missing) {
        if (rc == Rc::no_node) missing_.push_back(member);
        if (rc != Rc::no_node && meaning(rc) != Meaning::done) return handle_error(rc, "exists", member);
        if (--open_ == 0) make_missing();
    } else if (step_ == Step::reading_parents) {
        if (rc == Rc::no_node) return own_node_missing();
        if (meaning(rc) != Meaning::done) return handle_error(rc, "exists", member);
        // The one child is ours if the directory's last change was our transaction, or if a later check finds our
        // node.
        if (stat.num_children == 1) {
            standing_[member].state = State::clear;
            standing_[member].only_since = stat.pzxid;
        }
        if (--open_ == 0) send_places();
    }
}

void MultiAcquireFsm::make_missing() {
    // If there are none, another client has made them since.
    if (!missing_.empty() && !spec_.create_parents) {
        return fail(Errc::no_parent, "the lock directory does not exist, and the options forbid to make it",
                    missing_.front());
    }
    if (++directory_attempts_ > kDirectoryAttempts) {
        return fail(Errc::no_parent, "the lock directories vanish each time they have been made");
    }
    if (missing_.empty()) return send_create();
    const Ticket ticket = begin(Step::making_directories, missing_.size());
    for (const std::size_t member : missing_) port_.make_directory(ticket, member);
}

void MultiAcquireFsm::on_directory(Ticket ticket, std::size_t member, Rc rc) {
    if (!current(ticket, Step::making_directories)) return;
    // no_node: the servers removed an ancestor in between. The create is refused again then, and counted.
    if (rc != Rc::ok && rc != Rc::node_exists && rc != Rc::no_node) {
        return handle_error(rc, "making the lock directory", member);
    }
    if (--open_ == 0) send_create();
}

// ---- outcome unknown ----------------------------------------------------------------------------------------------

void MultiAcquireFsm::on_synced(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::syncing)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return handle_error(rc, "sync");
    send_search();
}

void MultiAcquireFsm::send_search() {
    nodes_.assign(size(), "");
    const Ticket next = begin(Step::searching, size());
    for (std::size_t i = 0; i < size(); ++i) port_.list(next, i);
}

void MultiAcquireFsm::search_done() {
    const auto missing = static_cast<std::size_t>(std::count(nodes_.begin(), nodes_.end(), ""));
    if (missing == size()) {
        // It did not happen, and after the sync on a new connection it never will. The identity is kept: should it
        // happen nevertheless, the next lists show two nodes of it, and sweep() removes the other ones.
        known_ = Known::none;
        return send_create();
    }
    if (missing > 0) return own_node_missing();  // it happened as a whole; somebody has deleted a part since
    if (!check_numbers()) return;
    czxid_ = 0;
    look_anew();
    send_places();  // there it turns out whose they are
}

void MultiAcquireFsm::sweep(std::size_t member, const std::vector<std::string>& names) {
    for (const auto& name : names) {
        const bool second = name != nodes_[member] && name.starts_with(identity_);
        if (second) {
            port_.note("deleting a second node of the same create");
            port_.delete_stray(member, name);
        }
    }
}

// ---- steps 2 to 4: the queues -------------------------------------------------------------------------------------

void MultiAcquireFsm::look_anew() {
    checked_ = false;
    standing_.assign(size(), Standing{});
}

void MultiAcquireFsm::send_places() {
    const bool ask = czxid_ == 0;
    const auto lists = static_cast<std::size_t>(
        std::count_if(standing_.begin(), standing_.end(), [](const Standing& s) { return s.state == State::to_list; }));
    if (!ask && lists == 0) return decide();
    const Ticket ticket = begin(Step::placing, lists + (ask ? 1 : 0));
    if (ask) port_.look_at_first(ticket, nodes_.front());
    for (std::size_t i = 0; i < size(); ++i) {
        if (standing_[i].state == State::to_list) port_.list(ticket, i);
    }
}

void MultiAcquireFsm::on_own(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket, Step::placing)) return;
    if (rc == Rc::no_node) return own_node_missing();
    if (meaning(rc) != Meaning::done) return handle_error(rc, "exists", 0);
    // One transaction, and so one owner and one czxid.
    if (foreign(stat)) return foreign_nodes();
    known_ = Known::created;
    czxid_ = stat.czxid;
    if (--open_ == 0) decide();
}

void MultiAcquireFsm::on_children(Ticket ticket, std::size_t member, Rc rc, const std::vector<std::string>& names) {
    if (ticket != ticket_) return;
    const Step step = step_;
    const bool in_queue = step == Step::placing || step == Step::renewing_lease;
    if (!in_queue && step != Step::looking && step != Step::searching) return;
    if (rc != Rc::ok && rc != Rc::no_node) return handle_error(rc, "list", member);
    if (rc == Rc::no_node && in_queue) return own_node_missing();
    const MemberQueue& queue = spec_.members[member];
    if (step == Step::looking) {  // no directory: nobody there
        if (rc == Rc::ok && !queue.rule->would_hold(names)) return leave(Ended::busy);
        if (--open_ == 0) send_create();
        return;
    }
    if (step == Step::searching) {
        const std::string prefix = identity_ + queue.base;
        const auto found =
            std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.starts_with(prefix); });
        if (found != names.end()) {
            nodes_[member] = *found;
            sweep(member, names);
        }
        if (--open_ == 0) search_done();
        return;
    }
    sweep(member, names);
    apply(member, queue.rule->position(names, nodes_[member]));
}

void MultiAcquireFsm::apply(std::size_t member, const QueuePosition& position) {
    Standing& standing = standing_[member];
    standing.only_since = 0;
    switch (position.kind) {
        case QueuePosition::Kind::missing: return own_node_missing();
        case QueuePosition::Kind::held: standing.state = State::clear; break;
        case QueuePosition::Kind::wait:
            if (once()) return leave(Ended::busy);
            met_others_ = true;
            standing.state = State::blocked;
            standing.predecessor = position.predecessor;
            standing.certain = position.only_predecessor;
            standing.in_front = position.in_front;
            break;
    }
    if (--open_ == 0) decide();
}

bool MultiAcquireFsm::any(State state) const {
    return std::any_of(standing_.begin(), standing_.end(), [&](const Standing& s) { return s.state == state; });
}

void MultiAcquireFsm::decide() {
    if (any(State::blocked)) {
        std::size_t most = 0;
        for (const Standing& standing : standing_) {
            if (standing.state == State::blocked) most = std::max(most, standing.in_front);
        }
        port_.in_front(most);
        return send_watches();
    }
    // If the last change of a directory was not our transaction, its one child may be another node: a check is needed.
    const bool only_ones_are_ours = std::all_of(standing_.begin(), standing_.end(), [&](const Standing& s) {
        return s.only_since == 0 || s.only_since == czxid_;
    });
    // Right after the own create, its commit renews the lease. After a wait a committed check is needed: a server that
    // is cut off from the quorum would answer reads in the same way.
    if (((fast_grant_ && only_ones_are_ours) || checked_) && port_.begin_hold(nodes_, czxid_)) {
        return leave(Ended::granted);
    }
    send_renewal();
}

void MultiAcquireFsm::send_watches() {
    fast_grant_ = false;
    std::vector<std::string> predecessors(size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) {
        if (standing_[i].state != State::blocked) continue;
        predecessors[i] = standing_[i].predecessor;
        ++count;
    }
    if (!port_.may_watch(predecessors)) return fail(Errc::budget_exceeded, kTooManyWatches);
    // All at once, because the queues move independently of each other. Watches one after the other would cost a round
    // trip for each queue after the first one is clear.
    const Ticket ticket = begin(Step::setting_watches, count);
    for (std::size_t i = 0; i < size(); ++i) {
        if (!predecessors[i].empty()) port_.watch(ticket, i, predecessors[i]);
    }
}

void MultiAcquireFsm::on_watching(Ticket ticket, std::size_t member, Rc rc) {
    if (!current(ticket, Step::setting_watches)) return;
    if (rc != Rc::no_node && meaning(rc) != Meaning::done)
        return handle_error(rc, "watching the one before us", member);
    if (rc == Rc::no_node) predecessor_gone(member);  // between the list and the watch, and no watch was left (H15)
    --open_;
    settle_watches();
}

void MultiAcquireFsm::on_watch_fired(Ticket ticket, std::size_t member, WatchEventType type) {
    if (ticket != ticket_ || (step_ != Step::waiting && step_ != Step::setting_watches)) return;
    if (type == WatchEventType::deleted) {
        predecessor_gone(member);
        return settle_watches();
    }
    // Its data changed, or the watch was taken away: it is still there.
    std::vector<std::string> again(size());
    again[member] = standing_[member].predecessor;
    if (!port_.may_watch(again)) return fail(Errc::budget_exceeded, kTooManyWatches, member);
    step_ = Step::setting_watches;
    ++open_;
    port_.watch(ticket_, member, standing_[member].predecessor);
}

void MultiAcquireFsm::predecessor_gone(std::size_t member) {
    // If it was the head of the queue, our node is now first there: earlier contenders only become fewer.
    const bool certain = standing_[member].certain;
    standing_[member].state = certain ? State::clear : State::to_list;
}

/// Goes on when every watch is set or has fired.
void MultiAcquireFsm::settle_watches() {
    if (open_ > 0) return;
    if (!any(State::blocked)) {
        return send_renewal();
    }
    step_ = Step::waiting;
    outage_.over();  // back in the queues
}

/// One committed check of all own nodes, since an operator may have deleted some and the session may be over. Together
/// with a list where there may be another predecessor.
void MultiAcquireFsm::send_renewal() {
    port_.unwatch();
    checked_ = false;
    const auto lists = static_cast<std::size_t>(
        std::count_if(standing_.begin(), standing_.end(), [](const Standing& s) { return s.state == State::to_list; }));
    const Ticket ticket = begin(Step::renewing_lease, lists + 1);
    port_.renew_lease(ticket, nodes_);
    for (std::size_t i = 0; i < size(); ++i) {
        if (standing_[i].state == State::to_list) port_.list(ticket, i);
    }
}

void MultiAcquireFsm::on_lease_renewed(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::renewing_lease)) return;
    if (rc == Rc::no_node) return own_node_missing();
    if (meaning(rc) != Meaning::done) return handle_error(rc, "check");
    checked_ = true;
    if (--open_ == 0) decide();
}

// ---- nodes that are not what they should be -----------------------------------------------------------------------

void MultiAcquireFsm::own_node_missing() {
    port_.unwatch();
    port_.note("an own lock node was deleted by somebody else: going to the tail of the queues");
    port_.delete_nodes(nodes_);  // the others are still there, and would block everybody
    forget_nodes();
    if (once()) return leave(Ended::busy);
    send_create();
}

void MultiAcquireFsm::foreign_nodes() {
    // Made by a former session: the servers will delete them, and a hold on them would not exclude anybody (H3, H4).
    port_.note("nodes of this identity belong to another session: deleting them and starting again");
    port_.delete_nodes(nodes_);
    forget_nodes();
    attempt_failed();
}

void MultiAcquireFsm::forget_nodes() {
    known_ = Known::none;
    fast_grant_ = checked_ = false;
    identity_.clear();
    nodes_.assign(size(), "");
    czxid_ = 0;
}

void MultiAcquireFsm::handle_error(Rc rc, const char* what, std::optional<std::size_t> member) {
    about_ = member;
    QueueingFsm::handle_error(rc, what);
}

}  // namespace zkrecipes::internal
