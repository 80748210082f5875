#include "session/lease/lease_keeper.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {

LeaseKeeper::LeaseKeeper(SessionLock& lock, Connection& connection, Requests& requests, Watches& watches,
                         NodeDeletion& deletion, SessionMeter& meter)
    : lock_(lock),
      connection_(connection),
      requests_(requests),
      watches_(watches),
      deletion_(deletion),
      meter_(meter),
      clock_(connection.options().server_tick) {}

// ---- the lease -----------------------------------------------------------------------------------------------------

void LeaseKeeper::on_connected(Instant since, Instant now) {
    const bool had_passed = clock_.passed(now);
    const Nanoseconds former = clock_.timeout();
    const auto granted = connection_.incarnation().timeout;
    clock_.connected(granted, since, now);
    if (!holds_.empty() && clock_.passed(now)) {
        lose_all(LossReason::lease_ended, had_passed ? kNoHeartbeat : "the servers granted a shorter session timeout");
    }
    view_->ends_at_ns.store(clock_.ends_at() == Instant::min() ? 0 : clock_.ends_at().time_since_epoch().count(),
                            std::memory_order_release);
    if (former == Nanoseconds::zero() || former == granted) return;
    // Last: the sink may be slow, and until here a lease that has become shorter seems to be longer.
    lock_.log().warn(
        "session {:#x}: the servers changed the session timeout from {} ms to {} ms; give all of them the same "
        "minSessionTimeout and maxSessionTimeout",
        connection_.printable_id(), former / std::chrono::milliseconds(1), granted.count());
}

void LeaseKeeper::assume_tick(std::chrono::milliseconds tick) {
    clock_.learned(tick);
    if (!holds_.empty() && clock_.passed(lock_.runtime().now()))
        lose_all(LossReason::lease_ended, "a server told a longer tickTime than was assumed");
    view_->ends_at_ns.store(clock_.ends_at() == Instant::min() ? 0 : clock_.ends_at().time_since_epoch().count(),
                            std::memory_order_release);
}

void LeaseKeeper::on_suspended() {
    for (const auto& hold : holds_.ending_when_suspended())
        lose(hold.get(), LossReason::suspended, "no server answers");
}

void LeaseKeeper::on_session_over() {
    // Old holds keep the view of their own session, which stays at zero: no later lease can ever speak for them.
    end_lease();
    view_ = std::make_shared<LeaseView>();
    clock_.reset();
    stop_heartbeat();
    ++heartbeat_round_;
    checks_open_ = 0;
}

void LeaseKeeper::lease_committed(Instant sent_at) {
    if (!connection_.fsm().has_session() || connection_.closing()) return;
    const bool lapsed = clock_.commit(sent_at, lock_.runtime().now());
    // Before the new end is shown: a hold whose lease had passed stays lost, whatever the servers say now.
    if (lapsed) lose_all(LossReason::lease_ended, "the lease had passed before the servers confirmed it");
    view_->ends_at_ns.store(clock_.ends_at().time_since_epoch().count(), std::memory_order_release);
    lose_those_seen_to_end();
}

/// A reader whose clock passed the old end just before the new one was shown has ended its hold for good. Whoever sees
/// the flag a moment later than this look is told with the next commit.
void LeaseKeeper::lose_those_seen_to_end() {
    if (!view_->end_seen.exchange(false, std::memory_order_acq_rel)) return;
    for (const auto& hold : holds_.over())
        lose(hold.get(), LossReason::lease_ended, "its lease had passed when its owner looked");
}

std::shared_ptr<Hold> LeaseKeeper::begin_hold(std::vector<std::string> nodes, std::int64_t czxid) {
    const Instant now = lock_.runtime().now();
    if (!connection_.fsm().has_session() || connection_.closing() || !clock_.fresh(now)) return nullptr;
    const Incarnation& incarnation = connection_.incarnation();
    auto hold = std::make_shared<Hold>(lock_.shared_runtime(), view_, std::move(nodes), czxid, incarnation.session_id,
                                       incarnation.number);
    const bool first = holds_.empty();
    holds_.add(hold, now);
    if (first) plan_heartbeat();
    return hold;
}

void LeaseKeeper::is_next(const std::string& node, std::function<void(Rc)> refused) {
    next_.insert_or_assign(node, std::move(refused));
    if (holds_.empty() && next_.size() == 1) plan_heartbeat();
}

void LeaseKeeper::no_longer_next(const std::string& node) { next_.erase(node); }

std::shared_ptr<Hold> LeaseKeeper::begin_hold(std::string node, std::int64_t czxid) {
    std::vector<std::string> nodes;
    nodes.push_back(std::move(node));  // an initializer list would copy it
    return begin_hold(std::move(nodes), czxid);
}

