#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "base/runtime.hpp"
#include "session/lease/hold.hpp"
#include "session/requests/watch_table.hpp"

namespace zkrecipes::internal {

/// What is held now: which nodes the next heartbeat checks, when it is due, and which nodes have been held long enough
/// to be worth a watch. Pure.
class HoldTable {
public:
    /// A shorter hold pays no watch: only the heartbeat looks after it.
    static constexpr Nanoseconds kWatchAfter = std::chrono::milliseconds(500);
    /// Heartbeats stay far below what a server takes in one request.
    static constexpr std::size_t kChunkBytes = 200'000;
    /// What a check of these nodes takes of that.
    static std::size_t check_bytes(const std::vector<std::string>& nodes);

    using HoldPtr = std::shared_ptr<Hold>;
    /// What is known of nodes, whoever holds by them.
    struct OfNodes {
        Instant checked{};               // when they were held first, then send time of their last committed check
        bool asked_to_give_way = false;  // they are not for another hold any more
    };
    struct Entry;
    /// Those who hold by the same nodes beside each other.
    struct Group {
        std::map<std::uint64_t, Entry*> holds;  // by serial
        OfNodes of_nodes;
    };
    struct Entry {
        HoldPtr hold;
        std::uint64_t serial = 0;
        boost::container::small_vector<WatchId, 1> watches;  // one for each of its nodes; 0: none
        bool wants_watch = false;                            // held long enough, or told_of_revocation
        bool told_of_revocation = false;
        bool ends_when_suspended = false;
        std::function<void()> on_loss{};  // both under the session lock
        std::function<void()> on_asked_to_give_way{};
        OfNodes of_its_nodes{};  // while nobody has joined it
        Group* group = nullptr;  // otherwise

        OfNodes& of_nodes() noexcept { return group != nullptr ? group->of_nodes : of_its_nodes; }
        const OfNodes& of_nodes() const noexcept { return group != nullptr ? group->of_nodes : of_its_nodes; }
        /// The one that stands for all on its nodes: which are checked once, and watched once.
        bool stands_for_all() const noexcept { return group == nullptr || group->holds.begin()->second == this; }
        bool has_others() const noexcept { return group != nullptr && group->holds.size() > 1; }
    };

    void add(HoldPtr hold, Instant now);
    /// `another` stands on the nodes of `hold` from now on, beside it.
    void add_beside(const Hold* hold, const HoldPtr& another, Instant now);
    /// `next` goes on with the nodes of `hold`, which has ended, and with all that is known of them. Nobody has joined
    /// it.
    void pass_on(const Hold* hold, HoldPtr next);
    std::optional<Entry> remove(const Hold* hold);
    std::vector<Entry> remove_all();
    std::vector<HoldPtr> ending_when_suspended() const;
    /// Holds that are over although they were not taken out: a reader of held() has seen the end of the lease first.
    std::vector<HoldPtr> over() const;
    /// The holds beside it that stand on the same nodes.
    std::vector<HoldPtr> on_the_same_nodes(const Hold* hold);
    /// That of its successor, if it has one.
    Entry* find(const Hold* hold);
    /// The same, or that of one who stands on its nodes still.
    Entry* find_on_nodes_of(const Hold* hold);
    template <class Look>
    void each(Look look) const {
        for (const auto& [key, entry] : entries_) look(*entry.hold);
    }
    bool empty() const noexcept { return entries_.empty(); }
    std::size_t size() const noexcept { return entries_.size(); }

    // ---- watches on the own nodes
    Instant watch_due_at() const noexcept { return young_.empty() ? Instant::max() : young_.front().due; }
    /// Holds whose time for a watch has come. One for all who hold by the same nodes.
    std::vector<HoldPtr> take_due_for_watch(Instant now);
    /// Holds of which a node should be watched and is not: the watch could not be set while no server answered.
    std::vector<HoldPtr> unwatched() const;

    // ---- heartbeat
    /// When the next heartbeat is due; Instant::max() while nothing is held.
    Instant heartbeat_due(Instant last_commit, Nanoseconds interval) const;
    /// A hold for each set of nodes, in groups of which each fits one request.
    std::vector<std::vector<HoldPtr>> begin_round(Instant now);
    void checked(const std::vector<HoldPtr>& group, Instant sent_at);
    /// What is left to be checked of a group in which a node of the hold at `failed` turned out to be gone. More may be
    /// gone: a large rest is halved, so that many lost nodes do not cost as many large requests.
    std::vector<std::vector<HoldPtr>> rest_of(const std::vector<HoldPtr>& group, std::size_t failed);

private:
    template <class Chosen>
    std::vector<HoldPtr> in_order(Chosen chosen) const;  // in which they began

    struct Young {
        Instant due;
        const Hold* hold;
        std::uint64_t serial;
    };
    Entry* find_exactly(const Hold* hold);

    std::unordered_map<const Hold*, Entry> entries_;
    std::unordered_map<const Hold*, Group> groups_;  // by Hold::first()
    std::deque<Young> young_;
    std::uint64_t last_serial_ = 0;
    Instant last_round_ = Instant::min();
};

}  // namespace zkrecipes::internal
