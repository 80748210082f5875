#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/lock_options.hpp>

namespace zkrecipes::internal {

/// The position of a contender in the queue, inferred from one list of the lock directory.
struct QueuePosition {
    enum class Kind {
        held,    // nobody blocks it
        wait,    // wait until `predecessor` is gone, then list again
        missing  // its own node is not listed
    };
    Kind kind = Kind::missing;
    std::string predecessor;  // name of the one node to watch
    /// Nobody else blocks it, and nobody can come to block it later: it holds as soon as the predecessor is gone,
    /// without another list.
    bool only_predecessor = false;
    /// Whoever is before the predecessor. Empty: nobody, or a node may appear before it.
    std::string second{};
    std::size_t in_front = 0;  // how many block it
};

/// The rule of a recipe: which contender waits for which. Pure; shared by all calls of one recipe object.
class QueueRule {
public:
    virtual ~QueueRule() = default;
    /// `me`: name of the own node.
    virtual QueuePosition position(std::span<const std::string> children, std::string_view me) const = 0;
    /// Whether a node made now would hold at once.
    virtual bool would_hold(std::span<const std::string> children) const = 0;
};

/// Waits for the nearest earlier contender of those kinds that block it: any kind for a mutex or a writer, the writers
/// for a reader.
class PredecessorRule final : public QueueRule {
public:
    enum class Shrinking {
        yes,  // earlier contenders only become fewer
        no    // a node may appear before a waiter (a writer's downgrade makes one), so list again after each wait
    };
    struct Kind {
        std::string pattern;  // the text before the sequence, for example "lock-"
        bool blocks = true;
        Shrinking shrinking = Shrinking::yes;  // while one of these is the nearest predecessor
    };
    using Kinds = std::vector<Kind>;
    explicit PredecessorRule(Kinds kinds, Shrinking shrinking = Shrinking::yes);

    QueuePosition position(std::span<const std::string> children, std::string_view me) const override;
    bool would_hold(std::span<const std::string> children) const override;

private:
    std::vector<std::string> patterns_;
    std::vector<bool> blocks_;
    std::vector<Shrinking> after_;  // by kind
    Shrinking shrinking_;
};

// The nodes of a mutex, of a read-write lock and of an election in one directory form one queue: all of them exclude
// each other.
/// For a mutex, a writer and a candidate: all earlier contenders block it.
std::shared_ptr<const QueueRule> rule_exclusive(Dialect dialect = Dialect::curator);
/// For a reader: earlier exclusive contenders block it.
std::shared_ptr<const QueueRule> rule_shared(Dialect dialect = Dialect::curator);

}  // namespace zkrecipes::internal
