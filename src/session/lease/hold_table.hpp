#pragma once

#include <cstdint>
#include <deque>
#include <functional>
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
    struct Entry {
        HoldPtr hold;
        Instant checked;  // when it began, then send time of the last committed check of its nodes
        std::uint64_t serial = 0;
        boost::container::small_vector<WatchId, 1> watches;  // one for each of its nodes; 0: none
        bool wants_watch = false;                            // held long enough, or told_of_revocation
        bool told_of_revocation = false;
        bool asked_to_give_way = false;  // the nodes are not for another hold any more
        bool ends_when_suspended = false;
        bool shared = false;              // others may hold by the same nodes
        std::function<void()> on_loss{};  // both under the session lock
        std::function<void()> on_asked_to_give_way{};
    };

    void add(HoldPtr hold, Instant now);
    /// `next` goes on with the nodes of `hold`, which has ended, and with all that is known of them.
    void pass_on(const Hold* hold, HoldPtr next);
    std::optional<Entry> remove(const Hold* hold);
    std::vector<Entry> remove_all();
    std::vector<HoldPtr> ending_when_suspended() const;
    /// Holds that are over although they were not taken out: a reader of held() has seen the end of the lease first.
    std::vector<HoldPtr> over() const;
    /// The holds beside it that stand on the same nodes.
    std::vector<HoldPtr> on_the_same_nodes(const Hold* hold);
    /// `another`, which was added, stands on the nodes of `hold`, beside it.
    void share_nodes(const Hold* hold, const Hold* another);
    /// That of its successor, if it has one.
    Entry* find(const Hold* hold);
    template <class Look>
    void each(Look look) const {
        for (const auto& [key, entry] : entries_) look(*entry.hold);
    }
    bool empty() const noexcept { return entries_.empty(); }
    std::size_t size() const noexcept { return entries_.size(); }

    // ---- watches on the own nodes
    Instant watch_due_at() const noexcept { return young_.empty() ? Instant::max() : young_.front().due; }
    /// Holds whose time for a watch has come.
    std::vector<HoldPtr> take_due_for_watch(Instant now);
    /// Holds of which a node should be watched and is not: the watch could not be set while no server answered.
    std::vector<HoldPtr> unwatched() const;

    // ---- heartbeat
    /// When the next heartbeat is due; Instant::max() while nothing is held.
    Instant heartbeat_due(Instant last_commit, Nanoseconds interval) const;
    /// All holds, in groups of which each fits one request.
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
    std::deque<Young> young_;
    std::uint64_t last_serial_ = 0;
    Instant last_round_ = Instant::min();
};

}  // namespace zkrecipes::internal
