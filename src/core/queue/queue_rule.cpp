#include "core/queue/queue_rule.hpp"

#include <optional>
#include <utility>

#include "base/mutation.hpp"
#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {

namespace {

/// Earlier in the queue; and what goes wrong when that is found out otherwise.
bool before(const QueueName& other, const QueueName& mine) {
    if (ZKRECIPES_MUTATION("order-by-name")) return other.name < mine.name;
    if (ZKRECIPES_MUTATION("numbers-do-not-wrap")) return other.sequence < mine.sequence;
    if (ZKRECIPES_MUTATION("equal-numbers-both-first")) return sequence_before(other.sequence, mine.sequence);
    if (ZKRECIPES_MUTATION("later-ones-block")) return true;
    return other.before(mine);
}

}  // namespace

PredecessorRule::PredecessorRule(Kinds kinds, Shrinking shrinking) : shrinking_(shrinking) {
    for (auto& kind : kinds) {
        patterns_.push_back(std::move(kind.pattern));
        blocks_.push_back(kind.blocks &&
                          !(ZKRECIPES_MUTATION("shares-do-not-block") && patterns_.back() == "__READ__"));
        after_.push_back(kind.shrinking);
    }
}

Place PredecessorRule::place(std::span<const std::string> children, std::string_view me) const {
    const auto mine = parse_queue_name(me, patterns_);
    bool listed = false;
    std::size_t blockers = 0;
    std::optional<QueueName> nearest;
    for (const auto& child : children) {
        if (child == me) {
            listed = true;
            continue;
        }
        const auto other = parse_queue_name(child, patterns_);
        if (!mine || !other || !blocks_[other->pattern] || !before(*other, *mine)) continue;
        if (ZKRECIPES_MUTATION("recipes-share-no-queue") && (other->pattern == 0) != (mine->pattern == 0)) continue;
        ++blockers;
        // All of these lie before the own node, so their distances to it compare without wrapping.
        const auto distance = [&](const QueueName& n) { return sequence_distance(n.sequence, mine->sequence); };
        const bool first = ZKRECIPES_MUTATION("watch-the-first") && nearest && distance(*other) > distance(*nearest);
        if (!nearest || first || (distance(*other) < distance(*nearest) && !ZKRECIPES_MUTATION("watch-the-first")) ||
            (distance(*other) == distance(*nearest) && nearest->name < other->name)) {
            nearest = other;
        }
    }
    if ((!listed && !ZKRECIPES_MUTATION("missing-own-node-holds")) || !mine) return {};
    if (!nearest) return {Place::Kind::held, {}, false};
    const bool shrinking = (shrinking_ == Shrinking::yes && after_[nearest->pattern] == Shrinking::yes) ||
                           ZKRECIPES_MUTATION("nobody-appears-before-a-waiter");
    return {Place::Kind::wait, std::string(nearest->name),
            (blockers == 1 || ZKRECIPES_MUTATION("no-list-after-the-wait")) && shrinking};
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
