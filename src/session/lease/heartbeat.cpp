// Committed checks of the nodes that are held, and a watch on each that is held for long.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "session/common/backoff.hpp"
#include "session/lease/lease_keeper.hpp"

namespace zkrecipes::internal {
namespace {

/// Index of the hold that the node at `index` of a check belongs to; group.size(): there is none.
std::size_t hold_of_node(const std::vector<std::shared_ptr<Hold>>& group, std::size_t index) {
    std::size_t hold = 0;
    while (hold < group.size() && index >= group[hold]->nodes().size()) index -= group[hold++]->nodes().size();
    return hold;
}

}  // namespace

void LeaseKeeper::plan_heartbeat() {
    heartbeat_at_ = has_to_beat() ? holds_.heartbeat_due(clock_.last_commit(), clock_.interval()) : Instant::max();
    heartbeat_at_ = std::max(heartbeat_at_, lock_.runtime().now());  // at once, if nothing was committed yet
}

void LeaseKeeper::check_all(Instant now) {
    if (has_to_beat()) start_heartbeat(now);
}

void LeaseKeeper::start_heartbeat(Instant now) {
    ++heartbeat_round_;
    checks_open_ = 0;
    auto groups = holds_.begin_round(now);
    plan_heartbeat();
    if (holds_.empty()) groups.emplace_back();  // for those who are next
    for (auto& group : groups) send_check(std::move(group));
}

void LeaseKeeper::watch_unwatched() {
    for (const auto& hold : holds_.unwatched()) watch_own_nodes(hold);
}

void LeaseKeeper::send_check(std::vector<HoldPtr> group) {
    std::vector<std::string> nodes;
    for (const auto& hold : group) nodes.insert(nodes.end(), hold->nodes().begin(), hold->nodes().end());
    if (group.empty()) {
        if (next_.empty()) return;
        nodes.push_back(*next_.begin());
    }
    ++checks_open_;
    requests_.heartbeat(nodes, [this, group = std::move(group), round = heartbeat_round_](
                                   Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
        const bool current = round == heartbeat_round_;
        if (current) --checks_open_;
        on_checked(group, rc, results, sent_at);
        if (current && checks_open_ == 0) plan_heartbeat();
    });
}

void LeaseKeeper::on_checked(const std::vector<HoldPtr>& group, Rc rc, const std::vector<MultiResult>& results,
                             Instant sent_at) {
    switch (meaning(rc)) {
        case Meaning::done:
            check_refusals_ = 0;
            meter_.heartbeat_answered(lock_.runtime().now() - sent_at);
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
                if (group.size() == 1) return lose(group.front().get(), LossReason::node_gone, "its node is gone");
                for (const auto& hold : group) {
                    if (holds_.find(hold.get()) != nullptr) send_check({hold});
                }
                return;
            }
            lose(group[failed].get(), LossReason::node_gone, "its node is gone");
            for (auto& rest : holds_.rest_of(group, failed)) send_check(std::move(rest));
            return;
        }
        case Meaning::failed:
            meter_.heartbeats_refused.add();
            if (!group.empty() && should_log(++check_refusals_)) {
                lock_.log().error(
                    "session {:#x}: the heartbeat of {} hold(s) was refused: {}. Without it they are lost when "
                    "the "
                    "lease ends; give this session READ on its own lock nodes (SessionOptions::acl)",
                    connection_.printable_id(), group.size(), to_string(rc));
            }
            return;
        default:  // unknown or not done: proves nothing
            return;
    }
}

void LeaseKeeper::watch_own_nodes(const HoldPtr& hold) {
    for (std::size_t i = 0; i < hold->nodes().size(); ++i) watch_own_node(hold, i);
}

void LeaseKeeper::watch_own_node(const HoldPtr& hold, std::size_t index) {
    HoldTable::Entry* entry = holds_.find(hold.get());
    if (entry == nullptr || entry->watches[index] != 0 || !connection_.connected()) return;
    // Over the budget: only the heartbeat looks after it.
    entry->watches[index] = watches_.watch_node(hold->nodes()[index], listener_of_own_node(hold, index));
    if (entry->watches[index] == 0) entry->wants_watch = false;
}

void LeaseKeeper::take_watch(const HoldPtr& hold, WatchId watch) {
    HoldTable::Entry* entry = holds_.find(hold.get());
    if (entry == nullptr) return watches_.unwatch(watch);
    watches_.watch_table().hand_over(watch, listener_of_own_node(hold, 0));
    entry->watches[0] = watch;
}

WatchListener LeaseKeeper::listener_of_own_node(const HoldPtr& hold, std::size_t index) {
    WatchListener listener;
    listener.ready = [this, hold, index](Rc rc, const std::string& data, const NodeStat& stat) {
        HoldTable::Entry* mine = holds_.find(hold.get());
        if (mine == nullptr) return;
        if (rc == Rc::ok && stat.czxid == hold->czxid()) {
            const bool asked = data == kRevocationRequest;
            mine->asked_to_give_way = mine->asked_to_give_way || asked;
            if (asked && mine->on_asked_to_give_way) lock_.post_locked(mine->on_asked_to_give_way);
            if (mine->told_of_revocation && asked) tell_of_revocation(mine->hold);
            return;
        }
        if (rc != Rc::ok) mine->watches[index] = 0;
        if (rc == Rc::no_node)
            lose(hold.get(), LossReason::node_gone, "its node is gone");
        else if (rc == Rc::ok)
            lose(hold.get(), LossReason::node_gone, "its node was deleted and made again");
        else if (meaning(rc) == Meaning::failed)
            mine->wants_watch = false;  // not readable: the heartbeat must do
    };
    listener.fired = [this, hold, index](WatchEventType type) {
        HoldTable::Entry* mine = holds_.find(hold.get());
        if (mine == nullptr) return;
        mine->watches[index] = 0;
        if (type == WatchEventType::deleted)
            lose(hold.get(), LossReason::node_gone, "its node was deleted");
        else
            watch_own_node(hold, index);
    };
    return listener;
}

void LeaseKeeper::watch_revocation(const HoldPtr& hold) {
    HoldTable::Entry* entry = holds_.find(hold.get());
    if (entry == nullptr || entry->told_of_revocation) return;
    entry->told_of_revocation = entry->wants_watch = true;
    // A watch that is there already says nothing of what was written before: each node is read anew. Whoever is not
    // connected has no watch afterwards, and sets it with the next connection.
    for (std::size_t i = 0; i < hold->nodes().size(); ++i) {
        const WatchId before = std::exchange(entry->watches[i], 0);
        watch_own_node(hold, i);
        if (before != 0) watches_.unwatch(before);
    }
}

void LeaseKeeper::tell_of_revocation(const HoldPtr& hold) {
    if (hold->revocation().stop_requested()) return;
    lock_.log().info("session {:#x}: asked to give back {}", static_cast<std::uint64_t>(hold->session_id()),
                     hold->node());
    lock_.runtime().post(Lane::notifier, [hold] {
        const NotifierThread mark;
        hold->request_revocation();
    });
}

}  // namespace zkrecipes::internal
