#include "chaos/round_judge.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::chaos {

namespace {

std::string describe_hold(const Hold& hold) {
    return "actor " + std::to_string(hold.actor) + " token " + std::to_string(hold.token);
}

class RoundBench {
public:
    explicit RoundBench(const RoundRecord& record) : record_(record) {}

    RoundVerdict judge() {
        std::map<int, std::vector<Hold>> by_lock;
        for (const auto& hold : record_.holds) {
            if (hold.granted_at != 0) by_lock[hold.lock].push_back(hold);
        }
        for (auto& [lock, holds] : by_lock) {
            count(lock, holds);
            check_fence(lock, holds);
            // Before they are excused: what an excused hold wrote is in the counter, too.
            const bool plain = check_excuses(holds);
            verdict_.locks[lock].plain_judged = plain;
            if (plain) check_counter(lock, holds);
            // What began after that on the same node: its owner could not know yet.
            std::erase_if(holds, [](const Hold& hold) { return hold.granted_at == 0; });
            std::sort(holds.begin(), holds.end(),
                      [](const Hold& a, const Hold& b) { return a.granted_at < b.granted_at; });
            kind_of(lock) == LockKind::one ? check_alone(lock, holds) : check_together(lock, holds);
        }
        return std::move(verdict_);
    }

private:
    void find(Violation violation, int lock, std::string text) {
        if (violation == Violation::overlap) ++verdict_.locks[lock].overlaps;
        verdict_.findings.push_back({violation, lock, std::move(text)});
    }

    void count(int lock, const std::vector<Hold>& holds) {
        auto& row = verdict_.locks[lock];
        for (const auto& hold : holds) {
            ++row.grants;
            row.plain += hold.writes;
            row.fenced += hold.fenced;
            row.refused += hold.refused;
            row.lost += hold.first_false_at != 0 || hold.lost_at != 0 || hold.released_at == 0 ? 1 : 0;
        }
    }

    // Each acknowledged increment is one that the register accepted, and the counter is their number: no later writer
    // began from what it was before one of them.
    void check_fence(int lock, const std::vector<Hold>& holds) {
        std::map<std::int64_t, std::int64_t> acknowledged;
        for (const auto& hold : holds) acknowledged[hold.token] += hold.fenced;
        const auto found = record_.fenced.find(lock);
        const RoundRecord::Account account = found == record_.fenced.end() ? RoundRecord::Account{} : found->second;
        std::int64_t all = 0;
        for (const auto& [token, number] : account.accepted) all += number;
        std::int64_t missing = std::max<std::int64_t>(0, all - account.value);
        for (const auto& [token, number] : acknowledged) {
            const auto accepted = account.accepted.find(token);
            missing += std::max<std::int64_t>(0, number - (accepted == account.accepted.end() ? 0 : accepted->second));
        }
        verdict_.locks[lock].lost_updates = missing;
        if (missing != 0 || account.value != all) {
            find(Violation::lost_update, lock,
                 "the fenced register is " + std::to_string(account.value) + " after " + std::to_string(all) +
                     " increments that it accepted; " + std::to_string(missing) + " are lost");
        }
    }

    /// Cuts the beliefs off where somebody took the lock away. False: one of them wrote after that, so that the
    /// unfenced counter proves nothing.
    bool check_excuses(std::vector<Hold>& holds) {
        bool plain = true;
        for (auto& hold : holds) {
            for (const auto& excuse : record_.excuses) {
                if (!is_about(excuse, hold)) continue;
                const Stamp at = std::max(excuse.at, hold.granted_at);
                const Stamp surely_at = std::max(excuse.at, excuse.sure_at);
                const bool too_long = hold.last_true_at > surely_at + record_.longest_belief;
                if (too_long && is_surely_about(excuse, hold) && record_.longest_belief != 0) {
                    find(Violation::outlived_node, hold.lock,
                         describe_hold(hold) + " believed for " + std::to_string(to_ms(hold.last_true_at - surely_at)) +
                             " ms after it was taken from it by force");
                }
                plain = plain && hold.last_write_at <= at;
                end_at(hold, at);
                if (hold.granted_at > excuse.at && knows(excuse, hold)) hold.granted_at = 0;
            }
            // The dead say nothing any more, also not when they ended.
            const bool dead = record_.killed.count(hold.actor) + record_.commands.count(hold.actor) != 0;
            if (dead && hold.released_at == 0) hold.released_at = hold.last_true_at;
        }
        return plain;
    }

