#include "sim/late_callbacks.hpp"

#include <utility>

namespace zkrecipes::sim {

LateCallbacks::LateCallbacks(SimEnsemble& ensemble, const Plan& plan)
    : ensemble_(ensemble), world_(ensemble.world()), timeout_(plan.timeout_ms * kMilli) {
    ensemble_.network().listen([this](Actor& client, const Request& request) { on_request(client, request); });
}

void LateCallbacks::begin(ClientProcess& process, Rng& rng) {
    const auto client = process.client();
    const int id = process.actor().id();
    if (process.dead() || process.closing || client == nullptr || late_.contains(id)) return;
    const SimTime afterwards = rng.between(0, 6 * timeout_);
    world_.note(&process.actor(), "its callbacks are late", static_cast<std::uint64_t>(afterwards / kMilli));
    ++process.disturbances;
    late_[id] = {&process, client, rng.one_in(2)};
    client->delay_callbacks(rng.between(0, timeout_ / 2));
    ensemble_.network().reset(process.actor(), -1);
    world_.in(afterwards + (late_[id].at_next_write ? 2 * timeout_ : 0), nullptr, [this, id] {
        if (const auto found = late_.find(id); found != late_.end()) {
            if (const auto late = found->second.client.lock()) late->run_callbacks();
            late_.erase(found);
        }
    });
}

void LateCallbacks::on_request(const Actor& client, const Request& request) {
    const auto found = late_.find(client.id());
    if (found == late_.end() || !found->second.at_next_write) return;
    if (request.op != Op::create && request.op != Op::multi) return;
    const auto late = found->second.client.lock();
    if (late == found->second.process->client()) return;  // still of that session
    late_.erase(found);
    if (late != nullptr) world_.in(0, nullptr, [late] { late->run_callbacks(); });
}

void LateCallbacks::stop() {
    for (const auto& [id, each] : std::exchange(late_, {})) {
        if (const auto late = each.client.lock()) late->run_callbacks();
    }
}

}  // namespace zkrecipes::sim
