#include "sim/judge.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/paths.hpp"
#include "core/hold/hold_ref.hpp"
#include "core/queue/node_name.hpp"
#include "session/lease/hold.hpp"

namespace zkrecipes::sim {

void Judge::violation(const std::string& check, const std::string& text) {
    world_.note_text(nullptr, "VIOLATION " + check + ": " + text);
    world_.note(nullptr, check);
    result_.violations.push_back({check, text + " at " + std::to_string(world_.now() / kMilli) + " ms"});
}

std::string Judge::describe(const Held& held) const {
    std::string what = held.process->name() + " (lock " + std::to_string(held.claim.path);
    if (!held.claim.all()) what += ", " + std::to_string(held.claim.units) + " of it";
    return what + ", token " + std::to_string(held.token) + ")";
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

bool Judge::excused(const Held& held) {
    const auto node = deleted_.find(identity_of(held.grant->node()));
    const auto session = ended_sessions_.find(held.grant->session_id());
    // Longer than this no lease is sure without a committed check of the node, which fails. 2 %: the clock's rate.
    // What else the session has changed renews its lease until the next check goes out: after a sixth of the timeout,
    // or when the process goes on.
    const SimTime changed = last_change_of(held.grant->session_id());
    const SimTime lease = plan_.timeout_ms * kMilli * 2 / 3;
    const SimTime limit = lease + lease / 50;
    SimTime until = kForever;
    if (node != deleted_.end()) {
        // Not of an earlier node of that identity: a create that is repeated has it again.
        for (const Deletion& each : node->second) {
            if (each.zxid <= held.made) continue;
            // A check says that there is a node, not which one. That is read once, and on each new connection.
            const SimTime known = std::max(each.at, held.since) + plan_.timeout_ms * kMilli;
            const SimTime checked = held.process->actor().runs_at(each.at + plan_.timeout_ms * kMilli / 6);
            const SimTime renewed = std::max(each.at, std::min(changed, checked));
            until = std::min(until, each.made_again ? known : renewed + limit);
        }
    }
    if (session != ended_sessions_.end()) until = std::min(until, session->second + limit);
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
    const auto& share = internal::GrantAccess::share(grant);
    held.made = share ? share->shared_hold()->czxid() : held.token;
    held.number = next_number_++;
    held.since = world_.now();
    world_.note(&process.actor(), "granted", static_cast<std::uint64_t>(held.token));
    if (held.token <= 0) violation("token", describe(held) + ": a grant without a token");
    check_whose(held);
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

void Judge::check_order(const Held& held, Lock& lock) {
    const LockOptions& options = plan_.locks;
    const bool local = options.local_handovers > 0 || options.keep_for.count() > 0;
    const bool again = local && held.token == lock.last_token && held.process == lock.process && lock.given_back;
    if (held.token <= lock.last_token && !again) {
        violation("token-order", describe(held) + ": an earlier holder had token " + std::to_string(lock.last_token));
    }
    if (!held.claim.all()) return;
    lock.holders = again ? lock.holders + 1 : 1;
    if (options.keep_for.count() == 0 && lock.holders > std::max<std::uint32_t>(options.local_handovers, 1)) {
        violation("turn", describe(held) + " is holder " + std::to_string(lock.holders) + " of one turn");
    }
    lock.last_token = std::max(lock.last_token, held.token);
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

bool Judge::act(Ticket ticket) {
    // First the holder's own question, as its program asks it; then the act, in the same instant.
    if (ticket->process->dead()) return false;
    const bool told = ticket->grant->lost().stop_requested();
    if (!ticket->grant->held() || ticket->process->dead()) return false;
    if (ticket->seen_over) violation("sticky", describe(*ticket) + " holds again what was seen to have ended");
    const SimTime max_hold = SimTime{plan_.max_hold_of(ticket->process->number()).count()} * kMilli;
    // 2 %: the clock's rate.
    if (max_hold != 0 && world_.now() - ticket->since > max_hold + max_hold / 50)
        violation("max-hold", describe(*ticket) + " holds for longer than it may");
    if (told) violation("lost-held", describe(*ticket) + " holds although it was told of the loss before");
    ++result_.acts;
    world_.note(&ticket->process->actor(), "acts", static_cast<std::uint64_t>(ticket->token));
    const Claim& claim = ticket->claim;
    Lock& lock = locks_[claim.path];
    if (excused(*ticket)) {
        if (claim.ordered && ticket->token < lock.fence) ++result_.fenced;  // refused by the register that checks
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
    if (ticket->token < lock.fence) {
        violation("fence", describe(*ticket) + " is refused: the register has seen " + std::to_string(lock.fence));
    }
    if (ticket->read && ticket->seen_version != lock.version) {
        violation("lost-update", describe(*ticket) + " writes over what it has not read");
    }
    if (claim.all()) {
        lock.fence = std::max(lock.fence, ticket->token);
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

void Judge::given_back(const Ticket& ticket) {
    Lock& lock = locks_[ticket->claim.path];
    if (ticket->token == lock.last_token) lock.given_back = true;
}

void Judge::ended(Ticket ticket) {
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
