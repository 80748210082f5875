#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "session/lease/hold.hpp"
#include "session/lease/hold_table.hpp"
#include "session/lease/lease_clock.hpp"
#include "session/requests/node_deletion.hpp"
#include "session/requests/requests.hpp"
#include "session/requests/watches.hpp"
#include "session/stats/session_meter.hpp"

namespace zkrecipes::internal {

/// Keeps the lease of a session and all that is held under it: heartbeats while something is held, a watch on each node
/// that is held for long, and the word to the owner when a hold is lost. All with the lock held.
///
/// lease_keeper.cpp: the lease, holds and their loss. heartbeat.cpp: checks and watches of the nodes that are held.
class LeaseKeeper {
public:
    LeaseKeeper(SessionLock& lock, Connection& connection, Requests& requests, Watches& watches, NodeDeletion& deletion,
                SessionMeter& meter);

    /// A write that checked or created the own node was committed; it was sent at `sent_at`.
    void lease_committed(Instant sent_at);
    /// From now on the nodes, made by one transaction, are held together under the lease. Null when the lease is not
    /// fresh: call renew_lease first.
    std::shared_ptr<Hold> begin_hold(std::vector<std::string> nodes, std::int64_t czxid);
    std::shared_ptr<Hold> begin_hold(std::string node, std::int64_t czxid);
    /// Ends it: no lost() any more; the nodes are deleted. `gone` runs under the session lock when all of them are
    /// gone for sure (true), or the session ended without our knowing (false). Harmless on a hold of a former
    /// incarnation.
    void end_hold(const std::shared_ptr<Hold>& hold, std::function<void(bool)> gone = {});
    /// Ends it, and begins a hold on the same nodes for somebody else in this process. What is known of the nodes goes
    /// on with it: watches, when they were last checked, checks that are open. Null: it is not held any more, its lease
    /// is not fresh, no check of its nodes was committed for two intervals, it is bound to its owner, or it was asked
    /// to give way. Then it may have ended, and end_hold is to follow.
    std::shared_ptr<Hold> pass_on(const std::shared_ptr<Hold>& hold);
    /// Whether pass_on and join would do so now.
    bool may_go_on(const Hold& hold) { return sure_entry(hold) != nullptr; }
    /// Begins one more hold on the same nodes, and leaves the first as it is. Null: as above.
    std::shared_ptr<Hold> join(const std::shared_ptr<Hold>& hold);
    /// Its limit has passed: it is lost, and those who hold by the same nodes go on. True: there are such, and the
    /// nodes must stay.
    bool limit_passed(const std::shared_ptr<Hold>& hold);
    /// Ends a hold on nodes that others hold by, too: they are not deleted.
    void leave_node(const std::shared_ptr<Hold>& hold);
    /// Runs `told` once under the session lock, soon after the hold was lost; not after it was given back or passed on.
    void on_loss(const std::shared_ptr<Hold>& hold, std::function<void()> told);
    /// Runs `told` under the session lock when a client is seen to ask for the node from now on; not after the hold was
    /// passed on.
    void on_asked_to_give_way(const std::shared_ptr<Hold>& hold, std::function<void()> told);
    /// `watch` on the node of this hold tells the session from now on. The hold has one node, and no watch yet.
    void take_watch(const std::shared_ptr<Hold>& hold, WatchId watch);
    /// The hold is lost, if it is not over: something has proved that its node is gone.
    void node_is_gone(const std::shared_ptr<Hold>& hold) {
        lose(hold.get(), LossReason::node_gone, "its node is gone");
    }
    /// The contender with this own node is next, and holds on an event if the lease is fresh then: so heartbeats are
    /// sent as if it held, until no_longer_next. `refused` runs under the session lock when the check of this node was
    /// refused, for example because it is gone; then it is not next any more.
    void is_next(const std::string& node, std::function<void(Rc)> refused);
    void no_longer_next(const std::string& node);
    /// The hold is lost as soon as no server answers, not only when the lease ends.
    void lose_when_suspended(const Hold& hold);
    /// From now on Hold::revocation() tells when a client has written kRevocationRequest into one of its nodes, also if
    /// that was before. Costs one read for each node, which no call waits for.
    void watch_revocation(const std::shared_ptr<Hold>& hold);

