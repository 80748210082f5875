#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "chaos/cluster.hpp"
#include "chaos/judge.hpp"

namespace zkrecipes::chaos {

/// What happens to a holder, or to the server that it is connected to.
enum class Fault {
    black_hole,            // the holder's network
    follower_cut_off,      // its follower, from its peers, while it goes on answering the holder
    leader_frozen,         // the holder is connected to the leader
    leader_frozen_behind,  // the holder is connected to a follower
    server_frozen,         // the holder's follower
    holder_stopped         // the holding process, by SIGSTOP
};
inline constexpr Fault kFaults[] = {Fault::black_hole,    Fault::leader_frozen,  Fault::leader_frozen_behind,
                                    Fault::server_frozen, Fault::holder_stopped, Fault::follower_cut_off};
inline Cluster::Links links_for(Fault fault) {
    return fault == Fault::follower_cut_off ? Cluster::Links::gated : Cluster::Links::plain;
}
const char* to_string(Fault fault) noexcept;

/// Whose rule decides how long a holder believes.
enum class Rule {
    library,
    last_answer,  // control: last answer to a read + full session timeout
    suspended,    // control: until the C client says that it is disconnected
    two_thirds    // control: last committed write + two thirds of the timeout, whatever went before that write
};
const char* to_string(Rule rule) noexcept;

/// When the fault comes in the life of a hold.
enum class Moment {
    settled,        // at a random time between heartbeats, after at least a second
    first_instant,  // right after the grant, which an idle client had asked for
    /// Right after the grant to a client that had been stopped before, not long enough to lose its connection: of all,
    /// the leader has least cause to believe that the session lives.
    after_pause
};
const char* to_string(Moment moment) noexcept;

struct FaultOptions {
    Fault fault{};
    /// While the leader is frozen nobody can queue up, so for faults of the leader it is always `settled`.
    Moment moment = Moment::settled;
    std::chrono::milliseconds timeout{4000};
    int holds = 10;                          // for each rule; all of them meet one fault
    std::vector<Rule> rules{Rule::library};  // of holders that meet the same fault
    /// The fault ends before the servers could do anything about it, where there is a difference: the leader thaws
    /// before its followers give it up, the follower is joined before it notices.
    bool brief = false;
};

struct FaultResult {
    struct ForRule {
        Rule rule{};
        Verdict verdict;
        std::vector<Stamp> believed;  // from the fault to the end of belief, for each hold that ended
        std::vector<Stamp> granted;   // from the fault to the next grant
        std::int64_t writes = 0;
    };
    std::vector<ForRule> rules;
};

/// Lets one fault meet many holds and judges what came of it. Throws std::runtime_error when the trial itself could not
/// be carried out (nobody was granted, an actor ended early …).
FaultResult run_fault(Cluster& cluster, const FaultOptions& options, std::mt19937_64& random);

}  // namespace zkrecipes::chaos
