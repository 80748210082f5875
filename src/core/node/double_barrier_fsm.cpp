#include "core/node/double_barrier_fsm.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {
namespace {

constexpr int kDirectoriesInARow = 8;
constexpr std::size_t kCheckedAtMost = 1000;  // fits into a request with paths of any sensible length
constexpr const char* kNoRoom =
    "this session owns as many ephemeral nodes as ZooKeeper survives; use another Session for more";
constexpr const char* kNoWatch = "this session watches as many nodes as ZooKeeper survives; use another Session";

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
}

}  // namespace

// ---- the end of an old `ready` ------------------------------------------------------------------------------------

void DoubleBarrierFsm::remove_ready(const NodeStat& seen) {
    stale_ = seen.czxid;
    common_.set_ready(next_ticket(), seen.version);
}

void DoubleBarrierFsm::on_ready_set(Ticket ticket, Rc rc, const NodeStat& now) {
    if (!current(ticket)) return;
    if (rc != Rc::ok || now.czxid != stale_) return ready_removed();
    common_.remove_ready(next_ticket(), now.version);
}

void DoubleBarrierFsm::on_ready_removed(Ticket ticket) {
    if (current(ticket)) ready_removed();
}

// ---- enter --------------------------------------------------------------------------------------------------------

void BarrierEntryFsm::begin() {
    next_ticket();
    port_.unwatch();
    const std::string name = port_.own_name();
    if (name.empty()) return port_.fail(Errc::budget_exceeded, kNoRoom);
    own_ = name;
    ready_known_ = listed_ = false;
    ready_.reset();
    checked_ = 0;
    // The watch first: the last member to come, which makes `ready`, must not be missed.
    if (!port_.watch_ready(ticket())) return port_.fail(Errc::budget_exceeded, kNoWatch);
    port_.create(ticket());
}

void BarrierEntryFsm::on_ready(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket)) return;
    ready_known_ = true;
    if (rc == Rc::ok) ready_ = stat;
    decide();
}

void BarrierEntryFsm::on_ready_fired(Ticket ticket, WatchEventType type) {
    if (!current(ticket)) return;
    // Deleted: it was stale, and this or another member deleted it. Made before our node was there: that round may be
    // over again, or the news may be old, from a read that we share with a call that asked earlier.
    const bool news = type == WatchEventType::created && listed_;
    news ? enter() : begin();
}

void BarrierEntryFsm::on_created(Ticket ticket, Rc rc) {
    if (!current(ticket)) return;
    if (rc == Rc::no_node) return make_directory();
    if (rc != Rc::ok && rc != Rc::node_exists) return port_.fail(error_of(rc), answer_in_words("create", rc));
    directories_made_ = 0;
    port_.list(ticket);
}

void BarrierEntryFsm::make_directory() {
    if (!create_parents_) {
        return port_.fail(Errc::no_parent, "the barrier's directory does not exist, and the options forbid to make it");
    }
    if (++directories_made_ > kDirectoriesInARow) {
        return port_.fail(Errc::no_parent, "the barrier's directory vanishes each time it has been made");
    }
    port_.make_directory(ticket());
}

void BarrierEntryFsm::on_directory(Ticket ticket) {
    if (current(ticket)) port_.create(ticket);
}

void BarrierEntryFsm::on_children(Ticket ticket, const std::vector<std::string>& names) {
    if (!current(ticket)) return;
    if (!contains(names, own_)) return begin();
    present_ = names;
    std::erase(present_, kBarrierReady);
    listed_ = true;
    decide();
}

/// Once it is known whether `ready` is there, and which members are.
void BarrierEntryFsm::decide() {
    if (!listed_ || !ready_known_) return;
    if (ready_) return check_next_member();
    const bool all = present_.size() >= members_;
    if (all) {
        // One of them may have gone since the list: `ready` is made only if all are still there.
        const std::size_t counted = std::min(present_.size(), kCheckedAtMost);
        present_.resize(counted);
        return port_.make_ready(ticket(), present_);
    }
    if (port_.once()) return port_.timed_out();
    // While we wait: without our node the others would wait for ever.
    if (!port_.watch(ticket(), own_)) port_.fail(Errc::budget_exceeded, kNoWatch);
}

/// A member that was there when `ready` was made, possibly we ourselves, must still be there. Otherwise `ready` is left
/// from a former round: all sessions of that round ended before the last member could delete it.
void BarrierEntryFsm::check_next_member() {
    if (checked_ < present_.size()) return port_.stat(ticket(), present_[checked_++]);
    port_.unwatch();  // no event for our own delete
    remove_ready(*ready_);
}

void BarrierEntryFsm::on_stat(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket)) return;
    const bool was_there = rc == Rc::ok && stat.czxid < ready_->czxid;
    was_there ? enter() : check_next_member();
}

void BarrierEntryFsm::on_ready_made(Ticket ticket, Rc rc) {
    if (!current(ticket)) return;
    rc == Rc::ok ? enter() : begin();
}

void BarrierEntryFsm::on_node(Ticket ticket, Rc rc) {
    if (current(ticket) && rc == Rc::no_node) begin();
}

