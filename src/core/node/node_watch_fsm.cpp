#include "core/node/node_watch_fsm.hpp"

#include <utility>

#include "core/operation/watch_budget.hpp"

namespace zkrecipes::internal {

void NodeWatchFsm::start() { look(); }

void NodeWatchFsm::on_connected(bool same_session) {
    // The client has set the watch again, and an event that was missed comes by itself.
    if (same_session && step_ == Step::watching) return;
    if (!same_session) behind_ = told_.has_value();
    look();
}

void NodeWatchFsm::on_suspended() {
    if (step_ == Step::watching) return;
    port_.stop_timer();
    next_ticket();  // what is still answered belongs to the past
    step_ = Step::away;
}

void NodeWatchFsm::on_session_lost() {
    port_.stop_timer();
    port_.unwatch();  // it has ended with the session
    next_ticket();
    step_ = Step::away;
}

void NodeWatchFsm::look() {
    port_.stop_timer();
    port_.unwatch();
    const Ticket ticket = next_ticket();
    if (!port_.connected()) {
        step_ = Step::away;
        return;
    }
    if (!behind_) return read();
    step_ = Step::syncing;
    port_.sync(ticket);
}

void NodeWatchFsm::read() {
    step_ = Step::reading;
    if (!port_.watch(next_ticket())) pause(kNoWatchBudget);
}

void NodeWatchFsm::on_synced(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::syncing)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return pause(meaning(rc) == Meaning::failed ? to_string(rc) : nullptr);
    behind_ = false;
    read();
}

void NodeWatchFsm::on_node(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    if (!current(ticket, Step::reading)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return pause(meaning(rc) == Meaning::failed ? to_string(rc) : nullptr);
    step_ = Step::watching;
    failures_ = 0;
    pace_.reset();
    SeenNode seen;
    if (rc == Rc::ok) seen = {true, data, stat};
    if (told_ && told_->same_as(seen)) return;
    told_ = std::move(seen);
    port_.tell(*told_);
}

void NodeWatchFsm::on_fired(Ticket ticket) {
    if (current(ticket, Step::watching)) look();
}

void NodeWatchFsm::on_timer() {
    if (step_ == Step::pausing) look();
}

void NodeWatchFsm::pause(const char* why) {
    next_ticket();
    port_.unwatch();
    ++failures_;
    if (why != nullptr) port_.refused(why, failures_);
    // Also where the connection broke: on_connected() does not wait for the timer.
    step_ = Step::pausing;
    port_.start_timer(std::chrono::duration_cast<std::chrono::milliseconds>(pace_.next(port_.random())));
}

}  // namespace zkrecipes::internal