    // ---- for the other parts of the session ------------------------------------------------------------------------
    const LeaseClock& lease_clock() const { return clock_; }
    const HoldTable& hold_table() const { return holds_; }
    std::int64_t lease_ends_at_ns() const noexcept { return view_->ends_at_ns.load(std::memory_order_relaxed); }
    void on_touch(Instant sent_at, Instant now, bool overtook) { clock_.answered(sent_at, now, overtook); }
    /// The connect request went out at `since` or later.
    void on_connected(Instant since, Instant now);
    /// A server has told a longer tick than the lease assumes. See LeaseClock::learned.
    void assume_tick(std::chrono::milliseconds tick);
    /// Requests may be sent now. To be the first of them: little may be left of the lease, and what follows may be
    /// much.
    void check_all(Instant now);
    void on_suspended();
    /// Its holds were lost before.
    void on_session_over();
    /// No hold is sure any more. Cannot fail.
    void end_lease() noexcept { view_->ends_at_ns.store(0, std::memory_order_release); }
    void stop_heartbeat() noexcept { heartbeat_at_ = Instant::max(); }
    void lose_all(LossReason reason, const char* why);
    void tell_of_losses();
    /// A read that was not done (not connected, throttled) has left no watch. The check notices a deletion, but not a
    /// revocation.
    void watch_unwatched();
    Instant wake_at() const;
    /// First of all that is done at that time: nothing else may find a hold that is over.
    void end_what_has_passed(Instant now);
    void on_time(Instant now);

private:
    using HoldPtr = HoldTable::HoldPtr;
    static constexpr const char* kNoHeartbeat = "no committed heartbeat within the lease";

    HoldTable::Entry* sure_entry(const Hold& hold);
    void released(Hold& hold);
    void leave_watches(HoldTable::Entry& from);
    Instant hold_ends_at() const;
    Instant touch_due_at() const;
    void lose(const Hold* hold, LossReason reason, const char* why);
    void lose_those_seen_to_end();
    void report_lost(const std::vector<HoldTable::Entry>& lost, LossReason reason, const char* why);

    // heartbeat.cpp
    bool has_to_beat() const noexcept { return !holds_.empty() || !next_.empty(); }
    void plan_heartbeat();
    void start_heartbeat(Instant now);
    /// One request.
    struct Check {
        std::vector<HoldPtr> holds;
        std::vector<std::string> next;  // nodes of those who are next
    };
    std::vector<Check> checks_of_round(Instant now);
    void send_check(Check check);
    void on_checked(Check& check, Rc rc, const std::vector<MultiResult>& results, Instant sent_at);
    static bool concerns_holds(const Check& check, std::size_t node);
    void on_refused(Check& check, std::size_t node, Rc rc);
    void tell_next(const std::string& node, Rc rc);
    void lose_nodes_of(const Hold& hold);
    void watch_own_nodes(const HoldPtr& hold);
    void watch_own_node(const HoldPtr& hold, std::size_t index);
    WatchListener listener_of_own_node(const HoldPtr& hold, std::size_t index);
    void tell_of_revocation(const HoldPtr& hold);

    SessionLock& lock_;
    Connection& connection_;
    Requests& requests_;
    Watches& watches_;
    NodeDeletion& deletion_;
    SessionMeter& meter_;
    LeaseClock clock_;
    std::shared_ptr<LeaseView> view_ = std::make_shared<LeaseView>();
    HoldTable holds_;
    std::vector<HoldPtr> untold_;                          // lost, and their owners are not told yet
    std::map<std::string, std::function<void(Rc)>> next_;  // nodes of those who may hold on an event; tells them
    Instant heartbeat_at_ = Instant::max();
    std::uint64_t heartbeat_round_ = 0;
    int checks_open_ = 0;
    std::uint64_t check_refusals_ = 0;
};

}  // namespace zkrecipes::internal