    static bool is_about(const Excuse& excuse, const Hold& hold) {
        if (!was_held_at(hold, excuse.at)) return false;
        if (excuse.lock >= 0) return hold.lock == excuse.lock && hold.node == excuse.node;
        if (hold.actor != excuse.actor) return false;
        if (hold.session != 0 && excuse.session != 0) return hold.session == excuse.session;
        return hold.granted_at <= excuse.at + kReach;
    }
    /// As far as its owner knew. The last look that found it held may have been a moment earlier.
    static bool was_held_at(const Hold& hold, Stamp at) {
        if (hold.last_true_at > at) return true;
        Stamp over = 0;
        for (const Stamp end : {hold.first_false_at, hold.lost_at, hold.released_at}) {
            if (end != 0 && (over == 0 || end < over)) over = end;
        }
        return over > at;
    }
    // A hold that was noticed right after its session was ended may still be one of that session, or already one of the
    // next: where sessions are unknown (a command of zklock) it is excused, and not accused.
    static constexpr Stamp kReach = from_ms(1000);

    static bool knows(const Excuse& excuse, const Hold& hold) {
        return excuse.lock >= 0 || (hold.session != 0 && excuse.session != 0);
    }
    static bool is_surely_about(const Excuse& excuse, const Hold& hold) {
        return excuse.surely && (knows(excuse, hold) || hold.granted_at <= excuse.at);
    }

    static void end_at(Hold& hold, Stamp at) {
        hold.last_true_at = std::min(hold.last_true_at, at);
        hold.last_write_at = std::min(hold.last_write_at, at);
        hold.released_at = at;
        hold.first_false_at = hold.lost_at = hold.stopped_at = hold.resumed_at = 0;
        hold.held_after_resume = false;
    }

    // Those who were killed may have written what they could not count any more.
    void check_counter(int lock, const std::vector<Hold>& holds) {
        std::int64_t written = 0;
        std::int64_t uncertain = 0;
        for (const auto& hold : holds) {
            written += hold.writes;
            const bool killed = record_.killed.count(hold.actor) + record_.commands.count(hold.actor) != 0;
            uncertain += killed && hold.mode == HoldMode::exclusive && hold.writes == 0 ? 1 : 0;
        }
        const auto found = record_.counters.find(lock);
        const std::int64_t value = found == record_.counters.end() ? 0 : found->second;
        if (value < written || value > written + uncertain) {
            find(Violation::lost_update, lock,
                 "the unfenced counter is " + std::to_string(value) + " after " + std::to_string(written) +
                     " acknowledged increments");
        }
    }

    void check_alone(int lock, const std::vector<Hold>& holds) {
        History history;
        history.holds = holds;
        const auto verdict = chaos::judge(history);
        verdict_.locks[lock].unproven += verdict.unproven;
        for (const auto& finding : verdict.findings) find(finding.violation, lock, finding.text);
    }

    void check_together(int lock, const std::vector<Hold>& holds) {
        for (const auto& hold : holds) {
            if (hold.revivals != 0) find(Violation::revived, hold.lock, describe_hold(hold) + " came back");
        }
        kind_of(lock) == LockKind::leases ? check_leases(lock, holds) : check_shares(lock, holds);
    }

    void check_shares(int lock, const std::vector<Hold>& holds) {
        for (std::size_t next = 0; next < holds.size(); ++next) {
            for (std::size_t former = 0; former < next; ++former) check_pair(lock, holds[former], holds[next]);
        }
    }

    void check_pair(int lock, const Hold& former, const Hold& next) {
        if (former.mode == HoldMode::shared && next.mode == HoldMode::shared) return;
        const std::string who = describe_hold(former) + " and " + describe_hold(next);
        if (former.last_true_at > next.granted_at) {
            find(
                Violation::overlap, lock,
                who + " believed together for " + std::to_string(to_ms(former.last_true_at - next.granted_at)) + " ms");
        }
        if (former.last_write_at > next.granted_at)
            find(Violation::stale_write, lock, who + ": the former wrote after the grant to the latter");
        if (!is_fenced(former, next)) find(Violation::token_order, lock, who + " were granted in this order");
    }

    void check_leases(int lock, const std::vector<Hold>& holds) {
        std::vector<std::pair<Stamp, int>> events;  // at one moment the ends come first
        for (const auto& hold : holds) {
            events.emplace_back(hold.granted_at, 1);
            events.emplace_back(std::max(hold.last_true_at, hold.granted_at), -1);
        }
        std::sort(events.begin(), events.end());
        int taken = 0;
        for (const auto& [at, change] : events) {
            taken += change;
            if (change > 0 && taken > kLeases) {
                find(Violation::overlap, lock,
                     std::to_string(taken) + " leases at " + std::to_string(at) + " where there are " +
                         std::to_string(kLeases));
            }
        }
    }

    const RoundRecord& record_;
    RoundVerdict verdict_;
};

}  // namespace

RoundVerdict judge_round(const RoundRecord& record) { return RoundBench(record).judge(); }

}  // namespace zkrecipes::chaos
