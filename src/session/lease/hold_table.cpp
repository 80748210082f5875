#include "session/lease/hold_table.hpp"

#include <algorithm>

namespace zkrecipes::internal {

void HoldTable::add(HoldPtr hold, Instant now) {
    Entry entry;
    entry.of_its_nodes.checked = now;
    entry.serial = ++last_serial_;
    entry.watches.resize(hold->nodes().size());
    const Hold* key = hold.get();
    entry.hold = std::move(hold);
    young_.push_back({now + kWatchAfter, key, entry.serial});
    entries_.emplace(key, std::move(entry));
}

void HoldTable::add_beside(const Hold* hold, const HoldPtr& another, Instant now) {
    add(another, now);
    Group& group = groups_[&hold->first()];
    if (group.holds.empty()) group.of_nodes = find(hold)->of_its_nodes;
    for (Entry* const entry : {find(hold), find(another.get())}) {
        entry->group = &group;
        group.holds.emplace(entry->serial, entry);
    }
}

void HoldTable::pass_on(const Hold* hold, HoldPtr next) {
    auto node = entries_.extract(hold);
    Entry& entry = node.mapped();
    // The holds in young_ are in the order in which they began.
    const auto young = std::ranges::lower_bound(young_, entry.serial, {}, &Young::serial);
    if (young != young_.end() && young->serial == entry.serial) young->hold = next.get();
    node.key() = next.get();
    entry.hold = std::move(next);
    entry.on_loss = entry.on_asked_to_give_way = nullptr;
    entries_.insert(std::move(node));
}

std::optional<HoldTable::Entry> HoldTable::remove(const Hold* hold) {
    const Entry* const entry = find(hold);
    if (entry == nullptr) return std::nullopt;
    auto node = entries_.extract(entry->hold.get());
    if (node.empty()) return std::nullopt;
    if (Group* const group = std::exchange(node.mapped().group, nullptr)) {
        group->holds.erase(node.mapped().serial);
        if (group->holds.empty()) groups_.erase(&node.mapped().hold->first());
    }
    // Ended holds stay in young_ until they come to its front; with many short holds that must not pile up.
    if (entries_.empty()) young_.clear();
    return std::move(node.mapped());
}

std::vector<HoldTable::Entry> HoldTable::remove_all() {
    std::vector<Entry> out;
    out.reserve(entries_.size());
    for (auto& [key, entry] : entries_) out.push_back(std::move(entry));
    for (Entry& entry : out) entry.group = nullptr;
    entries_.clear();
    groups_.clear();
    young_.clear();
    // In the order in which they began, so that what follows does not depend on addresses.
    std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.serial < b.serial; });
    return out;
}

std::vector<HoldTable::HoldPtr> HoldTable::on_the_same_nodes(const Hold* hold) {
    std::vector<HoldPtr> out;
    const Entry* const entry = find(hold);
    if (entry == nullptr || entry->group == nullptr) return out;
    for (const auto& [serial, other] : entry->group->holds) {
        if (other != entry) out.push_back(other->hold);
    }
    return out;
}

HoldTable::Entry* HoldTable::find(const Hold* hold) {
    if (hold->tenure() == nullptr) return find_exactly(hold);
    Entry* const entry = find_exactly(hold->tenure()->holder);
    // The last holder may be gone, and another hold may have its address.
    return entry != nullptr && entry->hold->tenure() == hold->tenure() ? entry : nullptr;
}

HoldTable::Entry* HoldTable::find_on_nodes_of(const Hold* hold) {
    if (Entry* const entry = find(hold)) return entry;
    const auto group = groups_.find(&hold->first());
    return group == groups_.end() ? nullptr : group->second.holds.begin()->second;
}

HoldTable::Entry* HoldTable::find_exactly(const Hold* hold) {
    const auto found = entries_.find(hold);
    return found == entries_.end() ? nullptr : &found->second;
}

