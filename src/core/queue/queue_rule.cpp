#include "core/queue/queue_rule.hpp"

#include <optional>
#include <utility>

#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

namespace {

bool before(const QueueName& other, const QueueName& mine) { return other.before(mine); }

}  // namespace

PredecessorRule::PredecessorRule(Kinds kinds, Shrinking shrinking) : shrinking_(shrinking) {
    for (auto& kind : kinds) {
        patterns_.push_back(std::move(kind.pattern));
        blocks_.push_back(kind.blocks);
        after_.push_back(kind.shrinking);
    }
}

QueuePosition PredecessorRule::position(std::span<const std::string> children, std::string_view me) const {
    const auto mine = parse_queue_name(me, patterns_);
    bool listed = false;
    std::size_t predecessors = 0;
    std::optional<QueueName> nearest, second;
    for (const auto& child : children) {
        if (child == me) {
            listed = true;
            continue;
        }
        const auto other = parse_queue_name(child, patterns_);
        if (!mine || !other || !blocks_[other->pattern] || !before(*other, *mine)) continue;
        ++predecessors;
        // All of these are earlier than the own node, so their distances to it compare without wrapping.
        const auto distance = [&](const QueueName& n) { return sequence_distance(n.sequence, mine->sequence); };
        if (!nearest || distance(*other) < distance(*nearest) ||
            (distance(*other) == distance(*nearest) && nearest->name < other->name)) {
            second = std::exchange(nearest, other);
        } else if (!second || distance(*other) < distance(*second)) {
            second = other;
        }
    }
    if (!listed || !mine) return {};
    if (!nearest) return {QueuePosition::Kind::held, {}, false};
    const bool shrinking = shrinking_ == Shrinking::yes && after_[nearest->pattern] == Shrinking::yes;
    return {QueuePosition::Kind::wait, std::string(nearest->name), predecessors == 1 && shrinking,
            second && shrinking ? std::string(second->name) : std::string(), predecessors};
}

bool PredecessorRule::would_hold(std::span<const std::string> children) const {
    for (const auto& child : children) {
        const auto other = parse_queue_name(child, patterns_);
        if (other && blocks_[other->pattern]) return false;
    }
    return true;
}

namespace {

using Kinds = PredecessorRule::Kinds;
constexpr auto kNo = PredecessorRule::Shrinking::no;

}  // namespace

// Never destroyed: locks may be made while static objects are being destroyed.
using Rule = std::shared_ptr<const QueueRule>;

std::shared_ptr<const QueueRule> rule_exclusive(Dialect dialect) {
    static const auto& curator = *new Rule(std::make_shared<const PredecessorRule>(
        Kinds{{"lock-", true}, {"__WRIT__", true, kNo}, {"__READ__", true, kNo}, {"latch-", true}}));
    // A mutex and a writer have the same name there.
    static const auto& kazoo =
        *new Rule(std::make_shared<const PredecessorRule>(Kinds{{"__lock__", true, kNo}, {"__rlock__", true, kNo}}));
    return dialect == Dialect::kazoo ? kazoo : curator;
}

std::shared_ptr<const QueueRule> rule_shared(Dialect dialect) {
    static const auto& curator = *new Rule(std::make_shared<const PredecessorRule>(
        Kinds{{"lock-", true}, {"__WRIT__", true}, {"__READ__", false}, {"latch-", true}}));
    static const auto& kazoo =
        *new Rule(std::make_shared<const PredecessorRule>(Kinds{{"__lock__", true}, {"__rlock__", false}}));
    return dialect == Dialect::kazoo ? kazoo : curator;
}

}  // namespace zkrecipes::internal
