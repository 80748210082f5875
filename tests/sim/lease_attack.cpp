#include "sim/lease_attack.hpp"

#include <algorithm>

namespace zkrecipes::sim {

LeaseAttack::LeaseAttack(SimEnsemble& ensemble, const Plan& plan, const std::vector<std::string>& paths)
    : ensemble_(ensemble), world_(ensemble.world()), timeout_(plan.timeout_ms * kMilli), paths_(paths) {
    ensemble_.network().listen([this](const Actor& client, const Request& request) { on_request(client, request.op); });
}

void LeaseAttack::begin(ClientProcess& process, Rng& rng) {
    static constexpr Begin kBegins[] = {Begin::now, Begin::now, Begin::at_write, Begin::at_write, Begin::at_connect};
    Attack attack{};
    attack.process = &process;
    attack.begin = kBegins[rng.below(std::size(kBegins))];
    attack.gone = static_cast<Gone>(rng.below(5));
    attack.silence = rng.between(timeout_ / 8, timeout_ * 19 / 20);
    // Before it goes on, right after its requests went out, or a few pings later.
    attack.margin = attack.begin == Begin::at_connect ? rng.between(0, 100 * kMilli)
                    : rng.one_in(2)                   ? rng.between(-5 * kMilli, 10 * kMilli)
                                                      : rng.between(0, timeout_ / 4);
    attack.absence = rng.between(timeout_, 3 * timeout_);
    if (rng.one_in(2)) {
        make_sharp(attack, rng);
    } else if (rng.one_in(4)) {  // no silence: reads are answered until the next write
        attack.begin = Begin::now;
        attack.gone = rng.one_in(2) ? Gone::isolated : Gone::deleted_and_isolated;
        attack.silence = attack.margin = 0;
    }
    attack.unaware = rng.between(0, timeout_ * 2 / 3);
    if (attack.begin == Begin::now) return fall_silent(attack);
    armed_[process.actor().id()] = attack;
    if (attack.begin == Begin::at_connect) ensemble_.network().reset(process.actor(), -1);
}

/// A follower that hears nobody serves its clients for longer than their sessions live.
bool LeaseAttack::outlived_by_followers() const {
    return ensemble_.options().sync_limit * ensemble_.options().tick_ms * kMilli > timeout_;
}

/// A silence so long that what the leader heard before it is what ends the lease, and so short that the lease still
/// runs; the write after it is committed, and its server is gone before it has told the leader of the client.
void LeaseAttack::make_sharp(Attack& attack, Rng& rng) {
    attack.begin = Begin::now;
    attack.gone = outlived_by_followers() && rng.one_in(2) ? Gone::isolated : Gone::frozen;
    attack.silence = rng.between(timeout_ / 3, timeout_ / 2);
    attack.margin = rng.between(6 * kMilli, 20 * kMilli);  // a commit takes about ten
}

void LeaseAttack::on_request(const Actor& client, Op op) {
    const auto found = armed_.find(client.id());
    if (found == armed_.end()) return;
    if (found->second.begin == Begin::at_connect ? op != Op::connect : !is_write(op)) return;
    const Attack attack = found->second;
    armed_.erase(found);
    // The request is on its way; whoever sent it does not get to read the answer.
    world_.in(0, nullptr, [this, attack] { fall_silent(attack); });
}

void LeaseAttack::fall_silent(const Attack& attack) {
    world_.note(&attack.process->actor(), "falls silent", static_cast<std::uint64_t>(attack.silence / kMilli));
    ++attack.process->disturbances;
    attack.process->actor().pause_for(attack.silence);
    world_.in(attack.silence + attack.margin, nullptr, [this, attack] { take_server_away(attack); });
}

void LeaseAttack::take_server_away(const Attack& attack) {
    Actor& actor = attack.process->actor();
    SimNetwork& network = ensemble_.network();
    const int server = network.server_of(actor);
    if (server < 0) return;
    world_.note(&actor, "its server is gone", static_cast<std::uint64_t>(attack.absence / kMilli));
    switch (attack.gone) {
        case Gone::frozen: return ensemble_.freeze(server, attack.absence);
        case Gone::isolated: return ensemble_.isolate(server, attack.absence);
        case Gone::unreachable: return make_unreachable(attack);
        case Gone::deleted_and_isolated: ensemble_.isolate(server, attack.absence); return delete_nodes_of(attack);
        case Gone::deleted_and_unreachable:
            make_unreachable(attack);
            delete_nodes_of(attack);
            return static_cast<void>(
                world_.in(attack.unaware, nullptr, [this, &actor] { ensemble_.network().fail_locally(actor); }));
    }
}

void LeaseAttack::delete_nodes_of(const Attack& attack) {
    const SessionId session = attack.process->session().info().session_id;
    for (const std::string& node : ensemble_.committed().ephemerals_of(session)) {
        // No marks of transactions, which nobody may touch.
        if (std::count(paths_.begin(), paths_.end(), parent_of(node)) != 0) ensemble_.remove(node);
    }
}

void LeaseAttack::make_unreachable(const Attack& attack) {
    Actor& actor = attack.process->actor();
    for (int id = 0; id < ensemble_.size(); ++id) ensemble_.network().block(actor, id, true, true);
    world_.in(attack.absence, nullptr, [this, process = attack.process] {
        if (process->dead()) return;
        for (int id = 0; id < ensemble_.size(); ++id) ensemble_.network().block(process->actor(), id, false, false);
    });
}

}  // namespace zkrecipes::sim