void BarrierEntryFsm::on_fired(Ticket ticket, WatchEventType) {
    if (current(ticket)) begin();
}

void BarrierEntryFsm::enter() {
    entered_ = true;
    port_.done();
}

// ---- leave --------------------------------------------------------------------------------------------------------

BarrierWait next_to_wait_for(const std::vector<std::string>& names, const std::string& own) {
    std::string first, last;
    bool inside = false;
    for (const auto& name : names) {
        if (name == kBarrierReady) continue;
        if (name == own) inside = true;
        if (first.empty() || name < first) first = name;
        if (name > last) last = name;
    }
    using What = BarrierWait::What;
    if (first.empty() || (first == own && last == own)) return {What::all_gone, {}};
    if (!inside) return {What::wait_for, first};
    return first == own ? BarrierWait{What::stay_for, last} : BarrierWait{What::leave_then, first};
}

void BarrierExitFsm::begin() {
    port_.unwatch();
    port_.list(go_to(Step::listing));
}

void BarrierExitFsm::on_children(Ticket ticket, const std::vector<std::string>& names) {
    if (!current(ticket)) return;
    if (step_ == Step::listing) return on_list(names);
    if (!nobody_else(names)) return end();
    step_ = Step::removing_ready;
    remove_ready(ready_);
}

void BarrierExitFsm::on_list(const std::vector<std::string>& names) {
    const bool there = contains(names, own_);
    if (!there && !deleted_) lost_ = true;
    keep_members_of_this_round(names);
    const auto next = next_to_wait_for(inside_, there ? own_ : "");
    using What = BarrierWait::What;
    if (next.what == What::all_gone) {
        if (!nobody_else(names)) return there ? remove_own(Step::leaving_as_last) : end();
        return there ? remove_both() : look_after_ready(names);
    }
    // The others did not wait for a member whose node was gone before; it does not wait for them either.
    if (lost_) return fail_lost();
    awaited_ = next.name;
    if (next.what == What::leave_then) return remove_own(Step::leaving_then_awaiting);
    await_or_give_up();
}

/// Members that come while we leave belong to the next round, which may need us.
void BarrierExitFsm::keep_members_of_this_round(const std::vector<std::string>& names) {
    if (!std::exchange(listed_, true)) {
        inside_ = names;
    } else {
        std::erase_if(inside_, [&](const auto& name) { return !contains(names, name); });
    }
}

bool BarrierExitFsm::nobody_else(const std::vector<std::string>& names) const {
    return std::ranges::all_of(names, [this](const auto& name) { return name == kBarrierReady || name == own_; });
}

/// The last one takes `ready` along, in one step: while its node is there, nobody makes another one.
void BarrierExitFsm::remove_both() {
    deleted_ = true;
    port_.remove_both(go_to(Step::leaving_with_ready));
}

/// The last one may not have deleted it: its session has ended. First which one it is, then that nobody is there: in
/// the other order it could be the one of the next round.
void BarrierExitFsm::look_after_ready(const std::vector<std::string>& names) {
    contains(names, kBarrierReady) ? port_.stat(go_to(Step::looking_at_ready), kBarrierReady) : end();
}

void BarrierExitFsm::remove_own(Step step) {
    deleted_ = true;  // perhaps; the next list tells
    port_.remove_own(go_to(step));
}

void BarrierExitFsm::on_own_removed(Ticket ticket) {
    if (!current(ticket)) return;
    removed_ = true;
    switch (step_) {
        case Step::leaving_then_awaiting: return await_or_give_up();
        case Step::leaving_after_all: return begin();
        default: return end();
    }
}

void BarrierExitFsm::on_both_removed(Ticket ticket, Rc rc) {
    if (!current(ticket)) return;
    // One of them has gone. If that was ours, `ready` is still there: list again.
    if (rc != Rc::ok) return remove_own(Step::leaving_after_all);
    removed_ = true;
    end();
}

void BarrierExitFsm::await_or_give_up() {
    if (port_.once()) return port_.timed_out();
    port_.unwatch();
    if (!port_.watch(go_to(Step::awaiting_member), awaited_)) port_.fail(Errc::budget_exceeded, kNoWatch);
}

void BarrierExitFsm::on_node(Ticket ticket, Rc rc) {
    if (current(ticket) && rc == Rc::no_node) begin();
}

void BarrierExitFsm::on_fired(Ticket ticket, WatchEventType type) {
    if (!current(ticket)) return;
    if (type == WatchEventType::deleted) std::erase(inside_, awaited_);  // also if it has come again since
    begin();
}

void BarrierExitFsm::on_stat(Ticket ticket, Rc rc, const NodeStat& stat) {
    if (!current(ticket)) return;
    if (rc != Rc::ok) return end();
    ready_ = stat;
    port_.list(go_to(Step::listing_again));
}

void BarrierExitFsm::end() { lost_ ? fail_lost() : port_.done(); }

void BarrierExitFsm::fail_lost() {
    port_.same_session()
        ? port_.fail(Errc::lock_lost, "somebody deleted our node while we were inside: the others took us for gone")
        : port_.fail(Errc::session_lost, "our session ended while we were inside: the others took us for gone");
}

}  // namespace zkrecipes::internal
