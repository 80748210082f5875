#include <algorithm>
#include <utility>

#include "session/session_impl.hpp"

namespace zkrecipes::internal {
namespace {

/// Index of the hold that the node at `index` of a check belongs to; group.size(): there is none.
std::size_t hold_of_node(const std::vector<HoldTable::HoldPtr>& group, std::size_t index) {
    std::size_t hold = 0;
    while (hold < group.size() && index >= group[hold]->nodes().size()) index -= group[hold++]->nodes().size();
    return hold;
}

}  // namespace

void SessionImpl::new_lease_view() {
    // Old holds keep the view of their own session, which stays at zero: no later lease can ever speak for them.
    if (lease_view_) lease_view_->sure_until_ns.store(0, std::memory_order_release);
    lease_view_ = std::make_shared<LeaseView>();
}

void SessionImpl::lease_committed(Instant sent_at) {
    if (!fsm_.has_session() || closing_) return;
    const Instant counts_from = sent_at;
    const bool lapsed = lease_.commit(counts_from, runtime_->now());
    // Before the new end is shown: a hold whose lease had passed stays lost, whatever the servers say now.
    if (lapsed) lose_all("the lease had passed before the servers confirmed it");
    lease_view_->sure_until_ns.store(lease_.sure_until().time_since_epoch().count(), std::memory_order_release);
    lose_those_seen_to_end();
}

/// A reader whose clock passed the old end just before the new one was shown has ended its hold for good. Whoever sees
/// the flag a moment later than this look is told with the next commit.
void SessionImpl::lose_those_seen_to_end() {
    if (!lease_view_->end_seen.exchange(false, std::memory_order_acq_rel)) return;
    for (const auto& hold : holds_.over()) lose(hold.get(), "its lease had passed when its owner looked");
}

std::shared_ptr<Hold> SessionImpl::begin_hold(std::vector<std::string> nodes, std::int64_t czxid) {
    const Instant now = runtime_->now();
    if (!fsm_.has_session() || closing_ || !lease_.fresh(now)) return nullptr;
    const Incarnation& incarnation = fsm_.incarnation();
    auto hold = std::make_shared<Hold>(runtime_, lease_view_, std::move(nodes), czxid, incarnation.session_id,
                                       incarnation.number);
    const bool first = holds_.empty();
    holds_.add(hold, now);
    if (first) plan_heartbeat();
    return hold;
}

void SessionImpl::end_hold(const std::shared_ptr<Hold>& hold, std::function<void(bool)> gone) {
    hold->mark_ended();
    if (const auto entry = holds_.remove(hold.get())) {
        // The delete uses up the watch; taking it back would be a request more.
        for (const WatchId watch : entry->watches) watches_.abandon(watch);
    }
    if (hold->incarnation() == fsm_.incarnation().number) return delete_nodes(hold->nodes(), std::move(gone));
    if (gone) post_inside([gone = std::move(gone)] { gone(false); });
}

// ---- losing --------------------------------------------------------------------------------------------------------

void SessionImpl::lose(const Hold* hold, const char* why) {
    if (holds_.find(hold) == nullptr) return;
    // All that takes memory first: a hold that is taken out is told of.
    std::vector<HoldTable::Entry> lost;
    lost.reserve(1);
    untold_.reserve(untold_.size() + 1);
    lost.push_back(std::move(*holds_.remove(hold)));
    report_lost(lost, why);
}

void SessionImpl::lose_all(const char* why) {
    if (holds_.empty()) return;
    untold_.reserve(untold_.size() + holds_.size());
    report_lost(holds_.remove_all(), why);
}

void SessionImpl::lose_when_suspended(const Hold& hold) {
    if (!connected()) return lose(&hold, "no server answers");
    if (HoldTable::Entry* entry = holds_.find(&hold)) entry->ends_when_suspended = true;
}

void SessionImpl::report_lost(const std::vector<HoldTable::Entry>& lost, const char* why) {
    // All of them first, then the rest: held() must not be true for one while another one's owner acts on its loss.
    for (const auto& entry : lost) {
        if (entry.hold->mark_lost()) untold_.push_back(entry.hold);
    }
    constexpr std::size_t kLines = 20;
    for (std::size_t i = 0; i < lost.size(); ++i) {
        const auto& entry = lost[i];
        // The owner releases it, and deletes the node, when it has stopped.
        for (const WatchId watch : entry.watches) watches_.remove(watch);
        const auto session_id = static_cast<std::uint64_t>(entry.hold->session_id());
        if (i < kLines) {
            logger_->warn("session {:#x}: lost {} (token {}): {}", session_id, entry.hold->node(), entry.hold->czxid(),
                          why);
        } else if (i == kLines) {
            logger_->warn("session {:#x}: lost {} more: {}", session_id, lost.size() - kLines, why);
        }
    }
    tell_of_losses();
}

void SessionImpl::tell_of_losses() {
    if (untold_.empty()) return;
    runtime_->post(Lane::notifier, [to_tell = untold_] {
        const NotifierThread mark;
        for (const auto& hold : to_tell) hold->request_stop();
    });
    untold_.clear();
}

// ---- heartbeat -----------------------------------------------------------------------------------------------------

void SessionImpl::plan_heartbeat() { heartbeat_at_ = holds_.heartbeat_due(lease_.last_commit(), lease_.interval()); }

void SessionImpl::start_heartbeat(Instant now) {
    ++heartbeat_round_;
    checks_open_ = 0;
    auto groups = holds_.begin_round(now);
    plan_heartbeat();
    for (auto& group : groups) send_check(std::move(group));
}

/// A read that was not done (not connected, throttled) has left no watch. The check notices a deletion, but not a
/// revocation.
void SessionImpl::watch_unwatched() {
    for (const auto& hold : holds_.unwatched()) watch_own_nodes(hold);
}

void SessionImpl::send_check(std::vector<HoldTable::HoldPtr> group) {
    std::vector<std::string> nodes;
    for (const auto& hold : group) nodes.insert(nodes.end(), hold->nodes().begin(), hold->nodes().end());
    ++checks_open_;
    heartbeat(nodes, [this, group = std::move(group), round = heartbeat_round_](
                         Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
        const bool current = round == heartbeat_round_;
        if (current) --checks_open_;
        on_checked(group, rc, results, sent_at);
        if (current && checks_open_ == 0) plan_heartbeat();
    });
}

void SessionImpl::on_checked(const std::vector<HoldTable::HoldPtr>& group, Rc rc,
                             const std::vector<MultiResult>& results, Instant sent_at) {
    switch (meaning(rc)) {
        case Meaning::done:
            check_refusals_ = 0;
            lease_committed(sent_at);
            holds_.checked(group, sent_at);
            return;
        case Meaning::refused: {
            // The first refusal names the node. The others were not checked: they prove nothing, and are asked about
            // anew.
            std::size_t node = 0;
            while (node < results.size() && results[node].rc != Rc::no_node) ++node;
            const std::size_t failed = node < results.size() ? hold_of_node(group, node) : group.size();
            if (failed == group.size()) {
                if (group.size() == 1) return lose(group.front().get(), "its node is gone");
                for (const auto& hold : group) {
                    if (holds_.find(hold.get()) != nullptr) send_check({hold});
                }
                return;
            }
            lose(group[failed].get(), "its node is gone");
            for (auto& rest : holds_.rest_of(group, failed)) send_check(std::move(rest));
            return;
        }
        case Meaning::failed:
            if (should_log(++check_refusals_)) {
                logger_->error(
                    "session {:#x}: the heartbeat of {} hold(s) was refused: {}. Without it they are lost when "
                    "the "
                    "lease ends; give this session READ on its own lock nodes (SessionOptions::acl)",
                    static_cast<std::uint64_t>(fsm_.incarnation().session_id), group.size(), to_string(rc));
            }
            return;
        default:  // unknown or not done: proves nothing
            return;
    }
}

void SessionImpl::watch_own_nodes(const HoldTable::HoldPtr& hold) {
    for (std::size_t i = 0; i < hold->nodes().size(); ++i) watch_own_node(hold, i);
}

void SessionImpl::watch_own_node(const HoldTable::HoldPtr& hold, std::size_t index) {
    HoldTable::Entry* entry = holds_.find(hold.get());
    if (entry == nullptr || entry->watches[index] != 0 || !connected()) return;
    WatchListener listener;
    listener.ready = [this, hold, index](Rc rc, const std::string& data, const NodeStat& stat) {
        HoldTable::Entry* mine = holds_.find(hold.get());
        if (mine == nullptr) return;
        if (rc == Rc::ok && stat.czxid == hold->czxid()) {
            const bool asked = data == kRevocationRequest;
            if (mine->told_of_revocation && asked) tell_of_revocation(hold);
            return;
        }
        if (rc != Rc::ok) mine->watches[index] = 0;
        if (rc == Rc::no_node)
            lose(hold.get(), "its node is gone");
        else if (rc == Rc::ok)
            lose(hold.get(), "its node was deleted and made again");
        else if (meaning(rc) == Meaning::failed)
            mine->wants_watch = false;  // not readable: the heartbeat must do
    };
    listener.fired = [this, hold, index](WatchEventType type) {
        HoldTable::Entry* mine = holds_.find(hold.get());
        if (mine == nullptr) return;
        mine->watches[index] = 0;
        if (type == WatchEventType::deleted)
            lose(hold.get(), "its node was deleted");
        else
            watch_own_node(hold, index);
    };
    // Over the budget: the heartbeat alone looks after it.
    entry->watches[index] = watches_.add(hold->nodes()[index], std::move(listener));
    if (entry->watches[index] == 0) entry->wants_watch = false;
}

void SessionImpl::watch_revocation(const HoldTable::HoldPtr& hold) {
    HoldTable::Entry* entry = holds_.find(hold.get());
    if (entry == nullptr || entry->told_of_revocation) return;
    entry->told_of_revocation = entry->wants_watch = true;
    // A watch that is there already says nothing of what was written before: each node is read anew. Whoever is not
    // connected has no watch afterwards, and sets it with the next connection.
    for (std::size_t i = 0; i < hold->nodes().size(); ++i) {
        const WatchId before = std::exchange(entry->watches[i], 0);
        watch_own_node(hold, i);
        if (before != 0) watches_.remove(before);
    }
}

void SessionImpl::tell_of_revocation(const HoldTable::HoldPtr& hold) {
    if (hold->revocation().stop_requested()) return;
    logger_->info("session {:#x}: asked to give back {}", static_cast<std::uint64_t>(hold->session_id()), hold->node());
    runtime_->post(Lane::notifier, [hold] {
        const NotifierThread mark;
        hold->request_revocation();
    });
}

}  // namespace zkrecipes::internal
