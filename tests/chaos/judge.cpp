#include "chaos/judge.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace zkrecipes::chaos {

namespace {

/// Between an instruction of a process and the callback of another thread of it.
constexpr Stamp kAtOnce = from_ms(400);

std::string describe(const Hold& hold) {
    return "actor " + std::to_string(hold.actor) + " token " + std::to_string(hold.token);
}

std::string ms(Stamp nanoseconds) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.3f ms", to_ms(nanoseconds));
    return text;
}

class Bench {
public:
    Bench(const History& history, const JudgeOptions& options) : options_(options) {
        for (const auto& hold : history.holds) {
            if (hold.granted_at != 0) holds_[hold.lock].push_back(&hold);
        }
        for (auto& [lock, holds] : holds_) {
            std::sort(holds.begin(), holds.end(),
                      [](const Hold* a, const Hold* b) { return a->granted_at < b->granted_at; });
        }
        for (const auto& sighting : history.sightings) sightings_[sighting.lock].push_back(&sighting);
        for (const auto& counter : history.counters) counters_.push_back(&counter);
    }

    Verdict judge() {
        for (const auto& [lock, holds] : holds_) {
            for (std::size_t next = 0; next < holds.size(); ++next) {
                for (std::size_t former = 0; former < next; ++former) judge_pair(*holds[former], *holds[next]);
                judge_queue(*holds[next]);
            }
            for (std::size_t i = 0; i < holds.size(); ++i) {
                judge_alone(*holds[i]);
                if (i + 1 < holds.size()) judge_end(*holds[i], *holds[i + 1]);
            }
        }
        for (const auto* counter : counters_) judge_counter(*counter);
        return std::move(verdict_);
    }

private:
    void find(Violation violation, int lock, std::string text) {
        ++verdict_.counts[violation];
        verdict_.findings.push_back({violation, lock, std::move(text)});
    }

    static bool stopped_over(const Hold& hold, Stamp instant) {
        return hold.stopped_at != 0 && hold.stopped_at <= instant &&
               (hold.resumed_at == 0 || instant <= hold.resumed_at);
    }

    void judge_pair(const Hold& former, const Hold& next) {
        if (former.last_true_at > next.granted_at) {
            find(Violation::overlap, next.lock,
                 describe(former) + " believed for " + ms(former.last_true_at - next.granted_at) + " after " +
                     describe(next) + " was granted");
        }
        if (former.last_write_at > next.granted_at) {
            find(Violation::stale_write, next.lock,
                 describe(former) + " wrote " + ms(former.last_write_at - next.granted_at) + " after " +
                     describe(next) + " was granted");
        }
        if (!is_fenced(former, next)) {
            find(Violation::token_order, next.lock, describe(next) + " was granted after " + describe(former));
        }
    }

    // How the hold ended, seen against the very next grant.
    void judge_end(const Hold& hold, const Hold& next) {
        const bool ended_by_owner = hold.released_at != 0 && hold.first_false_at == 0 && hold.lost_at == 0;
        if (ended_by_owner) return;
        ++verdict_.tried;
        // Resumed just before the grant, and it knows: only its callback is on its way.
        const bool just_resumed = hold.resumed_at != 0 && !hold.held_after_resume &&
                                  hold.resumed_at <= next.granted_at && next.granted_at - hold.resumed_at <= kAtOnce;
        if (stopped_over(hold, next.granted_at) || just_resumed) {
            judge_resume(hold);
            return;
        }
        // Whoever gave it back in time owed nobody a loss.
        const Stamp released = hold.released_at != 0 && hold.released_at <= next.granted_at ? hold.released_at : 0;
        const bool false_in_time =
            released != 0 || (hold.first_false_at != 0 && hold.first_false_at <= next.granted_at);
        const bool lost_in_time = released != 0 || (hold.lost_at != 0 && hold.lost_at <= next.granted_at);
        if (false_in_time && lost_in_time) {
            if (released == 0)
                verdict_.margins.push_back(next.granted_at - std::max(hold.first_false_at, hold.lost_at));
            return;
        }
        const bool starved = hold.last_true_at <= next.granted_at && hold.first_false_at > next.granted_at &&
                             hold.first_false_at - hold.last_true_at > options_.starved_gap;
        if (starved) {
            ++verdict_.unproven;
            return;
        }
        if (!false_in_time) {
            find(Violation::late_false, hold.lock,
                 describe(hold) + ": held() not seen false when " + describe(next) + " was granted" +
                     (hold.first_false_at == 0 ? ", nor later"
                                               : ", " + ms(hold.first_false_at - next.granted_at) + " late"));
        }
        if (!lost_in_time) {
            find(Violation::late_lost, hold.lock,
                 describe(hold) + ": lost() had not fired when " + describe(next) + " was granted" +
                     (hold.lost_at == 0 ? ", nor later" : ", " + ms(hold.lost_at - next.granted_at) + " late"));
        }
    }