std::vector<HoldTable::HoldPtr> HoldTable::take_due_for_watch(Instant now) {
    std::vector<HoldPtr> out;
    while (!young_.empty() && young_.front().due <= now) {
        const Young young = young_.front();
        young_.pop_front();
        Entry* entry = find_exactly(young.hold);  // which may have been destroyed
        if (entry == nullptr || entry->serial != young.serial || !entry->stands_for_all()) continue;
        entry->wants_watch = true;
        out.push_back(entry->hold);
    }
    return out;
}

template <class Chosen>
std::vector<HoldTable::HoldPtr> HoldTable::in_order(Chosen chosen) const {
    std::vector<const Entry*> found;
    for (const auto& [key, entry] : entries_) {
        if (chosen(entry)) found.push_back(&entry);
    }
    std::sort(found.begin(), found.end(), [](const Entry* a, const Entry* b) { return a->serial < b->serial; });
    std::vector<HoldPtr> out;
    for (const Entry* entry : found) out.push_back(entry->hold);
    return out;
}

std::vector<HoldTable::HoldPtr> HoldTable::unwatched() const {
    return in_order([](const Entry& entry) {
        return entry.wants_watch && std::ranges::find(entry.watches, WatchId{0}) != entry.watches.end();
    });
}

std::vector<HoldTable::HoldPtr> HoldTable::ending_when_suspended() const {
    return in_order([](const Entry& entry) { return entry.ends_when_suspended; });
}

std::vector<HoldTable::HoldPtr> HoldTable::over() const {
    return in_order([](const Entry& entry) { return entry.hold->is_over(); });
}

Instant HoldTable::heartbeat_due(Instant last_commit, Nanoseconds interval) const {
    // The lease, and each single node, must be proved anew within the interval. A session with many short holds and one
    // long one renews the lease with every create, but the long one's node is checked by heartbeats only.
    Instant oldest = last_commit;
    for (const auto& [key, entry] : entries_) oldest = std::min(oldest, entry.of_nodes().checked);
    return std::max(oldest, last_round_) + interval;
}

std::size_t HoldTable::check_bytes(const std::vector<std::string>& nodes) {
    constexpr std::size_t kOverhead = 32;  // header of one operation in the request, and its part of the answer
    std::size_t bytes = 0;
    for (const auto& node : nodes) bytes += node.size() + kOverhead;
    return bytes;
}

std::vector<std::vector<HoldTable::HoldPtr>> HoldTable::begin_round(Instant now) {
    last_round_ = now;
    std::vector<const Entry*> all;
    all.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) {
        if (entry.stands_for_all()) all.push_back(&entry);
    }
    std::sort(all.begin(), all.end(), [](const Entry* a, const Entry* b) { return a->serial < b->serial; });
    std::vector<std::vector<HoldPtr>> groups;
    std::size_t bytes = 0;
    for (const Entry* entry : all) {
        const std::size_t cost = check_bytes(entry->hold->nodes());
        if (groups.empty() || bytes + cost > kChunkBytes) {
            groups.emplace_back();
            bytes = 0;
        }
        groups.back().push_back(entry->hold);
        bytes += cost;
    }
    return groups;
}

void HoldTable::checked(const std::vector<HoldPtr>& group, Instant sent_at) {
    for (const auto& hold : group) {
        if (Entry* entry = find_on_nodes_of(hold.get())) {
            entry->of_nodes().checked = std::max(entry->of_nodes().checked, sent_at);
        }
    }
}

std::vector<std::vector<HoldTable::HoldPtr>> HoldTable::rest_of(const std::vector<HoldPtr>& group, std::size_t failed) {
    std::vector<HoldPtr> rest;
    for (std::size_t i = 0; i < group.size(); ++i) {
        if (i == failed) continue;
        if (const Entry* entry = find_on_nodes_of(group[i].get())) rest.push_back(entry->hold);
    }
    std::vector<std::vector<HoldPtr>> out;
    constexpr std::size_t kSmall = 64;
    if (rest.empty()) return out;
    if (rest.size() <= kSmall) {
        out.push_back(std::move(rest));
        return out;
    }
    const auto middle = rest.begin() + static_cast<std::ptrdiff_t>(rest.size() / 2);
    out.emplace_back(rest.begin(), middle);
    out.emplace_back(middle, rest.end());
    return out;
}

}  // namespace zkrecipes::internal
