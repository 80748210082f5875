#include "core/local/local_queue_fsm.hpp"

namespace zkrecipes::internal {

using MayTake = LocalQueuePort::MayTake;

// ---- waiters ------------------------------------------------------------------------------------------------------

void LocalQueueFsm::arrive(WaiterId waiter) {
    if (waiting_.empty() && try_kept() == MayTake::yes) return port_.grant(waiter);
    waiting_.insert(waiter);
    go_on();
}

void LocalQueueFsm::leave(WaiterId waiter) {
    if (waiting_.erase(waiter) == 0 || !waiting_.empty()) return;
    starved_ = false;
    if (!open_) return;
    open_ = false;
    port_.close_place();
}

MayTake LocalQueueFsm::try_kept() {
    if (!kept_) return MayTake::no;
    const auto may = has_lasted(terms_.keep_for) ? MayTake::no : port_.may_take_kept();
    if (may == MayTake::no) on_doubt();
    if (may == MayTake::yes) {
        kept_ = false;
        held_ = true;
        ++grants_;
    }
    return may;
}

bool LocalQueueFsm::take_kept() {
    if (!waiting_.empty()) return false;
    const auto may = try_kept();
    if (may == MayTake::asked) on_doubt();
    return may == MayTake::yes;
}

void LocalQueueFsm::on_nobody_else() {
    if (waiting_.empty() || try_kept() != MayTake::yes) return;
    port_.grant(waiting_.extract(waiting_.begin()).value());
    go_on();
}

void LocalQueueFsm::end_try(bool granted) {
    trying_ = false;
    if (!granted) return;
    ++nodes_;
    begin_turn();
}

// ---- the place ----------------------------------------------------------------------------------------------------

void LocalQueueFsm::go_on() {
    if (open_ || starved_ || kept_ || waiting_.empty()) return;
    if (held_ && terms_.holds_per_turn > 1) return;  // the turn may go on
    open_ = true;
    opened_for_ = *waiting_.rbegin();
    port_.open_place();
}

void LocalQueueFsm::on_granted() {
    open_ = starved_ = false;
    ++nodes_;
    if (waiting_.empty()) return port_.discard();
    begin_turn();
    port_.grant(waiting_.extract(waiting_.begin()).value());
    go_on();
}

void LocalQueueFsm::on_refused(bool no_room) {
    open_ = false;
    if (no_room && nodes_ > 0) {
        starved_ = true;
        return port_.look_for_room_later();  // a node may end otherwise than by being given back: with the session
    }
    // What was refused is what they had all asked for. Those who came later have not been asked for yet.
    while (!waiting_.empty() && *waiting_.begin() <= opened_for_) {
        port_.refuse(waiting_.extract(waiting_.begin()).value());
    }
    go_on();
}

// ---- the hold -----------------------------------------------------------------------------------------------------

void LocalQueueFsm::begin_turn() {
    held_ = true;
    holds_ = 1;
    ++grants_;
    turn_began_ = port_.now();
    wanted_elsewhere_ = false;
}

bool LocalQueueFsm::take_over() {
    if (!held_ || open_) return false;
    if (!waiting_.empty()) {
        if (holds_ >= terms_.holds_per_turn || has_lasted(terms_.turn)) return false;
        auto first = waiting_.extract(waiting_.begin());
        ++holds_;  // all of it before it is told, since then it may act
        ++grants_;
        if (port_.pass_on(first.value())) return true;
        waiting_.insert(std::move(first));
        return false;
    }
    if (terms_.keep_for.count() == 0 || wanted_elsewhere_ || has_lasted(terms_.keep_for)) return false;
    if (!port_.keep(turn_began_ + terms_.keep_for)) return false;
    held_ = false;
    kept_ = true;
    return true;
}

void LocalQueueFsm::on_hold_over() {
    held_ = kept_ = starved_ = false;
    go_on();
}

void LocalQueueFsm::on_given_back() {
    held_ = kept_ = false;
    go_on();
}

void LocalQueueFsm::on_node_gone() {
    --nodes_;
    on_time_to_look();
}

void LocalQueueFsm::on_time_to_look() {
    starved_ = false;
    go_on();
}

void LocalQueueFsm::on_doubt() {
    wanted_elsewhere_ = true;
    if (!kept_) return;
    kept_ = false;
    port_.give_up_kept();
    go_on();
}

}  // namespace zkrecipes::internal