    void judge_resume(const Hold& hold) {
        if (hold.resumed_at == 0) return;  // never ran again
        if (hold.held_after_resume) {
            find(Violation::held_on_resume, hold.lock, describe(hold) + ": held() was true right after SIGCONT");
        }
        if (hold.last_write_at > hold.resumed_at) {
            find(Violation::stale_write, hold.lock,
                 describe(hold) + " wrote " + ms(hold.last_write_at - hold.resumed_at) + " after SIGCONT");
        }
        // Whoever gave it back at once has taken its callback away, and is owed nothing any more.
        if (hold.lost_at == 0 && hold.released_at != 0 && hold.released_at <= hold.resumed_at + kAtOnce) return;
        if (hold.lost_at != 0) verdict_.lost_after_resume.push_back(std::max<Stamp>(0, hold.lost_at - hold.resumed_at));
        if (hold.lost_at == 0 || hold.lost_at > hold.resumed_at + options_.lost_after_resume) {
            find(Violation::late_lost, hold.lock,
                 describe(hold) + ": lost() " +
                     (hold.lost_at == 0 ? "never fired"
                                        : "fired " + ms(hold.lost_at - hold.resumed_at) + " after SIGCONT"));
        }
    }

    void judge_alone(const Hold& hold) {
        if (hold.revivals != 0) {
            find(Violation::revived, hold.lock,
                 describe(hold) + " came back " + std::to_string(hold.revivals) + " times");
        }
        for (const auto* sighting : sightings_[hold.lock]) {
            if (sighting->node != hold.node || hold.node.empty() || sighting->gone_at == 0) continue;
            if (hold.last_true_at > sighting->gone_at) {
                find(Violation::outlived_node, hold.lock,
                     describe(hold) + " believed for " + ms(hold.last_true_at - sighting->gone_at) +
                         " after its node was seen to be gone");
            }
        }
    }

    // Is anybody in front? Only a node that the outsider goes on seeing says so: what it sees may be old.
    void judge_queue(const Hold& hold) {
        const std::int64_t own = sequence_of(hold.node);
        if (own < 0) return;
        for (const auto* sighting : sightings_[hold.lock]) {
            const std::int64_t other = sequence_of(sighting->node);
            if (other < 0 || other >= own || sighting->node == hold.node) continue;
            if (sighting->gone_at == 0 || sighting->gone_at > hold.granted_at + options_.observer_lag) {
                find(Violation::not_first, hold.lock,
                     describe(hold) + " was granted, but an outsider went on seeing " + sighting->node +
                         " in front of it");
            }
        }
    }

    void judge_counter(const Counter& counter) {
        std::int64_t acknowledged = 0;
        const auto found = holds_.find(counter.lock);
        if (found != holds_.end()) {
            for (const auto* hold : found->second) acknowledged += hold->writes;
        }
        if (counter.value != acknowledged) {
            find(Violation::lost_update, counter.lock,
                 "the counter is " + std::to_string(counter.value) + " after " + std::to_string(acknowledged) +
                     " acknowledged increments");
        }
    }

    const JudgeOptions options_;
    std::map<int, std::vector<const Hold*>> holds_;
    std::map<int, std::vector<const Sighting*>> sightings_;
    std::vector<const Counter*> counters_;
    Verdict verdict_;
};

}  // namespace

const char* to_string(Violation violation) noexcept {
    switch (violation) {
        case Violation::overlap: return "overlap";
        case Violation::outlived_node: return "outlived its node";
        case Violation::late_false: return "held() false too late";
        case Violation::late_lost: return "lost() too late";
        case Violation::held_on_resume: return "held after SIGCONT";
        case Violation::revived: return "revived";
        case Violation::stale_write: return "stale write";
        case Violation::lost_update: return "lost update";
        case Violation::token_order: return "token order";
        case Violation::not_first: return "not first in the queue";
    }
    return "?";
}

bool is_fenced(const Hold& former, const Hold& next) noexcept {
    return std::pair(former.token, former.handovers) < std::pair(next.token, next.handovers);
}

std::int64_t sequence_of(const std::string& node) noexcept {
    const auto digits = node.find_last_not_of("0123456789");
    const auto begin = digits == std::string::npos ? 0 : digits + 1;
    if (begin == node.size() || node.size() - begin > 18) return -1;
    return std::strtoll(node.c_str() + begin, nullptr, 10);
}

Verdict judge(const History& history, const JudgeOptions& options) { return Bench(history, options).judge(); }

}  // namespace zkrecipes::chaos
