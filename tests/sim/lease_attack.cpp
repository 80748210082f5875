#include "sim/lease_attack.hpp"

namespace zkrecipes::sim {

LeaseAttack::LeaseAttack(SimEnsemble& ensemble, const Plan& plan)
    : ensemble_(ensemble), world_(ensemble.world()), timeout_(plan.timeout_ms * kMilli) {
    ensemble_.network().listen([this](const Actor& client, const Request& request) { on_request(client, request.op); });
}

void LeaseAttack::begin(ClientProcess& process, Rng& rng) {
    static constexpr Begin kBegins[] = {Begin::now, Begin::now, Begin::at_write, Begin::at_write, Begin::at_connect};
    Attack attack{};
    attack.process = &process;
    attack.begin = kBegins[rng.below(std::size(kBegins))];
    attack.gone = static_cast<Gone>(rng.below(3));
    attack.silence = rng.between(timeout_ / 8, timeout_ * 19 / 20);
    // Before it goes on, right after its requests went out, or a few pings later.
    attack.margin = attack.begin == Begin::at_connect ? rng.between(0, 100 * kMilli)
                    : rng.one_in(2)                   ? rng.between(-5 * kMilli, 10 * kMilli)
                                                      : rng.between(0, timeout_ / 4);
    attack.absence = rng.between(timeout_, 3 * timeout_);
    if (attack.begin == Begin::now) return fall_silent(attack);
    armed_[process.actor().id()] = attack;
    if (attack.begin == Begin::at_connect) ensemble_.network().reset(process.actor(), -1);
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
        case Gone::isolated:
            for (int other = 0; other < ensemble_.size(); ++other) {
                if (other != server) ensemble_.cut(server, other, true);
            }
            world_.in(attack.absence, nullptr, [this, server] {
                for (int other = 0; other < ensemble_.size(); ++other) {
                    if (other != server && ensemble_.is_cut(server, other)) ensemble_.cut(server, other, false);
                }
            });
            return;
        case Gone::unreachable:
            for (int id = 0; id < ensemble_.size(); ++id) network.block(actor, id, true, true);
            world_.in(attack.absence, nullptr, [this, process = attack.process] {
                if (process->dead()) return;
                for (int id = 0; id < ensemble_.size(); ++id)
                    ensemble_.network().block(process->actor(), id, false, false);
            });
    }
}

}  // namespace zkrecipes::sim
