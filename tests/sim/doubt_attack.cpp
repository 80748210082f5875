#include "sim/doubt_attack.hpp"

#include <algorithm>

namespace zkrecipes::sim {

namespace {

/// Not a check of nodes, of which a holder sends many.
bool changes(const Request& request) {
    const auto is_change = [](const MultiOp& op) { return op.kind != MultiOp::Kind::check; };
    return request.op == Op::create || request.op == Op::remove || request.op == Op::set ||
           std::any_of(request.ops.begin(), request.ops.end(), is_change);
}

}  // namespace

DoubtAttack::DoubtAttack(SimEnsemble& ensemble) : ensemble_(ensemble) {
    ensemble_.network().listen([this](Actor& client, const Request& request) { on_request(client, request); });
}

void DoubtAttack::begin(ClientProcess& process, Rng& rng) {
    Attack attack{};
    attack.reset_after = rng.between(0, 30 * kMilli);
    attack.disks_take = rng.between(100, 1000) * kMilli;
    attack.slow_for = rng.between(300, 3000) * kMilli;
    armed_[process.actor().id()] = attack;
}

void DoubtAttack::on_request(Actor& client, const Request& request) {
    const auto found = armed_.find(client.id());
    if (found == armed_.end() || !changes(request)) return;
    const Attack attack = found->second;
    armed_.erase(found);
    World& world = ensemble_.world();
    world.note(&client, "its write is in doubt", static_cast<std::uint64_t>(attack.reset_after / kMilli));
    for (int id = 0; id < ensemble_.size(); ++id) ensemble_.server(id).fsync_most = attack.disks_take;
    world.in(attack.reset_after, nullptr, [this, &client] { ensemble_.network().reset(client, -1); });
    world.in(attack.slow_for, nullptr, [this] {
        for (int id = 0; id < ensemble_.size(); ++id) ensemble_.server(id).fsync_most = kDiskUsual;
    });
}

}  // namespace zkrecipes::sim
