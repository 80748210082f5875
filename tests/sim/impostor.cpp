#include "sim/impostor.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::sim {

namespace {

bool is_lock_node(CreateMode mode) { return mode == CreateMode::ephemeral || mode == CreateMode::ephemeral_sequential; }

/// Of the first lock node that the request makes; empty: it makes none.
std::string creates_at(const Request& request) {
    if (request.op == Op::create && is_lock_node(request.mode)) return request.path;
    for (const MultiOp& op : request.ops) {
        if (op.kind == MultiOp::Kind::create && is_lock_node(op.mode)) return op.path;
    }
    return {};
}

bool is_lease(const std::string& path) { return parent_of(path).ends_with("/leases"); }

MultiOp deletion_of(const std::string& path) {
    MultiOp op;
    op.kind = MultiOp::Kind::remove;
    op.path = path;
    return op;
}

MultiOp creation_of(const std::string& path, CreateMode mode) {
    MultiOp op;
    op.kind = MultiOp::Kind::create;
    op.path = path;
    op.data = Impostor::kSays;
    op.acl = open_acl();
    op.mode = mode;
    return op;
}

}  // namespace

Impostor::Impostor(SimEnsemble& ensemble, const Plan& plan, std::vector<std::string> directories, Judge& judge)
    : ensemble_(ensemble),
      world_(ensemble.world()),
      timeout_(plan.timeout_ms * kMilli),
      directories_(std::move(directories)),
      judge_(judge) {
    if (!plan.has(Fault::impostor)) return;
    tool_ = std::make_unique<RawClient>(ensemble, "impostor", plan.timeout_ms);
    ensemble_.network().listen([this](Actor& client, const Request& request) { on_request(client, request); });
    ensemble_.listen([this](const Txn& txn) { on_commit(txn); });
}

void Impostor::begin(ClientProcess& process, Rng& rng) {
    const auto attack = std::make_shared<Attack>();
    attack->when = static_cast<When>(rng.below(3));
    attack->victim = &process.actor();
    attack->lasts = attack->when == When::held ? rng.between(0, timeout_ / 2) : rng.between(60, 250) * kMilli;
    attack->stays = rng.between(timeout_ / 4, 3 * timeout_);
    attack->choice = rng.below(1000);
    if (attack->when == When::held) return strike_at_holder(process, attack);
    AttackPtr& armed = attacks_[process.actor().id()];
    if (armed == nullptr || armed->stage == Stage::armed) armed = attack;
}

void Impostor::stop() {
    stopped_ = true;
    for (const auto& [victim, attack] : std::map(attacks_)) let_go(attack);
    if (tool_ != nullptr) tool_->close();
}

void Impostor::on_request(Actor& client, const Request& request) {
    const auto found = attacks_.find(client.id());
    if (found == attacks_.end()) return;
    const AttackPtr attack = found->second;
    if (request.op == Op::connect) attack->blind = false;
    if (attack->stage != Stage::armed) return;
    attack->blind = true;
    attack->wanted = creates_at(request);
    if (attack->wanted.empty()) return;
    attack->stage = Stage::sent;
    if (attack->when == When::unseen) {
        attack->unseen_until = world_.now() + attack->lasts;
        ensemble_.network().hold_back(client, attack->lasts);
    } else {
        attack->unseen_until = kForever;  // until it is let go
        ensemble_.network().block(client, ensemble_.network().server_of(client), false, true);
    }
    // It may never happen.
    world_.in(std::max(timeout_, attack->lasts), nullptr, [this, attack] { let_go(attack); });
}

void Impostor::on_commit(const Txn& txn) {
    if (tool_->owns(txn.session)) return own_txn(txn);
    std::vector<std::string> made;
    for (const Effect& effect : txn.effects) {
        if (effect.kind == Effect::Kind::create) {
            judge_.made(effect.path);
            made.push_back(effect.path);
        }
        if (effect.kind != Effect::Kind::remove || doubtful_leases_.erase(effect.path) == 0) continue;
        // Whoever was never told that leases are its own looks whose they are before it deletes them.
        if (txn.kind == Txn::Kind::request && !txn.by_operator)
            judge_.violation("foreign", effect.path + ": is deleted by another session than that which made it");
    }
    for (const Effect& effect : txn.effects) {  // a marker is gone again
        if (effect.kind == Effect::Kind::remove) std::erase(made, effect.path);
    }
    if (!made.empty()) on_made(made);
}

void Impostor::on_made(const std::vector<std::string>& nodes) {
    for (const auto& [victim, attack] : attacks_) {
        if (attack->stage != Stage::sent || !nodes.front().starts_with(attack->wanted)) continue;
        attack->stage = Stage::struck;
        attack->struck = nodes;
        if (attack->when == When::unseen) {
            // Of leases the first one is looked at, of a set every directory.
            const std::size_t which = is_lease(nodes.front()) ? 0 : attack->choice % nodes.size();
            attack->struck = {nodes[which]};
        }
        world_.in(0, nullptr, [this, attack = attack] { strike(attack); });
    }
}

