#include "sim/mutex_workload.hpp"

#include <utility>

namespace zkrecipes::sim {

MutexWorkload::MutexWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, lock_paths(plan)) {
    const auto make = [&](ClientProcess& process, bool local = true) {
        Mutexes all;
        for (const std::string& path : lock_paths(plan)) {
            const LockOptions options = local ? plan.locks_of(process.number()) : plan.limits_of(process.number());
            all.push_back(std::make_unique<ExclusiveMutex>(process.session(), path, options));
        }
        return all;
    };
    ensemble_.on_commit = [this](const Txn& txn, const DataTree&) { check_wake_ups(txn); };
    for (const auto& process : processes_) shared_.push_back(make(*process));
    // Some have a place of their own in the queue, beside that of their session.
    for (const auto& worker : workers_)
        own_.push_back(make(worker->process, plan.workload != "mutex" || worker->number % 3 != 0));
}

void MutexWorkload::drop_locks() noexcept {
    own_.clear();
    shared_.clear();
}

/// Where nothing goes wrong whoever leaves the queue, from its head or from its middle, wakes the next one and the one
/// behind it, and nobody else, however many there are.
void MutexWorkload::check_wake_ups(const Txn& txn) {
    if (plan_.faults != 0) return;
    for (const Effect& effect : txn.effects) {
        if (effect.kind != Effect::Kind::remove) continue;
        auto woken = ensemble_.watchers_of(effect.path);
        woken.erase(txn.session);  // it looks after its own node
        if (woken.size() > 2)
            judge_.violation("herd", "the end of one wakes " + std::to_string(woken.size()) + " others");
    }
}

void MutexWorkload::one_round(Worker& worker) {
    Rng& rng = worker.rng;
    const auto path = static_cast<std::size_t>(rng.below(static_cast<std::uint64_t>(plan_.paths)));
    auto& mutex =
        rng.one_in(2) ? *own_[worker.number][path] : *shared_[static_cast<std::size_t>(worker.process.number())][path];
    const Claim claim = Claim::alone(static_cast<int>(path));
    const Ways ways{[&] { return mutex.acquire(); },
                    [&](Deadline deadline, std::stop_token stop) { return mutex.try_acquire_until(deadline, stop); },
                    [&](Deadline deadline, auto done) { mutex.acquire_async(deadline, {}, std::move(done)); }};
    const bool looks_on = plan_.long_holds && worker.number % 2 == 1 && plan_.fibers == 2;
    if (looks_on && !rng.one_in(4)) return look_on(worker, mutex);
    switch (rng.below(6)) {
        case 0:
            if (Grant grant = take_later(worker, ways)) hold(worker, std::move(grant), {claim});
            return;
        case 1: return lock_and_unlock(worker, mutex);
        default:
            if (Grant grant = take(worker, ways)) {
                hold(worker, std::move(grant), {claim},
                     [&](const Grant& outer) { ask_beside_a_grant(worker, mutex, outer); });
            }
    }
}

/// Reads, while another fiber of the session holds: what a server answers that has lost its leader proves nothing.
void MutexWorkload::look_on(Worker& worker, ExclusiveMutex& mutex) {
    const SimTime until = world_.now() + worker.rng.between(0, 4 * plan_.timeout_ms * kMilli);
    while (world_.now() < until && usable(worker.process)) {
        try {
            const Call call(judge_, worker, "participants");
            static_cast<void>(mutex.participants(worker.process.deadline_in(kSecond)));
        } catch (const Error& error) {
            if (error.errc() != Errc::unreachable) throw;
        }
        world_.sleep(&worker.process.actor(), worker.rng.between(0, plan_.timeout_ms * kMilli / 6));
    }
}

void MutexWorkload::lock_and_unlock(Worker& worker, ExclusiveMutex& mutex) {
    bool locked = false;
    {
        const Call call(judge_, worker, "try_lock_for");
        locked = mutex.try_lock_for(Nanoseconds(worker.rng.between(0, 3 * kSecond)));
    }
    if (!locked) return;
    const FencingToken token = mutex.token();
    if (token == 0) judge_.violation("owner", worker.name + ": locked, but the caller has no hold");
    if (worker.rng.one_in(2)) lock_again(worker, mutex);
    world_.sleep(&worker.process.actor(), hold_time(worker.rng));
    if (mutex.token() != token) judge_.violation("re-entry", worker.name + ": has another hold than it locked");
    mutex.unlock();
    if (mutex.token() != 0) judge_.violation("owner", worker.name + ": unlocked, but the caller still has a hold");
}

/// lock() is re-entrant, unless the hold was lost.
void MutexWorkload::lock_again(Worker& worker, ExclusiveMutex& mutex) {
    try {
        const Call call(judge_, worker, "try_lock() of what it has locked");
        if (!mutex.try_lock()) return judge_.violation("re-entry", worker.name + ": cannot lock what it has locked");
        mutex.unlock();
    } catch (const Error& error) {
        if (error.errc() != Errc::lock_lost || mutex.held_by_caller()) {
            judge_.violation("re-entry", worker.name + ": " + error.what());
        }
    }
}

/// A grant belongs to whoever has the object: no call enters its hold because the same fiber makes it.
void MutexWorkload::ask_beside_a_grant(Worker& worker, ExclusiveMutex& mutex, const Grant& outer) {
    const Grant again = outer.again();
    if (again.token() != outer.token() || again.node() != outer.node()) {
        judge_.violation("re-entry", worker.name + ": again() is another hold");
    }
    const Call call(judge_, worker, "try_acquire() beside a grant");
    const Grant other = mutex.try_acquire();
    const bool deleted = ensemble_.committed().find(outer.node()) == nullptr;  // by an operator; it learns that later
    if (other.held() && outer.held() && !deleted)
        judge_.violation("re-entry", worker.name + ": entered the hold of its grant");
}

}  // namespace zkrecipes::sim