/// If its lease has ended before the session's timer has seen that, it was lost, and is counted so. A release requests
/// no stop, unless the owner has seen the end.
void LeaseKeeper::released(Hold& hold) {
    if (!hold.is_over()) hold.mark_ended();
    end_what_has_passed(lock_.runtime().now());
    hold.mark_ended();
    meter_.released(hold.record());
}

void LeaseKeeper::end_hold(const std::shared_ptr<Hold>& hold, std::function<void(bool)> gone) {
    released(*hold);
    if (const auto entry = holds_.remove(hold.get())) {
        // The delete uses up the watch; taking it back would be a request more.
        for (const WatchId watch : entry->watches) watches_.watch_table().abandon(watch);
    }
    if (hold->incarnation() == connection_.incarnation().number)
        return deletion_.delete_nodes(hold->nodes(), std::move(gone));
    if (gone) lock_.post_locked([gone = std::move(gone)] { gone(false); });
}

/// Of a hold whose nodes may get another one. Null: they may not.
HoldTable::Entry* LeaseKeeper::sure_entry(const Hold& hold) {
    const Instant now = lock_.runtime().now();
    if (!hold.held() || hold.bound_to_owner() || hold.revocation().stop_requested()) return nullptr;
    if (hold.incarnation() != connection_.incarnation().number || connection_.closing()) return nullptr;
    if (!connection_.fsm().has_session() || !clock_.fresh(now)) return nullptr;
    HoldTable::Entry* const entry = holds_.find(&hold);
    // A fresh lease proves the session, and not that the node is still there.
    if (entry == nullptr || entry->of_nodes().asked_to_give_way) return nullptr;
    return now - entry->of_nodes().checked < 2 * clock_.interval() ? entry : nullptr;
}

std::shared_ptr<Hold> LeaseKeeper::join(const std::shared_ptr<Hold>& hold) {
    if (sure_entry(*hold) == nullptr || hold->nodes_are_bound()) return nullptr;
    auto another = std::make_shared<Hold>(hold);
    holds_.add_beside(hold.get(), another, lock_.runtime().now());
    return another;
}

void LeaseKeeper::leave_node(const std::shared_ptr<Hold>& hold) {
    released(*hold);
    if (auto entry = holds_.remove(hold.get())) leave_watches(*entry);
}

/// The watches of a hold that was taken out go to one who holds by the same nodes still.
void LeaseKeeper::leave_watches(HoldTable::Entry& from) {
    HoldTable::Entry* const next = holds_.find_on_nodes_of(from.hold.get());
    for (std::size_t i = 0; i < from.watches.size(); ++i) {
        const WatchId watch = std::exchange(from.watches[i], 0);
        if (next == nullptr || next->watches[i] != 0) {
            watches_.unwatch(watch);
        } else if (watch != 0) {
            watches_.watch_table().hand_over(watch, listener_of_own_node(next->hold, i));
            next->watches[i] = watch;
        }
    }
    if (next != nullptr) next->wants_watch = next->wants_watch || from.wants_watch;
}

std::shared_ptr<Hold> LeaseKeeper::pass_on(const std::shared_ptr<Hold>& hold) {
    if (sure_entry(*hold) == nullptr) return nullptr;
    // It ends first: whoever binds it at this moment, under the lock of another session, sees one or the other.
    hold->mark_ended();
    if (hold->was_bound_to_owner()) return nullptr;
    meter_.released(hold->record());
    auto next = std::make_shared<Hold>(lock_.shared_runtime(), view_, hold->nodes(), hold->czxid(), hold->session_id(),
                                       hold->incarnation());
    hold->succeeded_by(*next);
    holds_.pass_on(hold.get(), next);
    return next;
}

void LeaseKeeper::on_loss(const std::shared_ptr<Hold>& hold, std::function<void()> told) {
    if (HoldTable::Entry* entry = holds_.find(hold.get())) {
        entry->on_loss = std::move(told);
    } else {
        lock_.post_locked(std::move(told));
    }
}

void LeaseKeeper::on_asked_to_give_way(const std::shared_ptr<Hold>& hold, std::function<void()> told) {
    if (HoldTable::Entry* entry = holds_.find(hold.get())) entry->on_asked_to_give_way = std::move(told);
}

/// When what is held is lost, unless its lease is renewed before.
Instant LeaseKeeper::hold_ends_at() const {
    if (holds_.empty()) return Instant::max();
    return clock_.ends_at();
}