/// The judge is told of it as of an operator's work, and whose nodes these are from now on.
void Impostor::own_txn(const Txn& txn) {
    if (txn.kind != Txn::Kind::request) return;
    judge_.operator_acts(txn);
    for (const Effect& effect : txn.effects) own_effect(effect);
}

void Impostor::own_effect(const Effect& effect) {
    if (effect.kind != Effect::Kind::remove) return;
    doubtful_leases_.erase(effect.path);
    for (const auto& [victim, attack] : attacks_) {
        if (!attack->blind || std::ranges::find(attack->struck, effect.path) == attack->struck.end()) continue;
        if (attack->when == When::held || world_.now() >= attack->unseen_until) continue;
        // Leases are held by the answer to their transaction. A deletion after it is an operator's.
        if (attack->when == When::unseen && is_lease(effect.path)) continue;
        if (attack->when == When::unseen) {
            world_.in(attack->unseen_until - world_.now(), nullptr,
                      [this, attack = attack, path = effect.path] { tell_if_visible(attack, path); });
            continue;
        }
        judge_.deleted_unseen(effect.path);
        if (is_lease(effect.path)) doubtful_leases_.insert(effect.path);
    }
}

/// The victim's server may lag behind: then the victim's look finds its node.
void Impostor::tell_if_visible(const AttackPtr& attack, const std::string& node) {
    const int server = ensemble_.network().server_of(*attack->victim);
    if (!attack->blind || server < 0 || ensemble_.server(server).tree().find(node) != nullptr) return;
    judge_.deleted_unseen(node);
}

void Impostor::strike(const AttackPtr& attack) {
    if (stopped_) return;
    std::vector<MultiOp> ops;
    for (const std::string& node : attack->struck) {
        ops.push_back(deletion_of(node));
        if (attack->when != When::unseen) ops.push_back(creation_of(node, CreateMode::ephemeral));
    }
    // Where somebody else is there already, the directory has one child without another one's help, too.
    const std::string directory = parent_of(attack->struck.front());
    const Node* const there = ensemble_.committed().find(directory);
    const bool alone = there != nullptr && there->children.size() == 1;
    if (attack->when == When::unseen && alone && !is_lease(attack->struck.front())) {
        const std::string other = "/_c_00000000-0000-4000-8000-000000000000-lock-";
        ops.push_back(creation_of(directory + other, CreateMode::ephemeral_sequential));
    }
    world_.note(attack->victim, "an impostor takes its place", static_cast<std::uint64_t>(attack->when));
    send(std::move(ops), attack);
}

void Impostor::send(std::vector<MultiOp> ops, const AttackPtr& attack) {
    tool_->client().multi(std::move(ops), [this, attack](Rc, const std::vector<MultiResult>& results) {
        if (attack->when != When::unseen) {
            const SimTime rest = attack->when == When::held ? attack->lasts : attack->lasts / 10;
            world_.in(rest, nullptr, [this, attack] { let_go(attack); });
        }
        for (const MultiResult& made : results) {
            if (made.path.empty()) continue;
            world_.in(attack->stays, nullptr, [this, path = made.path] {
                if (!stopped_) tool_->client().remove(path, -1, [](Rc) {});
            });
        }
    });
}

/// The victim is back. What was on its way to it is lost.
void Impostor::let_go(const AttackPtr& attack) {
    const auto found = attacks_.find(attack->victim->id());
    if (found == attacks_.end() || found->second != attack) return;
    attacks_.erase(found);
    if (attack->when == When::unseen || attack->stage == Stage::armed) return;
    SimNetwork& network = ensemble_.network();
    for (int id = 0; id < ensemble_.size(); ++id) network.block(*attack->victim, id, false, false);
    if (attack->when == When::in_doubt) network.reset(*attack->victim, -1);
}

void Impostor::strike_at_holder(ClientProcess& process, const AttackPtr& attack) {
    if (process.dead() || process.closing || attacks_.contains(process.actor().id())) return;
    const auto held = held_by(process.session().info().session_id);
    if (held.empty()) return;
    attack->stage = Stage::struck;
    attacks_[process.actor().id()] = attack;
    for (int id = 0; id < ensemble_.size(); ++id) ensemble_.network().block(process.actor(), id, true, true);
    attack->struck = {held[attack->choice % held.size()]};
    strike(attack);
    world_.in(attack->lasts + timeout_, nullptr, [this, attack] { let_go(attack); });
}

/// Nodes at the head of their queues, and leases.
std::vector<std::string> Impostor::held_by(SessionId session) const {
    std::vector<std::string> held;
    const DataTree& tree = ensemble_.committed();
    for (const std::string& directory : directories_) {
        // Whoever waits for leases has no way to see that its place is another's: ZooKeeper compares no owners.
        if (directory.ends_with("/locks")) continue;
        const Node* const node = tree.find(directory);
        if (node == nullptr || node->children.empty()) continue;
        const std::string& first = first_in_queue(node->children);
        for (const std::string& child : node->children) {
            const std::string path = directory + "/" + child;
            if ((child == first || is_lease(path)) && tree.find(path)->owner == session && session != 0)
                held.push_back(path);
        }
    }
    return held;
}

}  // namespace zkrecipes::sim
