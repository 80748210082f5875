#include "sim/limits_workload.hpp"

#include <utility>

#include "session/lease/hold.hpp"

namespace zkrecipes::sim {

LimitsWorkload::LimitsWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, lock_paths(plan)) {
    ensemble_.on_commit = [this](const Txn& txn, const DataTree&) { committed(txn); };
    for (const auto& process : processes_) {
        Locks all;
        const LockOptions options = plan.locks_of(process->number());
        for (const std::string& path : lock_paths(plan))
            all.push_back(std::make_unique<ReadWriteLock>(process->session(), path, options));
        locks_.push_back(std::move(all));
    }
}

void LimitsWorkload::one_round(Worker& worker) {
    Rng& rng = worker.rng;
    const auto path = static_cast<std::size_t>(rng.below(static_cast<std::uint64_t>(plan_.paths)));
    ReadWriteLock& lock = *locks_[static_cast<std::size_t>(worker.process.number())][path];
    const bool shares = rng.one_in(3);
    const Claim claim = shares ? Claim::shared(static_cast<int>(path)) : Claim::alone(static_cast<int>(path));
    const Ways alone{[&] { return lock.acquire(); },
                     [&](Deadline deadline, std::stop_token stop) { return lock.try_acquire_until(deadline, stop); },
                     [&](Deadline deadline, auto done) { lock.acquire_async(deadline, {}, std::move(done)); }};
    const Ways shared{
        [&] { return lock.acquire_shared(); },
        [&](Deadline deadline, std::stop_token stop) { return lock.try_acquire_shared_until(deadline, stop); },
        [&](Deadline deadline, auto done) { lock.acquire_shared_async(deadline, {}, std::move(done)); }};
    const Ways& ways = shares ? shared : alone;
    Grant grant = rng.one_in(4) ? take_later(worker, ways) : take(worker, ways);
    if (grant) hold(worker, std::move(grant), {claim}, [&](const Grant& held) { relabel(worker, held); });
}

void LimitsWorkload::relabel(Worker& worker, const Grant& grant) {
    const std::string step = std::to_string(worker.rng.below(1'000'000'000));
    bool written = false;
    try {
        const Call call(judge_, worker, "set_labels");
        written = grant.set_labels({{"step", step}}, worker.process.deadline_in(worker.rng.between(0, 5 * kSecond)));
    } catch (const Error& error) {
        if (error.errc() != Errc::unreachable) throw;
    }
    const bool others_write = plan_.has(Fault::others_hands) || plan_.locks.local_handovers != 0;
    const Node* const node = ensemble_.committed().find(grant.node());
    if (written && !others_write && node != nullptr && node->data.find(step) == std::string::npos)
        judge_.violation("labels", worker.name + ": wrote labels that its node does not have");
}

/// Does not release before the node is gone: that is for the session to see to, or for the servers. Where it does not
/// come to that, not everybody is served.
void LimitsWorkload::lost(Worker& worker, const Grant& grant) {
    if (plan_.max_hold_of(worker.process.number()).count() == 0) return;
    const SimTime since = world_.now();
    while (usable(worker.process) && ensemble_.committed().find(grant.node()) != nullptr) {
        world_.sleep(&worker.process.actor(), 50 * kMilli);
        const bool alone = plan_.locks.local_handovers == 0;
        if (plan_.faults == 0 && alone && world_.now() - since > 1500 * kMilli)
            return judge_.violation("ended", worker.name + ": its time is over, and its node stays");
    }
}

/// A request to release is there until the node is gone.
void LimitsWorkload::committed(const Txn& txn) {
    for (const Effect& effect : txn.effects) {
        if (effect.kind == Effect::Kind::remove) data_.erase(effect.path);
        if (effect.kind != Effect::Kind::set && effect.kind != Effect::Kind::create) continue;
        std::string& data = data_[effect.path];
        if (data == internal::kRevocationRequest && effect.kind == Effect::Kind::set && !txn.by_operator)
            judge_.violation("revocation-kept", "labels were written over a request to release, in " + effect.path);
        data = effect.data;
    }
}

}  // namespace zkrecipes::sim
