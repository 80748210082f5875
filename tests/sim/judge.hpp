#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/fenced_register.hpp>
#include <zkrecipes/grant.hpp>

#include "sim/client_process.hpp"
#include "sim/plan.hpp"

namespace zkrecipes::sim {

/// What a holder has of a path: so many of its units. Whoever has all excludes everybody.
struct Claim {
    static constexpr int kMany = 1'000'000;  // units of a lock that any number may share

    int path = 0;
    int units = 1;
    int of = 1;
    bool ordered = true;  // its token says whether it is later than those that had all units

    static Claim alone(int path) { return {path, kMany, kMany}; }
    static Claim shared(int path) { return {path, 1, kMany}; }
    static Claim leases(int path, int units, int of) { return {path, units, of, false}; }
    bool all() const noexcept { return units == of; }
};

/// Knows true time and every holder, and says when there were more of them than may be.
class Judge {
public:
    Judge(World& world, const Plan& plan, RunResult& result) : world_(world), plan_(plan), result_(result) {}

    struct Held {
        Claim claim;
        ClientProcess* process = nullptr;
        const Grant* grant = nullptr;
        Fence fence{0};  // its token and hand-overs
        FencingToken token = 0;
        std::int64_t made = 0;           // when its nodes were, as zxid: not the token of a share that a writer takes
        std::uint64_t number = 0;        // in the order of the grants of all paths
        std::uint64_t seen_version = 0;  // of the unfenced register
        bool read = false;
        mutable bool seen_over = false;             // by whoever asked for it, at whatever time
        SimTime since = 0;                          // when its owner was told of it
        SimTime begun = 0;                          // when its session granted it
        SimTime listens_since = kForever;           // for requests to give way
        std::uint64_t first_act = 0, last_act = 0;  // in the order of all acts; 0: none
    };
    using Ticket = std::list<Held>::iterator;

    /// An acquire has just answered this grant. It stays at that address until ended().
    Ticket granted(const Claim& claim, ClientProcess& process, const Grant& grant);
    /// The holder asks held() and, if so, acts in the same instant: on a register that checks tokens and on one that
    /// does not. False: it does not hold any more.
    bool act(Ticket ticket);
    /// The holder has asked to be told of requests to give way: told if and only if there is one.
    void check_revocation(const Ticket& ticket);
    /// Its holder gives it back, or has lost it.
    void ended(Ticket ticket);

    /// At the end: whether at any time those who had acted, and were to act again, had more units than there are.
    void check_intervals();

    /// An operator has deleted nodes, or ended a session from outside as closing a second handle of it does. The holder
    /// may act beside the next one until it is told, and for the lease at most.
    void operator_acts(const Txn& committed);
    /// A client was told that its node is gone, by a heartbeat that it has asked for then, and by a server that has
    /// seen this zxid; that its session is over.
    void told_gone(const std::string& node, std::int64_t zxid, SimTime asked) {
        told_gone_[node] = {zxid, asked, world_.now()};
    }
    void told_over(SessionId session) { told_over_.insert(session); }

    /// Its owner was told of it at most that it was made, and then it was deleted, or became another's: no hold may
    /// rest on it.
    void deleted_unseen(const std::string& node) { never_seen_.insert(node); }
    /// … until its owner makes it once more.
    void made(const std::string& node);
    /// When a session last had something committed.
    std::function<SimTime(SessionId)> last_change_of;

    /// A client that is none of ours holds the lock, alone or with others, from its look at the queue until its node is
    /// gone from ZooKeeper's own history.
    void contender_granted(int path, bool shared, const std::string& node);
    void contender_ended(const std::string& node);

    void violation(const std::string& check, const std::string& text);

    // ---- calls: each one returns, once
    std::uint64_t call_begins(ClientProcess& process, std::string what);
    void call_ends(std::uint64_t call);
    std::vector<std::string> open_calls() const;

private:
    struct Lock {
        Fence last{0};  // of those that had all
        // The latest of them: in which process, and whether it has given back what it had not lost.
        const ClientProcess* process = nullptr;
        bool given_back = false;
        std::set<Fence> fences;  // of all that had all
        // Numbers of the latest grants that were held when they were given: of one that had all, and of any.
        std::uint64_t last_alone = 0;
        std::uint64_t last_believed = 0;
        // The largest that were let in by the register that checks tokens: of those that had all, and of shares.
        Fence fence{0};
        FencingToken shared_fence = 0;
        std::uint64_t version = 0;  // of the one that does not
    };
    struct Call {
        ClientProcess* process;
        std::string what;
        SimTime since;
    };
    struct Interval {
        Claim claim;
        std::uint64_t from, to;
        std::string who;
    };
    bool believes(const Held& held);
    void check_order(const Held& held, Lock& lock);
    void check_once(const Held& held, Lock& lock);
    bool lets_in(const Held& held, Lock& lock) const;
    void check_others(const Held& held);
    bool excused(const Held& held);
    void check_told(const Held& held);
    SimTime may_hold_deleted_until(const Held& held) const;
    SimTime may_hold_ended_until(const Held& held) const;
    SimTime told_by(const Held& held, SimTime time) const;
    SimTime may_begin_until(const Held& held, SimTime deleted) const;
    SimTime first_begun(const Held& held) const;
    SimTime heartbeat_interval() const;
    bool only_operators() const;
    void check_whose(const Held& held);
    bool contender_excludes(const Claim& claim) const;
    void note_write(const Effect& effect);
    std::string describe(const Held& held) const;

    World& world_;
    const Plan& plan_;
    RunResult& result_;
    std::map<int, Lock> locks_;
    std::list<Held> held_;
    struct Deletion {
        std::int64_t zxid;
        SimTime at;
        bool made_again;  // by the same transaction
    };
    // By the identity that all nodes of one attempt have in their names.
    std::map<std::string, std::vector<Deletion>, std::less<>> deleted_;
    std::map<std::int64_t, SimTime> ended_sessions_;
    struct Told {
        std::int64_t zxid;
        SimTime asked, answered;
    };
    std::map<std::string, Told, std::less<>> told_gone_;  // by the node
    std::set<SessionId> told_over_;
    std::map<std::pair<std::string, std::int64_t>, SimTime> first_begun_;  // of all holds by a node and its zxid
    std::set<std::string> never_seen_;
    struct Contending {
        int path;
        bool shared;
    };
    std::map<std::string, Contending> contenders_;  // that hold, by node
    struct Revocation {
        SimTime since = kForever;  // that the servers have agreed on; forever: something else was written over it
    };
    std::map<std::string, Revocation, std::less<>> revoked_;  // by the node's path, if it ever was
    std::vector<Interval> intervals_;
    std::uint64_t next_number_ = 1;
    std::uint64_t acts_ = 0;
    std::map<std::uint64_t, Call> calls_;
    std::uint64_t next_call_ = 1;
};

}  // namespace zkrecipes::sim
