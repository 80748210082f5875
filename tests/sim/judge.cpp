#include "sim/judge.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/paths.hpp"
#include "core/hold/hold_ref.hpp"
#include "core/queue/node_name.hpp"
#include "session/lease/hold.hpp"

namespace zkrecipes::sim {

namespace {

std::string text_of(const Fence& fence) {
    std::string text = "token " + std::to_string(fence.token);
    if (fence.handovers != 0) text += ", hand-overs " + std::to_string(fence.handovers);
    return text;
}

}  // namespace

void Judge::violation(const std::string& check, const std::string& text) {
    world_.note_text(nullptr, "VIOLATION " + check + ": " + text);
    world_.note(nullptr, check);
    result_.violations.push_back({check, text + " at " + std::to_string(world_.now() / kMilli) + " ms"});
}

std::string Judge::describe(const Held& held) const {
    std::string what = held.process->name() + " (lock " + std::to_string(held.claim.path);
    if (!held.claim.all()) what += ", " + std::to_string(held.claim.units) + " of it";
    return what + ", " + text_of(held.fence) + ")";
}

bool Judge::believes(const Held& held) {
    const bool yes = !held.process->dead() && world_.as_world([&] { return held.grant->held(); });
    held.seen_over = held.seen_over || !yes;
    return yes;
}

namespace {

std::string_view identity_of(std::string_view path) {
    return internal::base_name(path).substr(0, internal::kIdentityChars);
}

}  // namespace

void Judge::operator_acts(const Txn& committed) {
    if (committed.kind == Txn::Kind::close_session) ended_sessions_.try_emplace(committed.session, world_.now());
    for (const Effect& effect : committed.effects) {
        if (effect.kind == Effect::Kind::set) note_write(effect);
        if (effect.kind != Effect::Kind::remove) continue;
        const bool made_again = std::any_of(
            committed.effects.begin(), committed.effects.end(),
            [&](const Effect& each) { return each.kind == Effect::Kind::create && each.path == effect.path; });
        auto& deletions = deleted_[std::string(identity_of(effect.path))];  // told by every server that applies it
        const auto known = [&](const Deletion& each) { return each.zxid == committed.zxid; };
        if (std::none_of(deletions.begin(), deletions.end(), known))
            deletions.push_back({committed.zxid, world_.now(), made_again});
    }
}

void Judge::made(const std::string& node) {
    never_seen_.erase(node);
    if (const auto found = deleted_.find(identity_of(node)); found != deleted_.end()) deleted_.erase(found);
}

/// Every server that applies it tells of it; the first one counts.
void Judge::note_write(const Effect& effect) {
    if (effect.data == internal::kRevocationRequest) {
        SimTime& since = revoked_[effect.path].since;
        if (since == kForever) since = world_.now();
    } else if (const auto found = revoked_.find(effect.path); found != revoked_.end()) {
        found->second.since = kForever;
    }
}

namespace {

/// 2 % for the clock's rate.
SimTime by_any_clock(SimTime span) { return span + span / 50; }

}  // namespace

SimTime Judge::heartbeat_interval() const {
    const SimTime timeout = plan_.timeout_ms * kMilli;
    return plan_.tick_known && plan_.timeout_ms >= 3 * plan_.tick_ms ? timeout / 6 : timeout / 12;
}

/// Nothing comes late, and no connection breaks.
bool Judge::only_operators() const {
    std::uint32_t others = plan_.faults;
    for (const Fault harmless : {Fault::delete_node, Fault::delete_all, Fault::others_hands, Fault::skewed_clocks})
        others &= ~(1U << static_cast<unsigned>(harmless));
    return others == 0;
}

/// The first hold by that node that is known.
SimTime Judge::first_begun(const Held& held) const {
    const auto found = first_begun_.find({held.grant->node(), held.made});
    return found == first_begun_.end() ? held.begun : std::min(held.begun, found->second);
}

/// What was decided before a process was stopped is told when it goes on, and believed until the lease ends. With a
/// lock delay a hold has lasted for some time when it is told: it ends as those do that began before.
SimTime Judge::told_by(const Held& held, SimTime time) const {
    if (plan_.workload == "delay") return kForever;
    const SimTime runs = held.process->actor().runs_at(time);
    return runs > time ? runs + kSecond / 2 : time;
}

/// A hold of a node that is gone already: by answers that were on their way, while a third of the timeout is left of
/// the lease. By a node that the session has, for two heartbeats without an answer.
SimTime Judge::may_begin_until(const Held& held, SimTime deleted) const {
    const SimTime first = first_begun(held);
    const SimTime by_answers = told_by(held, deleted + by_any_clock(plan_.timeout_ms * kMilli / 3));
    if (held.begun == first && held.fence.handovers == 0) return by_answers;
    const SimTime confirmed = held.begun == first ? by_answers : std::max(deleted, first);
    return told_by(held, confirmed + by_any_clock(2 * heartbeat_interval()));
}

SimTime Judge::may_hold_deleted_until(const Held& held) const {
    const auto node = deleted_.find(identity_of(held.grant->node()));
    if (node == deleted_.end()) return kForever;
    const SimTime timeout = plan_.timeout_ms * kMilli;
    const SimTime first = first_begun(held);
    const SimTime changed = last_change_of(held.grant->session_id());
    SimTime until = kForever;
    for (const Deletion& each : node->second) {
        if (each.zxid <= held.made)
            continue;  // an earlier node of that identity: a create that is repeated has it again
        if (each.made_again) {
            // A check says that there is a node, not which one. That is read once, and on each new connection.
            until = std::min(until, std::max(each.at, first) + timeout);
            continue;
        }
        // No lease is sure for longer than two thirds of the timeout without a committed check of the node, which
        // fails. What else the session has changed renews its lease until the next check goes out: after a sixth of the
        // timeout, or when the process goes on.
        const SimTime checked = held.process->actor().runs_at(each.at + timeout / 6);
        const SimTime renewed = std::max(each.at, std::min(changed, checked));
        until = std::min(until, renewed + by_any_clock(timeout * 2 / 3));
        if (held.begun > each.at && held.begun > may_begin_until(held, each.at)) until = held.begun - 1;
        if (!only_operators()) continue;
        // Where nothing is lost, the next heartbeat tells; and the watch on a node that is held for longer than half a
        // second.
        const SimTime answer = kSecond / 2;
        until = std::min(until, std::max(each.at, first) + by_any_clock(heartbeat_interval()) + answer);
        if (first + kSecond <= each.at) until = std::min(until, each.at + answer);
    }
    return until;
}

SimTime Judge::may_hold_ended_until(const Held& held) const {
    const auto session = ended_sessions_.find(held.grant->session_id());
    if (session == ended_sessions_.end()) return kForever;
    const SimTime timeout = plan_.timeout_ms * kMilli;
    // A hold begins with a third of the timeout at least.
    if (held.begun > told_by(held, session->second + by_any_clock(timeout / 3))) return held.begun - 1;
    return session->second + by_any_clock(timeout * 2 / 3);
}

void Judge::check_told(const Held& held) {
    if (told_over_.contains(held.grant->session_id()))
        violation("operator", describe(held) + " still holds, and was told that its session is over");
    for (const std::string& node : held.grant->nodes()) {
        const auto told = told_gone_.find(node);
        if (told == told_gone_.end() || told->second.zxid < held.made) continue;
        // What has begun while the heartbeat was on its way is not among the holds for which it was sent.
        const SimTime since = held.claim.all() ? first_begun(held) : held.begun;
        if (since <= told->second.asked || since > told->second.answered)
            violation("operator", describe(held) + " still holds, and a heartbeat has told that its node is gone");
    }
}

bool Judge::excused(const Held& held) {
    check_told(held);
    const SimTime until = std::min(may_hold_deleted_until(held), may_hold_ended_until(held));
    if (until == kForever) return false;
    if (world_.now() > until) {
        violation("operator", describe(held) + " still holds what an operator ended, and was to know it at " +
                                  std::to_string(until / kMilli) + " ms");
    }
    return true;
}

Judge::Ticket Judge::granted(const Claim& claim, ClientProcess& process, const Grant& grant) {
    ++result_.grants;
    Held held;
    held.claim = claim;
    held.process = &process;
    held.grant = &grant;
    held.token = grant.token();
    held.fence = {grant.token(), grant.handovers()};
    held.number = next_number_++;
    held.since = held.begun = world_.now();
    if (const auto& share = internal::GrantAccess::share(grant)) {
        const internal::Hold& hold = share->hold();
        held.made = hold.czxid();
        if (hold.record().label) held.begun = process.actor().to_true(hold.record().since.time_since_epoch().count());
        first_begun_.try_emplace({grant.node(), held.made}, held.begun);
    }
    world_.note(&process.actor(), "granted", static_cast<std::uint64_t>(held.token));
    if (held.token <= 0) violation("token", describe(held) + ": a grant without a token");
    check_whose(held);
    if (claim.ordered && claim.all()) check_once(held, locks_[claim.path]);
    if (!claim.all() && held.fence.handovers != 0) violation("handovers", describe(held) + ": a share with hand-overs");
    // A grant may be told late, when an operator has ended it already.
    if (believes(held) && !excused(held)) {
        Lock& lock = locks_[claim.path];
        if (claim.ordered) check_order(held, lock);
        if (claim.all()) lock.last_alone = held.number;
        lock.last_believed = held.number;
        if (contender_excludes(claim))
            violation("exclusion", describe(held) + " was granted while another client held");
        if (plan_.poll_beliefs) check_others(held);
    }
    held_.push_front(held);
    return held_.begin();
}

void Judge::check_whose(const Held& held) {
    for (const std::string& node : held.grant->nodes()) {
        if (never_seen_.contains(node))
            violation("whose", describe(held) + " by " + node + ", which was not its own any more");
    }
}

void Judge::contender_granted(int path, bool shared, const std::string& node) {
    world_.note_text(nullptr, "another client holds by " + node);
    contenders_[node] = {path, shared};
    if (!plan_.poll_beliefs) return;
    for (const Held& held : held_) {
        if (held.claim.path == path && (held.claim.all() || !shared) && believes(held) && !excused(held))
            violation("exclusion", "another client was granted " + node + " while " + describe(held) + " held");
    }
}

void Judge::contender_ended(const std::string& node) { contenders_.erase(node); }

bool Judge::contender_excludes(const Claim& claim) const {
    return std::any_of(contenders_.begin(), contenders_.end(), [&](const auto& each) {
        return each.second.path == claim.path && (claim.all() || !each.second.shared);
    });
}

/// Also of those that were lost before their owners were told of them.
void Judge::check_once(const Held& held, Lock& lock) {
    const LockOptions& options = plan_.locks;
    if (!lock.fences.insert(held.fence).second)
        violation("handovers", describe(held) + ": another holder had the same token and hand-overs");
    // A node that is kept is handed over to nobody and from nobody, which counts, too.
    const std::uint64_t most = std::max<std::uint64_t>(options.local_handovers, 1) - 1;
    if (options.keep_for.count() == 0 && held.fence.handovers > most)
        violation("turn", describe(held) + " is holder " + std::to_string(held.fence.handovers + 1) + " of one turn");
}

void Judge::check_order(const Held& held, Lock& lock) {
    // The same token again: handed over within its process, by one who had not lost it.
    const bool again = held.claim.all() && held.fence > lock.last && held.process == lock.process && lock.given_back;
    if (held.token <= lock.last.token && !again)
        violation("token-order", describe(held) + ": an earlier holder had " + text_of(lock.last));
    if (!held.claim.all()) return;
    lock.last = std::max(lock.last, held.fence);
    lock.process = held.process;
    lock.given_back = false;
}

void Judge::check_others(const Held& held) {
    int units = held.claim.units;
    for (const Held& other : held_) {
        if (other.claim.path != held.claim.path || !believes(other) || excused(other)) continue;
        units += other.claim.units;
        if (units > held.claim.of) {
            violation("exclusion", describe(held) + " was granted while " + describe(other) + " held");
        }
    }
}

/// The register of docs/guarantees.md, L2.
bool Judge::lets_in(const Held& held, Lock& lock) const {
    if (held.claim.all()) {
        if (held.fence < lock.fence || held.token < lock.shared_fence) return false;
        lock.fence = held.fence;
    } else {
        if (held.token <= lock.fence.token) return false;
        lock.shared_fence = std::max(lock.shared_fence, held.token);
    }
    return true;
}

bool Judge::act(Ticket ticket) {
    // First the holder's own question, as its program asks it; then the act, in the same instant.
    if (ticket->process->dead()) return false;
    const bool told = ticket->grant->lost().stop_requested();
    if (!ticket->grant->held() || ticket->process->dead()) {
        ticket->seen_over = true;
        return false;
    }
    if (ticket->seen_over) violation("sticky", describe(*ticket) + " holds again what was seen to have ended");
    const SimTime max_hold = SimTime{plan_.max_hold_of(ticket->process->number()).count()} * kMilli;
    if (max_hold != 0 && world_.now() - ticket->begun > by_any_clock(max_hold))
        violation("max-hold", describe(*ticket) + " holds for longer than it may");
    if (told) violation("lost-held", describe(*ticket) + " holds although it was told of the loss before");
    ++result_.acts;
    world_.note(&ticket->process->actor(), "acts", static_cast<std::uint64_t>(ticket->token));
    const Claim& claim = ticket->claim;
    Lock& lock = locks_[claim.path];
    const bool let_in = !claim.ordered || lets_in(*ticket, lock);
    if (excused(*ticket)) {
        if (!let_in) ++result_.fenced;
        return true;
    }
    if (contender_excludes(claim)) violation("exclusion", describe(*ticket) + " acts while another client holds");
    ticket->last_act = ++acts_;
    if (ticket->first_act == 0) ticket->first_act = ticket->last_act;
    if (!claim.ordered && !claim.all()) return true;
    if ((claim.all() ? lock.last_believed : lock.last_alone) > ticket->number) {
        violation("exclusion", describe(*ticket) + " acts though a later holder was granted");
    }
    if (!claim.ordered) return true;
    if (!let_in) violation("fence", describe(*ticket) + " is refused: the register has seen " + text_of(lock.fence));
    if (ticket->read && ticket->seen_version != lock.version) {
        violation("lost-update", describe(*ticket) + " writes over what it has not read");
    }
    if (claim.all()) {
        ++lock.version;
    }
    ticket->seen_version = lock.version;
    ticket->read = true;
    return true;
}

void Judge::check_revocation(const Ticket& ticket) {
    // Not from the beginning: a request may be older than the wish to know of it.
    if (ticket->listens_since == kForever) {
        if (ticket->number % 3 != 0) return;
        ticket->listens_since = world_.now();
    }
    const bool told = ticket->grant->revocation().stop_requested();
    bool ever = false;
    SimTime asked = kForever;  // at any of its nodes
    for (const std::string& node : ticket->grant->nodes()) {
        const auto found = revoked_.find(node);
        if (found == revoked_.end()) continue;
        ever = true;
        asked = std::min(asked, found->second.since);
    }
    if (told && !ever)
        violation("revocation", describe(*ticket) + " was told to give way, and nobody has asked for it");
    constexpr std::uint32_t kNothingElse = 1U << static_cast<unsigned>(Fault::others_hands);
    if (told || asked == kForever || plan_.faults != kNothingElse) return;
    if (world_.now() - std::max(asked, ticket->listens_since) > kSecond)
        violation("revocation", describe(*ticket) + " was not told that somebody wants it to give way");
}

void Judge::ended(Ticket ticket) {
    Lock& lock = locks_[ticket->claim.path];
    if (ticket->claim.all() && ticket->fence == lock.last) lock.given_back = !ticket->seen_over;
    if (ticket->first_act != 0) {
        intervals_.push_back({ticket->claim, ticket->first_act, ticket->last_act, describe(*ticket)});
    }
    held_.erase(ticket);
}

void Judge::check_intervals() {
    std::vector<Interval> all = intervals_;
    for (const Held& each : held_) {
        if (each.first_act != 0) all.push_back({each.claim, each.first_act, each.last_act, describe(each)});
    }
    std::map<int, std::map<std::uint64_t, std::pair<int, const Interval*>>> changes;  // by path and act
    for (const Interval& each : all) {
        changes[each.claim.path][each.from * 2] = {each.claim.units, &each};
        changes[each.claim.path][each.to * 2 + 1] = {-each.claim.units, &each};
    }
    for (const auto& [path, acts] : changes) {
        int units = 0;
        for (const auto& [at, change] : acts) {
            units += change.first;
            if (units > change.second->claim.of) {
                violation("exclusion", change.second->who + " acted between the acts of others, who had the rest");
                return;
            }
        }
    }
}

std::uint64_t Judge::call_begins(ClientProcess& process, std::string what) {
    ++result_.calls;
    world_.note_text(&process.actor(), "calls " + what);
    calls_[next_call_] = {&process, std::move(what), world_.now()};
    return next_call_++;
}

void Judge::call_ends(std::uint64_t call) {
    const auto found = calls_.find(call);
    if (found == calls_.end()) {
        violation("once", "a call returned twice");
        return;
    }
    if (world_.tracing()) world_.note_text(&found->second.process->actor(), "returns from " + found->second.what);
    calls_.erase(found);
}

std::vector<std::string> Judge::open_calls() const {
    std::vector<std::string> open;
    for (const auto& [number, call] : calls_) {
        open.push_back(call.process->name() + " in " + call.what + " since " + std::to_string(call.since / kMilli) +
                       " ms");
    }
    return open;
}

}  // namespace zkrecipes::sim
