#include "core/node/leader_watch_fsm.hpp"

#include <utility>

#include "core/operation/watch_budget.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"

namespace zkrecipes::internal {

void LeaderWatchFsm::start() { look(); }

void LeaderWatchFsm::on_connected(bool same_session) {
    // The client has set the watch again, and an event that was missed comes by itself.
    if (same_session && step_ == Step::watching) return;
    if (!same_session) behind_ = told_.has_value();
    look();
}

void LeaderWatchFsm::on_suspended() {
    if (step_ == Step::watching) return;
    port_.stop_timer();
    next_ticket();  // what is still answered belongs to the past
    step_ = Step::away;
}

void LeaderWatchFsm::on_session_lost() {
    port_.stop_timer();
    port_.unwatch();  // it has ended with the session
    next_ticket();
    step_ = Step::away;
}

void LeaderWatchFsm::look() {
    port_.stop_timer();
    port_.unwatch();
    const Ticket ticket = next_ticket();
    if (!port_.connected()) {
        step_ = Step::away;
        return;
    }
    if (!behind_) return send_list();
    step_ = Step::syncing;
    port_.sync(ticket);
}

void LeaderWatchFsm::send_list() {
    step_ = Step::listing;
    port_.list(next_ticket());
}

void LeaderWatchFsm::on_synced(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::syncing)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return trouble(rc);
    behind_ = false;
    send_list();
}

void LeaderWatchFsm::on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names, const NodeStat& stat) {
    if (!current(ticket, Step::listing)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return trouble(rc);
    const auto queue = sorted_queue(names, lock_patterns());
    if (rc == Rc::ok && !queue.empty()) {
        candidate_ = queue.front().name;
        step_ = Step::asking_leader;
        if (!port_.watch_leader(next_ticket(), candidate_)) pause(kNoWatchBudget);
        return;
    }
    listed_at_ = rc == Rc::ok ? stat.pzxid : 0;
    step_ = Step::asking_directory;
    if (!port_.watch_directory(next_ticket())) pause(kNoWatchBudget);
}

void LeaderWatchFsm::on_leader(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    if (!current(ticket, Step::asking_leader)) return;
    if (rc == Rc::no_node) return look();  // resigned before it was watched
    if (rc != Rc::ok) return trouble(rc);
    step_ = Step::watching;
    tell({candidate_, data, stat});
}

void LeaderWatchFsm::on_directory(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket, Step::asking_directory)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return trouble(rc);
    // Changed between the list and the watch: somebody may have come.
    if (listed_at_ != (rc == Rc::ok ? stat.pzxid : 0)) return look();
    step_ = Step::watching;
    tell({});
}

void LeaderWatchFsm::on_fired(Ticket ticket) {
    if (current(ticket, Step::watching)) look();
}

void LeaderWatchFsm::on_timer() {
    if (step_ == Step::pausing) look();
}

void LeaderWatchFsm::tell(SeenLeader leader) {
    failures_ = 0;
    pace_.reset();
    const bool known = told_ && told_->node == leader.node && told_->stat.czxid == leader.stat.czxid;
    if (known) return;
    told_ = std::move(leader);
    port_.tell(*told_);
}

void LeaderWatchFsm::trouble(Rc rc) { pause(meaning(rc) == Meaning::failed ? to_string(rc) : nullptr); }

void LeaderWatchFsm::pause(const char* why) {
    next_ticket();
    port_.unwatch();
    ++failures_;
    if (why != nullptr) port_.refused(why, failures_);
    // Also where the connection broke: on_connected() does not wait for the timer.
    step_ = Step::pausing;
    port_.start_timer(std::chrono::duration_cast<std::chrono::milliseconds>(pace_.next(port_.random())));
}

}  // namespace zkrecipes::internal
