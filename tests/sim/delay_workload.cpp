#include "sim/delay_workload.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::sim {

DelayWorkload::DelayWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, lock_paths(plan)),
      paths_(lock_paths(plan)),
      delay_(Rng(plan.seed).fork("delay").between(2000, 8000)),
      history_(world, ensemble_.network()),
      holders_(paths_.size()),
      directories_deleted_(paths_.size()) {
    history_.record("/locks");
    ensemble_.on_commit = [this](const Txn& txn, const DataTree&) {
        history_.committed(txn);
        committed(txn);
    };
    for (const auto& worker : workers_) {
        LockOptions options = plan.locks_of(worker->process.number());
        options.delay_after_loss = delay_;
        Mutexes& all = mutexes_.emplace_back();
        for (const std::string& path : paths_) {
            all.push_back(std::make_unique<ExclusiveMutex>(worker->process.session(), path, options));
        }
    }
}

void DelayWorkload::committed(const Txn& txn) {
    for (const Effect& effect : txn.effects) {
        if (effect.kind != Effect::Kind::remove) continue;
        const auto directory = std::find(paths_.begin(), paths_.end(), effect.path);
        if (directory != paths_.end()) {
            directories_deleted_[static_cast<std::size_t>(directory - paths_.begin())] = txn.zxid;
            continue;
        }
        const std::string parent = parent_of(effect.path);
        const bool said_so = std::any_of(txn.effects.begin(), txn.effects.end(), [&](const Effect& each) {
            return each.kind == Effect::Kind::set && each.path == parent;
        });
        ends_[history_.of(effect.path).back().czxid] = {world_.now(), said_so};
    }
}

void DelayWorkload::one_round(Worker& worker) {
    const auto path = static_cast<std::size_t>(worker.rng.below(paths_.size()));
    ExclusiveMutex& mutex = *mutexes_[worker.number][path];
    const Ways ways{[&] { return mutex.acquire(); },
                    [&](Deadline deadline, std::stop_token stop) { return mutex.try_acquire_until(deadline, stop); },
                    [&](Deadline deadline, auto done) { mutex.acquire_async(deadline, {}, std::move(done)); }};
    const SimTime since = world_.now();
    Grant grant;
    switch (worker.rng.below(6)) {
        case 0: grant = take_later(worker, ways); break;
        case 1: return lock_and_unlock(worker, path);
        default: grant = take(worker, ways);
    }
    if (!grant) return;
    granted(worker, path, grant.token(), since);
    hold(worker, std::move(grant), {Claim::alone(static_cast<int>(path))});
}

void DelayWorkload::lock_and_unlock(Worker& worker, std::size_t path) {
    ExclusiveMutex& mutex = *mutexes_[worker.number][path];
    const SimTime since = world_.now();
    bool locked = false;
    {
        const Call call(judge_, worker, "try_lock_for");
        locked = mutex.try_lock_for(Nanoseconds(worker.rng.between(0, 15 * kSecond)));
    }
    if (!locked) return;
    granted(worker, path, mutex.token(), since);
    world_.sleep(&worker.process.actor(), hold_time(worker.rng));
    mutex.unlock();
}

void DelayWorkload::granted(const Worker& worker, std::size_t path, FencingToken token, SimTime since) {
    auto& holders = holders_[path];
    const auto next = holders.lower_bound(token);
    const FencingToken former = next == holders.begin() ? 0 : *std::prev(next);
    if (!holders.insert(token).second) return;  // the node was handed over
    // What a holder says of itself goes with the directory.
    if (former == 0 || directories_deleted_[path] > former) return;
    const auto end = ends_.find(former);
    if (end != ends_.end()) check_distance(worker, token, end->second, since);
}

void DelayWorkload::check_distance(const Worker& worker, FencingToken token, const End& former, SimTime since) {
    const SimTime delay = std::chrono::nanoseconds(delay_).count();
    const SimTime distance = world_.now() - former.at;
    const std::string who = worker.name + " (token " + std::to_string(token) + ")";
    // 1 % for the clock's rate.
    if (!former.said_so && distance < delay - delay / 100) {
        judge_.violation("delay", who + ": is granted the lock " + std::to_string(distance / kMilli) +
                                      " ms after a holder vanished, instead of " + std::to_string(delay_.count()));
    }
    if (plan_.faults != 0 || plan_.locks.max_hold.count() != 0) return;  // whoever runs out of time leaves no word
    if (!former.said_so) judge_.violation("word", who + ": nothing went wrong, but the former holder left no word");
    if (!just_begun() && world_.now() - std::max(since, former.at) > delay / 2) {
        judge_.violation("at-once", who + ": waits though the former holder gave back in order");
    }
}

}  // namespace zkrecipes::sim
