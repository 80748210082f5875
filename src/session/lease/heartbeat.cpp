// Committed checks of the nodes that are held, and a watch on each that is held for long.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "session/common/backoff.hpp"
#include "session/lease/lease_keeper.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kNotNamed = std::numeric_limits<std::size_t>::max();

/// Of the part of a refused check that was refused so.
std::size_t index_of(Rc rc, const std::vector<MultiResult>& results) {
    const auto found = std::ranges::find(results, rc, &MultiResult::rc);
    return found == results.end() ? kNotNamed : static_cast<std::size_t>(found - results.begin());
}

/// Index of the hold that the node at `index` of a check belongs to; holds.size(): of none, and `index` goes on behind.
std::size_t hold_of_node(const std::vector<std::shared_ptr<Hold>>& holds, std::size_t& index) {
    std::size_t hold = 0;
    while (hold < holds.size() && index >= holds[hold]->nodes().size()) index -= holds[hold++]->nodes().size();
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
    auto checks = checks_of_round(now);
    plan_heartbeat();
    for (auto& check : checks) send_check(std::move(check));
}

std::vector<LeaseKeeper::Check> LeaseKeeper::checks_of_round(Instant now) {
    std::vector<Check> checks;
    for (auto& holds : holds_.begin_round(now)) checks.push_back({std::move(holds), {}});
    std::size_t bytes = 0;
    for (const auto& [node, refused] : next_) {
        const std::size_t cost = HoldTable::check_bytes({node});
        if (checks.empty() || bytes + cost > HoldTable::kChunkBytes) {
            checks.emplace_back();
            bytes = 0;
        }
        checks.back().next.push_back(node);
        bytes += cost;
    }
    return checks;
}

void LeaseKeeper::watch_unwatched() {
    for (const auto& hold : holds_.unwatched()) watch_own_nodes(hold);
}

void LeaseKeeper::send_check(Check check) {
    std::erase_if(check.next, [this](const std::string& node) { return !next_.contains(node); });
    std::vector<std::string> nodes;
    for (const auto& hold : check.holds) nodes.insert(nodes.end(), hold->nodes().begin(), hold->nodes().end());
    nodes.insert(nodes.end(), check.next.begin(), check.next.end());
    if (nodes.empty()) return;
    ++checks_open_;
    requests_.heartbeat(nodes, [this, check = std::move(check), round = heartbeat_round_](
                                   Rc rc, const std::vector<MultiResult>& results, Instant sent_at) mutable {
        const bool current = round == heartbeat_round_;
        if (current) --checks_open_;
        on_checked(check, rc, results, sent_at);
        if (current && checks_open_ == 0) plan_heartbeat();
    });
}

void LeaseKeeper::on_checked(Check& check, Rc rc, const std::vector<MultiResult>& results, Instant sent_at) {
    switch (meaning_or_failed(rc)) {
        case Meaning::done:
            check_refusals_ = 0;
            meter_.heartbeat_answered(lock_.runtime().now() - sent_at);
            lease_committed(sent_at);
            holds_.checked(check.holds, sent_at);
            return;
        case Meaning::refused: return on_refused(check, index_of(Rc::no_node, results), rc);
        case Meaning::failed:
            // Whoever is next, and may not read its own node, does not take the heartbeat of the holds along.
            if (!concerns_holds(check, index_of(rc, results))) return on_refused(check, index_of(rc, results), rc);
            meter_.heartbeats_refused.add();
            if (!check.holds.empty() && should_log(++check_refusals_)) {
                lock_.log().error(
                    "session {:#x}: the heartbeat of {} hold(s) was refused: {}. Without it they are lost when "
                    "the lease ends; give this session READ on its own lock nodes (SessionOptions::acl)",
                    connection_.printable_id(), check.holds.size(), to_string(rc));
            }
            return;
        default:  // unknown or not done: proves nothing
            return;
    }
}

bool LeaseKeeper::concerns_holds(const Check& check, std::size_t node) {
    return check.next.empty() || hold_of_node(check.holds, node) < check.holds.size();
}

/// The first refusal names the node. The others were not checked: they prove nothing, and are asked about anew.
void LeaseKeeper::on_refused(Check& check, std::size_t node, Rc rc) {
    const std::size_t failed = hold_of_node(check.holds, node);
    if (failed < check.holds.size()) {
        lose_nodes_of(*check.holds[failed]);
    } else if (node < check.next.size()) {
        tell_next(check.next[node], rc);
    } else if (meaning(rc) == Meaning::failed) {
        for (const auto& each : std::exchange(check.next, {})) tell_next(each, rc);
    } else if (check.holds.size() + check.next.size() > 1) {  // it is not named: each by itself
        for (const auto& hold : check.holds) {
            if (holds_.find_on_nodes_of(hold.get()) != nullptr) send_check({{hold}, {}});
        }
        for (auto& each : check.next) send_check({{}, {std::move(each)}});
        return;
    } else if (check.holds.empty()) {
        return tell_next(check.next.front(), rc);
    } else {
        return lose_nodes_of(*check.holds.front());
    }
    // Holds do not wait for those who are next, of whom each may be refused in turn.
    for (auto& rest : holds_.rest_of(check.holds, failed)) send_check({std::move(rest), {}});
    if (!check.next.empty()) send_check({{}, std::move(check.next)});
}

void LeaseKeeper::tell_next(const std::string& node, Rc rc) {
    const auto found = next_.extract(node);
    if (!found.empty()) found.mapped()(rc);
}

/// Whoever was named in the check may have left them to others meanwhile.
void LeaseKeeper::lose_nodes_of(const Hold& hold) {
    if (const HoldTable::Entry* entry = holds_.find_on_nodes_of(&hold)) {
        lose(entry->hold.get(), LossReason::node_gone, "its node is gone");
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
            if (asked) mine->of_nodes().asked_to_give_way = true;
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