/// An idle session is kept well touched, so that a lock node made on it starts with a good lease. See LeaseClock.
Instant LeaseKeeper::touch_due_at() const {
    return connection_.connected() ? requests_.last_request() + clock_.idle_interval() : Instant::max();
}

Instant LeaseKeeper::wake_at() const {
    return std::min({hold_ends_at(), heartbeat_at_, holds_.watch_due_at(), touch_due_at()});
}

void LeaseKeeper::end_what_has_passed(Instant now) {
    if (now >= hold_ends_at()) lose_all(LossReason::lease_ended, kNoHeartbeat);
}

void LeaseKeeper::on_time(Instant now) {
    // Waited for, as every request: left unanswered for seconds it would be no touch for a lock that is taken
    // meanwhile.
    if (now >= touch_due_at()) requests_.exists("/", {});
    for (const auto& hold : holds_.take_due_for_watch(now)) watch_own_nodes(hold);
    if (now >= heartbeat_at_) {
        heartbeat_at_ = Instant::max();  // set again by the answers, or by the next connect
        if (has_to_beat() && connection_.connected() && checks_open_ == 0) {
            start_heartbeat(now);
            watch_unwatched();
        }
    }
}

// ---- losing --------------------------------------------------------------------------------------------------------

void LeaseKeeper::lose(const Hold* hold, LossReason reason, const char* why) {
    if (holds_.find(hold) == nullptr) return;
    // All that takes memory first: a hold that is taken out is told of.
    const auto others = holds_.on_the_same_nodes(hold);
    std::vector<HoldTable::Entry> lost;
    lost.reserve(1 + others.size());
    untold_.reserve(untold_.size() + 1 + others.size());
    lost.push_back(std::move(*holds_.remove(hold)));
    for (const auto& other : others) lost.push_back(std::move(*holds_.remove(other.get())));
    report_lost(lost, reason, why);
}

bool LeaseKeeper::limit_passed(const std::shared_ptr<Hold>& hold) {
    end_what_has_passed(lock_.runtime().now());  // if both have passed, the lease was first
    const HoldTable::Entry* const entry = holds_.find(hold.get());
    const bool others = entry != nullptr && entry->has_others();
    if (entry != nullptr && entry->hold == hold) {
        std::vector<HoldTable::Entry> ended;
        ended.reserve(1);
        untold_.reserve(untold_.size() + 1);
        ended.push_back(std::move(*holds_.remove(hold.get())));
        if (others) leave_watches(ended.front());
        // Otherwise the delete uses them up.
        for (WatchId& watch : ended.front().watches) watches_.watch_table().abandon(std::exchange(watch, 0));
        report_lost(ended, LossReason::max_hold, "it was held for max_hold");
    }
    return others;
}

void LeaseKeeper::lose_all(LossReason reason, const char* why) {
    if (holds_.empty()) return;
    untold_.reserve(untold_.size() + holds_.size());
    report_lost(holds_.remove_all(), reason, why);
}

void LeaseKeeper::lose_when_suspended(const Hold& hold) {
    if (!connection_.connected()) return lose(&hold, LossReason::suspended, "no server answers");
    if (HoldTable::Entry* entry = holds_.find(&hold)) entry->ends_when_suspended = true;
}

void LeaseKeeper::report_lost(const std::vector<HoldTable::Entry>& lost, LossReason reason, const char* why) {
    // All of them first, then the rest: held() must not be true for one while another one's owner acts on its loss.
    for (const auto& entry : lost) {
        if (entry.hold->mark_lost()) untold_.push_back(entry.hold);
        meter_.lost(entry.hold->record(), reason);
        if (entry.on_loss) lock_.post_locked(entry.on_loss);
    }
    constexpr std::size_t kLines = 20;
    for (std::size_t i = 0; i < lost.size(); ++i) {
        const auto& entry = lost[i];
        // The owner releases it, and deletes the node, when it has stopped.
        for (const WatchId watch : entry.watches) watches_.unwatch(watch);
        const auto session_id = static_cast<std::uint64_t>(entry.hold->session_id());
        if (i < kLines) {
            lock_.log().warn("session {:#x}: lost {} (token {}): {}", session_id, entry.hold->node(),
                             entry.hold->czxid(), why);
        } else if (i == kLines) {
            lock_.log().warn("session {:#x}: lost {} more: {}", session_id, lost.size() - kLines, why);
        }
    }
    tell_of_losses();
}

void LeaseKeeper::tell_of_losses() {
    if (untold_.empty()) return;
    lock_.runtime().post(Lane::notifier, [to_tell = untold_] {
        const NotifierThread mark;
        for (const auto& hold : to_tell) hold->request_stop();
    });
    untold_.clear();
}

}  // namespace zkrecipes::internal
