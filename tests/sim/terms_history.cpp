#include "sim/terms_history.hpp"

#include <cstdio>

namespace zkrecipes::sim {
namespace {

TermsHistory::State read(const Node* node) {
    TermsHistory::State state;
    if (node == nullptr) return state;
    state.directory = node->czxid;
    int end = 0;
    if (node->data.empty()) {
        state.kind = TermsHistory::Kind::unwritten;
    } else if (std::sscanf(node->data.c_str(), "{\"v\":1,\"leases\":%d}%n", &state.number, &end) == 1 &&
               static_cast<std::size_t>(end) == node->data.size() && state.number > 0) {
        state.kind = TermsHistory::Kind::number;
    } else {
        state.kind = TermsHistory::Kind::nonsense;
    }
    return state;
}

}  // namespace

void TermsHistory::committed(const DataTree& tree, SimTime now) {
    State state = read(tree.find(directory_));
    const State& last = states_.back();
    if (state.kind == last.kind && state.number == last.number && state.directory == last.directory) return;
    state.at = now;
    states_.push_back(state);
}

bool TermsHistory::any_since(SimTime since, const std::function<bool(const State&)>& is) const {
    for (std::size_t i = states_.size(); i-- > 0;) {
        if (is(states_[i])) return true;
        if (states_[i].at < since - lag_) return false;
    }
    return false;
}

}  // namespace zkrecipes::sim
