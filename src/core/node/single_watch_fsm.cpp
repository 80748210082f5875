#include "core/node/single_watch_fsm.hpp"

#include "core/operation/watch_budget.hpp"

namespace zkrecipes::internal {

void SingleWatchFsm::on_connected(bool same_session) {
    // The client has set the watch again, and a missed event comes by itself.
    if (same_session && step_ == Step::watching) return;
    if (!same_session) behind_ = has_told();
    look();
}

void SingleWatchFsm::on_suspended() {
    if (step_ != Step::watching) go_away();
}

void SingleWatchFsm::on_session_lost() {
    common_.unwatch();  // it has ended with the session
    go_away();
}

void SingleWatchFsm::go_away() {
    common_.stop_timer();
    next_ticket();  // answers that still come belong to the past
    step_ = Step::away;
}

void SingleWatchFsm::look() {
    common_.unwatch();
    go_away();
    if (!common_.connected()) return;
    step_ = behind_ ? Step::syncing : Step::reading;
    behind_ ? common_.sync(ticket_) : read();
}

void SingleWatchFsm::on_synced(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::syncing)) return;
    if (rc != Rc::ok && rc != Rc::no_node) return trouble(rc);
    behind_ = false;
    step_ = Step::reading;
    read();
}

void SingleWatchFsm::on_timer() {
    if (step_ == Step::pausing) look();
}

void SingleWatchFsm::settled() {
    step_ = Step::watching;
    succeeded();
}

void SingleWatchFsm::trouble(Rc rc) { pause(meaning(rc) == Meaning::failed ? to_string(rc) : nullptr); }

void SingleWatchFsm::no_room() { pause(kNoWatchBudget); }

void SingleWatchFsm::pause(const char* why) {
    common_.unwatch();
    go_away();
    const int times = failed();
    if (why != nullptr) common_.refused(why, times);
    // Also if the connection broke: on_connected() does not wait for the timer.
    step_ = Step::pausing;
    common_.start_timer(next_pause(common_));
}

}  // namespace zkrecipes::internal
