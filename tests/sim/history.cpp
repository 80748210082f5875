#include "sim/history.hpp"

#include <algorithm>
#include <utility>

#include "base/paths.hpp"

namespace zkrecipes::sim {

void History::committed(const Txn& txn) {
    last_zxid_ = txn.zxid;
    if (txn.kind == Txn::Kind::create_session) {
        const Actor* const actor = network_.client_of(txn.connection);
        if (actor != nullptr) actors_[txn.session] = actor->id();
    }
    for (const Effect& effect : txn.effects) {
        if (effect.kind == Effect::Kind::check || effect.kind == Effect::Kind::error) continue;
        const bool recorded = std::any_of(directories_.begin(), directories_.end(), [&](const std::string& directory) {
            return internal::is_at_or_below(effect.path, directory);
        });
        if (!recorded) continue;
        NodeState state = of(effect.path).back();
        state.exists = effect.kind != Effect::Kind::remove;
        state.data = effect.data;
        state.version = effect.version;  // of a create: 0
        if (effect.kind == Effect::Kind::create) {
            state.owner = effect.owner;
            state.czxid = txn.zxid;
        }
        add(effect.path, std::move(state), txn);
    }
}

void History::add(const std::string& path, NodeState state, const Txn& txn) {
    state.zxid = txn.zxid;
    state.at = world_.now();
    state.by = txn.session;
    state.by_operator = txn.by_operator;
    state.session_end = txn.kind == Txn::Kind::close_session;
    auto& states = nodes_[path];
    if (states.empty()) states.emplace_back();
    states.push_back(std::move(state));
}

const History::States& History::of(const std::string& path) const {
    static const States none(1);
    const auto found = nodes_.find(path);
    return found == nodes_.end() ? none : found->second;
}

std::vector<std::string> History::paths_below(const std::string& directory) const {
    std::vector<std::string> paths;
    for (auto node = nodes_.lower_bound(directory + "/"); node != nodes_.end(); ++node) {
        if (!node->first.starts_with(directory + "/")) break;
        paths.push_back(node->first);
    }
    return paths;
}

std::size_t History::count_below(const std::string& directory) const {
    std::size_t count = 0;
    for (const std::string& path : paths_below(directory)) count += of(path).back().exists ? 1 : 0;
    return count;
}

int History::actor_of(SessionId session) const {
    const auto found = actors_.find(session);
    return found == actors_.end() ? -1 : found->second;
}

}  // namespace zkrecipes::sim
