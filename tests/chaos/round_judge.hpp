#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "chaos/judge.hpp"
#include "chaos/plan.hpp"

namespace zkrecipes::chaos {

/// Somebody took a lock away by force at `at`: an operator who deleted its node, or who ended the session of an actor.
/// The library learns of it as soon as it can, but promises no exclusion in between; it does promise the fence.
struct Excuse {
    int lock = -1;     // of the node; -1: all locks of the actor
    std::string node;  // last component
    int actor = -1;    // whose session was ended, then
    Stamp at = 0;
    std::int64_t session = 0;  // that was ended; 0: unknown
    bool surely = true;        // the servers said so; otherwise it may have happened or not
    Stamp sure_at = 0;         // since when it surely had, if later: without a quorum that takes a while
};

/// What is known after a round: what everybody believed, what the registers contain, and what was done on purpose.
struct RoundRecord {
    std::vector<Hold> holds;
    std::map<int, std::int64_t> counters;  // the unfenced ones, by lock
    struct Account {
        std::int64_t value = 0;
        std::map<std::int64_t, std::int64_t> accepted;  // increments by token
    };
    std::map<int, Account> fenced;  // by lock
    std::vector<Excuse> excuses;
    std::set<int> killed;      // actors that were killed, at any time
    std::set<int> commands;    // actors that are commands of zklock: they end by being killed
    Stamp longest_belief = 0;  // after an excuse: the session timeout, and what scheduling takes
};

struct RoundVerdict {
    std::vector<Finding> findings;  // with the lock that they are about
    struct Lock {
        int grants = 0;  // holds: a grant of several leases is several
        int lost = 0;    // ended without their owner's doing, or with its owner
        int unproven = 0;
        std::int64_t plain = 0;  // increments of the unfenced counter
        bool plain_judged = true;
        std::int64_t fenced = 0;   // acknowledged by the register
        std::int64_t refused = 0;  // … or refused
        int overlaps = 0;
        std::int64_t lost_updates = 0;  // acknowledged by the register and not in it
    };
    std::map<int, Lock> locks;

    bool clean() const noexcept { return findings.empty(); }
};

/// Judges one round; pure. Locks that are held alone go to judge(); shares and leases are judged here.
RoundVerdict judge_round(const RoundRecord& record);

}  // namespace zkrecipes::chaos
