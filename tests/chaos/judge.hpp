#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chaos/stamp.hpp"

namespace zkrecipes::chaos {

/// Whom a hold excludes: everybody; whoever wants the lock alone; nobody, as long as there are leases.
enum class HoldMode { exclusive, shared, lease };

/// What one client believed of one hold, as it stamped it.
struct Hold {
    int actor = 0;                        // which process
    int lock = 0;                         // which lock; holds of different locks never conflict
    HoldMode mode = HoldMode::exclusive;  // judge() knows no other: round_judge.hpp does
    std::int64_t token = 0;               // czxid of the lock node
    std::int64_t handovers = 0;           // of that node in its process, before this hold
    std::string node;                     // last component of its path; empty: unknown
    std::int64_t session = 0;             // that the node belongs to; 0: unknown
    Stamp granted_at = 0;                 // right after the grant was returned
    Stamp last_true_at = 0;               // read right *before* the last held() that answered true
    Stamp first_false_at = 0;             // read right *after* the first held() that answered false
    Stamp lost_at = 0;                    // lost() fired
    Stamp released_at = 0;                // right before release(); the owner has finished then
    Stamp stopped_at = 0;                 // the process stopped itself (SIGSTOP) …
    Stamp resumed_at = 0;                 // … and this is its first instruction afterwards
    bool held_after_resume = false;       // what held() answered then
    int revivals = 0;                     // held() answered true after it had answered false
    std::int64_t writes = 0;              // to the unfenced counter, acknowledged
    Stamp last_write_at = 0;              // read right before the held() that allowed the write
    std::int64_t fenced = 0;              // increments that the fenced register acknowledged …
    std::int64_t refused = 0;             // … and that it refused
};

/// What an outsider with a session of its own saw of one lock node.
struct Sighting {
    int lock = 0;
    std::string node;
    Stamp first_seen_at = 0;
    Stamp gone_at = 0;  // 0: still there when the observation ended
    bool was_head = false;
};

struct Counter {
    int lock = 0;
    std::int64_t value = 0;  // what is in the unfenced counter at the end
};

struct History {
    std::vector<Hold> holds;
    std::vector<Sighting> sightings;  // may be empty: then the outsider says nothing
    std::vector<Counter> counters;
};

enum class Violation {
    overlap,         // held() answered true after another client had been granted the lock
    outlived_node,   // held() answered true after an outsider had seen the lock node disappear
    late_false,      // not stopped, and held() was still not seen false when another client was granted the lock
    late_lost,       // lost() had not fired when another client was granted the lock; or too late after a resume
    held_on_resume,  // the first held() after SIGCONT answered true although another client had been granted the lock
    revived,         // held() answered true again
    stale_write,     // a write was allowed after another client had been granted the lock
    lost_update,     // the unfenced counter is not the number of acknowledged writes
    token_order,     // a later grant has no larger token, nor a larger number of hand-overs of the same node
    not_first        // granted while an outsider went on seeing a node in front of it
};
const char* to_string(Violation violation) noexcept;

struct Finding {
    Violation violation{};
    int lock = 0;
    std::string text;
};

struct JudgeOptions {
    /// An outsider's server may lag: a node in front may still be seen for so long after the next one was granted.
    Stamp observer_lag = from_ms(3000);
    /// lost() is to fire this soon after a stopped process was resumed.
    Stamp lost_after_resume = from_ms(3000);
    /// A holder that did not run for so long around the moment of the next grant (starved of the processor, not stopped
    /// by us) proves nothing about lateness, either way.
    Stamp starved_gap = from_ms(100);
};

struct Verdict {
    std::vector<Finding> findings;
    std::map<Violation, int> counts;
    /// Holds that ended without their owner's doing and were followed by another grant: the ones that were tried.
    int tried = 0;
    /// Of these, the ones whose owner was starved when it mattered: excluded from late_false and late_lost only.
    int unproven = 0;
    /// For each hold tried (unless stopped or unproven): from the last of "held() false" and "lost() fired" to the next
    /// grant.
    std::vector<Stamp> margins;
    /// For each stopped hold: from the first instruction after SIGCONT to lost().
    std::vector<Stamp> lost_after_resume;

    bool clean() const noexcept { return findings.empty(); }
    int count(Violation violation) const {
        const auto found = counts.find(violation);
        return found == counts.end() ? 0 : found->second;
    }
};

/// Judges a recorded history; pure. A hold's own word is used only against it: what it claims as its belief is set
/// against the grants of others and against what the outsider saw.
Verdict judge(const History& history, const JudgeOptions& options = {});

/// Whether the fencing token of `former`, or the number of its hand-over, is smaller.
bool is_fenced(const Hold& former, const Hold& next) noexcept;

/// The sequence number at the end of a lock node's name; -1: none.
std::int64_t sequence_of(const std::string& node) noexcept;

}  // namespace zkrecipes::chaos
