#include "sim/misuse_workload.hpp"

#include <functional>
#include <mutex>
#include <stop_token>
#include <utility>

#include "session/lease/hold.hpp"

namespace zkrecipes::sim {
namespace {

constexpr const char* kPaths[] = {"/locks/a", "/locks/b"};
constexpr const char* kNoCreate = "/closed/create";
constexpr const char* kNoRead = "/closed/read";

// Unlocking what is not locked is an assertion where there are assertions.
#ifdef NDEBUG
constexpr bool kUnlocksAnyway = true;
#else
constexpr bool kUnlocksAnyway = false;
#endif

}  // namespace

MisuseWorkload::MisuseWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, {kPaths[kMutex], kPaths[kReadWrite]}) {
    for (const auto& process : processes_)
        shared_.push_back(
            std::make_unique<ExclusiveMutex>(process->session(), kPaths[kMutex], plan.locks_of(process->number())));
    for (const auto& worker : workers_) {
        Session& session = worker->process.session();
        Locks& own = locks_.emplace_back();
        const LockOptions options = plan.locks_of(worker->process.number());
        own.mutex = std::make_unique<ExclusiveMutex>(session, kPaths[kMutex], options);
        own.read_write = std::make_unique<ReadWriteLock>(session, kPaths[kReadWrite], options);
        own.private_one = std::make_unique<SemaphoreMutex>(session, "/private/" + worker->name);
    }
    make_closed_directory(kNoCreate, Acl::all & ~Acl::create);
    make_closed_directory(kNoRead, Acl::all & ~Acl::read);
}

/// As soon as there is somebody who can.
void MisuseWorkload::make_closed_directory(const std::string& path, int permissions) {
    if (ensemble_.committed().find(path) != nullptr || over()) return;
    Acl acl;
    acl.permissions = permissions;
    ensemble_.make(parent_of(path));
    ensemble_.make(path, {acl});
    world_.in(200 * kMilli, nullptr, [this, path, permissions] { make_closed_directory(path, permissions); });
}

void MisuseWorkload::one_round(Worker& worker) {
    if (plan_.has(Fault::stalls) && worker.rng.one_in(2)) return ask_who_holds(worker);
    switch (worker.rng.below(12)) {
        case 0: return lock_and_unlock(worker);
        case 1: return unlock_anyway(worker);
        case 2: return enter_what_was_lost(worker);
        case 3: return share_what_was_lost(worker);
        case 4: return lock_twice(worker);
        case 5:
        case 6: return name_a_path_twice(worker);
        case 7: return listen_late(worker);
        case 8: return be_refused(worker);
        default: return hold_and_misuse(worker);
    }
}

ExclusiveMutex& MisuseWorkload::some_mutex(Worker& worker) {
    return worker.rng.one_in(2) ? *locks(worker).mutex : *shared_[static_cast<std::size_t>(worker.process.number())];
}

Workload::Ways MisuseWorkload::ways(ExclusiveMutex& mutex) {
    return {[&] { return mutex.acquire(); },
            [&](Deadline deadline, std::stop_token stop) { return mutex.try_acquire_until(deadline, std::move(stop)); },
            [&](Deadline deadline, auto done) { mutex.acquire_async(deadline, {}, std::move(done)); }};
}

/// One of few requests, so that no other one wakes a server that has forgotten to answer it.
void MisuseWorkload::ask_who_holds(Worker& worker) {
    const SimTime start = world_.now();
    {
        const Call call(judge_, worker, "participants()");
        static_cast<void>(some_mutex(worker).participants());
    }
    check_prompt(worker, world_.now() - start);
}

// ---- while something is held --------------------------------------------------------------------------------------

void MisuseWorkload::hold_and_misuse(Worker& worker) {
    ExclusiveMutex& mutex = some_mutex(worker);
    Grant grant = take(worker, ways(mutex));
    if (!grant) return;
    hold(worker, std::move(grant), {Claim::alone(kMutex)}, [&](const Grant& held) {
        worker.rng.one_in(2) ? unlock_the_grant(worker, mutex, held) : wait_beside_a_grant(worker);
    });
}

/// unlock() undoes lock(), and nothing else.
void MisuseWorkload::unlock_the_grant(Worker& worker, ExclusiveMutex& mutex, const Grant& grant) {
    const bool held = grant.held();
    if (mutex.token() != 0) judge_.violation("owner", worker.name + ": has locked what it has a grant of");
    if (kUnlocksAnyway) mutex.unlock();
    if (held && quiet() && !grant.held()) {
        judge_.violation("owner", worker.name + ": unlock() took away what a grant holds");
    }
}

/// A grant has no owner, so only the deadline ends this wait if it is a deadlock.
void MisuseWorkload::wait_beside_a_grant(Worker& worker) {
    MultiLock more(worker.process.session(), {{kPaths[kReadWrite], MultiLock::As::exclusive}});
    const Call call(judge_, worker, "try_acquire_until() of a set beside a grant");
    (void)more.try_acquire_until(worker.process.deadline_in(worker.rng.between(1, 2 * kSecond)));
}

/// Those who are in the way may be waiting for what this one has locked.
void MisuseWorkload::wait_for_more(Worker& worker) {
    MultiLock more(worker.process.session(), {{kPaths[kReadWrite], MultiLock::As::exclusive}});
    try {
        const Call call(judge_, worker, "acquire() of a set after lock()");
        const Grant impossible = more.acquire();
        judge_.violation("deadlock", worker.name + ": waited for a set while it had locked something");
    } catch (const Error& error) {
        if (error.errc() != Errc::would_deadlock) throw;
    }
}

/// By one object for all fibers of the process, some of whom unlock what they have not locked.
void MisuseWorkload::lock_and_unlock(Worker& worker) {
    ExclusiveMutex& mutex = *shared_[static_cast<std::size_t>(worker.process.number())];
    bool locked = false;
    {
        const Call call(judge_, worker, "try_lock_for");
        locked = mutex.try_lock_for(Nanoseconds(worker.rng.between(0, 3 * kSecond)));
    }
    if (!locked) return;
    const FencingToken token = mutex.token();
    if (worker.rng.one_in(2)) wait_for_more(worker);
    world_.sleep(&worker.process.actor(), hold_time(worker.rng));
    if (mutex.token() != token)
        judge_.violation("owner", worker.name + ": somebody else has unlocked what it has locked");
    mutex.unlock();
}

void MisuseWorkload::unlock_anyway(Worker& worker) {
    ExclusiveMutex& mutex = *shared_[static_cast<std::size_t>(worker.process.number())];
    if (mutex.token() != 0) judge_.violation("owner", worker.name + ": has a hold that it has not acquired");
    if (kUnlocksAnyway) mutex.unlock();
}

// ---- after a loss -------------------------------------------------------------------------------------------------

void MisuseWorkload::enter_what_was_lost(Worker& worker) {
    ExclusiveMutex& mutex = some_mutex(worker);
    {
        const Call call(judge_, worker, "try_lock_for, to lose it");
        if (!mutex.try_lock_for(Nanoseconds(worker.rng.between(0, 3 * kSecond)))) return;
    }
    const std::unique_lock<ExclusiveMutex> unlocks(mutex, std::adopt_lock);
    const FencingToken token = mutex.token();
    if (const Node* const directory = ensemble_.committed().find(kPaths[kMutex])) {
        const auto children = directory->children;
        for (const std::string& child : children) {
            const std::string path = kPaths[kMutex] + std::string("/") + child;
            const Node* const node = ensemble_.committed().find(path);
            if (node != nullptr && node->czxid == token) ensemble_.remove(path);
        }
    }
    const SimTime until = world_.now() + 2 * plan_.timeout_ms * kMilli;
    while (mutex.held_by_caller() && world_.now() < until) world_.sleep(&worker.process.actor(), 50 * kMilli);
    if (mutex.held_by_caller()) return;  // the deletion got lost
    try {
        const Call call(judge_, worker, "lock() again after the loss");
        mutex.lock();
        judge_.violation("re-entry", worker.name + ": locked again what was lost");
        mutex.unlock();
    } catch (const Error& error) {
        if (error.errc() != Errc::lock_lost) throw;
    }
}

void MisuseWorkload::lose_connections_for(Worker& worker, SimTime duration) {
    Actor& actor = worker.process.actor();
    world_.in(worker.rng.between(0, 5 * kMilli), nullptr, [this, &worker, &actor, duration] {
        if (over() || worker.process.dead()) return;
        world_.note(&actor, "reaches nobody", static_cast<std::uint64_t>(duration / kMilli));
        for (int id = 0; id < ensemble_.size(); ++id) {
            ensemble_.network().block(actor, id, true, true);
            world_.in(duration, nullptr, [this, &worker, &actor, id] {
                if (!worker.process.dead()) ensemble_.network().block(actor, id, false, false);
            });
        }
    });
}

/// The share is asked for while the lock is held, and its answer comes when that is over. Its node was made beside the
/// writer's, so that nobody got in between; but whoever was told of a loss must not be handed anything of what it lost.
void MisuseWorkload::share_what_was_lost(Worker& worker) {
    ReadWriteLock& lock = *locks(worker).read_write;
    Grant alone;
    {
        const Call call(judge_, worker, "try_acquire_until, alone");
        alone = lock.try_acquire_until(worker.process.deadline_in(2 * plan_.timeout_ms * kMilli));
    }
    if (!alone) return;
    const SimTime timeout = plan_.timeout_ms * kMilli;
    SimTime told = kForever;
    Grant share;
    {
        const Ended ended{judge_, judge_.granted(Claim::alone(kReadWrite), worker.process, alone)};
        if (!judge_.act(ended.ticket)) return;
        const std::stop_callback listens(alone.lost(), [&] { told = world_.now(); });
        if (plan_.has(Fault::silent_all)) lose_connections_for(worker, worker.rng.between(timeout / 2, timeout));
        const Call call(judge_, worker, "downgrade");
        share = lock.downgrade(alone, worker.process.deadline_in(3 * timeout));
        const bool stopped = plan_.has(Fault::pause) || plan_.has(Fault::pause_in_code);
        // What was on its way to this fiber when the loss was told.
        if (share && !stopped && told != kForever && world_.now() - told > 50 * kMilli) {
            judge_.violation("share", worker.name + ": has a share of what it was told to have lost " +
                                          std::to_string((world_.now() - told) / kMilli) + " ms before");
        }
    }
    alone.release();
    if (share) hold(worker, std::move(share), {Claim::shared(kReadWrite)});
}

/// A mutex of leases has no owner, and so whoever has lost it may lock it again; each lock has an unlock of its own.
void MisuseWorkload::lock_twice(Worker& worker) {
    SemaphoreMutex& mutex = *locks(worker).private_one;
    const auto lock = [&] {
        const Call call(judge_, worker, "try_lock_for of leases");
        return mutex.try_lock_for(std::chrono::seconds(10));
    };
    if (!lock()) return;
    const std::string directory = mutex.path() + "/leases";
    if (const Node* const node = ensemble_.committed().find(directory)) {
        const auto children = node->children;
        for (const std::string& child : children) ensemble_.remove(directory + "/" + child);
    }
    bool twice = false;
    try {
        twice = lock();
    } catch (const Error&) {
        mutex.unlock();
        throw;
    }
    if (twice) {
        const FencingToken second = mutex.token();
        mutex.unlock();
        if (mutex.token() != second)
            judge_.violation("owner", worker.name + ": of two locks, one unlock has given back the later one, or both");
    }
    mutex.unlock();
    if (mutex.token() != 0) judge_.violation("owner", worker.name + ": unlocked as often as locked, and has a lock");
}

// ---- what is asked for --------------------------------------------------------------------------------------------

void MisuseWorkload::name_a_path_twice(Worker& worker) {
    Rng& rng = worker.rng;
    const auto as = [&] { return rng.one_in(2) ? MultiLock::As::exclusive : MultiLock::As::shared; };
    std::vector<MultiLock::Member> members;
    for (auto i = rng.between(1, 3); i > 0; --i) members.push_back({kPaths[kMutex], MultiLock::As::mutex});
    bool alone = false;
    for (auto i = rng.between(0, 3); i > 0; --i) {
        members.push_back({kPaths[kReadWrite], as()});
        alone = alone || members.back().as == MultiLock::As::exclusive;
    }
    std::vector<Claim> claims{Claim::alone(kMutex)};
    if (members.back().path == kPaths[kReadWrite])
        claims.push_back(alone ? Claim::alone(kReadWrite) : Claim::shared(kReadWrite));
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[rng.below(i)]);
    MultiLock lock(worker.process.session(), std::move(members), plan_.limits_of(worker.process.number()));
    const Ways usual{[&] { return lock.acquire(); },
                     [&](Deadline deadline, std::stop_token stop) { return lock.try_acquire_until(deadline, stop); },
                     {}};
    if (Grant grant = take(worker, usual)) hold(worker, std::move(grant), claims);
}

/// It is asked to give way before it wants to know of that.
void MisuseWorkload::listen_late(Worker& worker) {
    Grant grant = take(worker, ways(some_mutex(worker)));
    if (!grant) return;
    const Ended ended{judge_, judge_.granted(Claim::alone(kMutex), worker.process, grant)};
    world_.sleep(&worker.process.actor(), worker.rng.between(0, 2 * kSecond));
    ensemble_.write(grant.node(), std::string(internal::kRevocationRequest));
    world_.sleep(&worker.process.actor(), worker.rng.between(100 * kMilli, kSecond));
    const std::stop_token asked = grant.revocation();
    const SimTime until = world_.now() + kSecond;
    while (!asked.stop_requested() && world_.now() < until) world_.sleep(&worker.process.actor(), 50 * kMilli);
    if (quiet() && judge_.act(ended.ticket) && !asked.stop_requested())
        judge_.violation("revocation", worker.name + ": was asked to give way before it listened, and is not told");
}

// ---- without permission -------------------------------------------------------------------------------------------

Grant MisuseWorkload::ask_closed(Worker& worker, const std::string& path, Deadline deadline) {
    Session& session = worker.process.session();
    const Call call(judge_, worker, "try_acquire_until without permission");
    switch (worker.rng.below(3)) {
        case 0: return ExclusiveMutex(session, path).try_acquire_until(deadline);
        case 1: return ReadWriteLock(session, path).try_acquire_until(deadline);
        default: {
            std::vector<MultiLock::Member> members{{path, MultiLock::As::mutex}};
            // Of which a set has to wait for others first, if its own nodes are made.
            if (path == kNoCreate) members.push_back({kPaths[kReadWrite], MultiLock::As::shared});
            return MultiLock(session, std::move(members)).try_acquire_until(deadline);
        }
    }
}

void MisuseWorkload::be_refused(Worker& worker) {
    // Who cannot list cannot look for what it may have made.
    const bool unreadable = quiet() && worker.rng.one_in(2);
    const std::string path = unreadable ? kNoRead : kNoCreate;
    if (ensemble_.committed().find(path) == nullptr) return;
    // Time enough for the servers to find their leader.
    const SimTime start = world_.now(), limit = worker.rng.between(6 * kSecond, 10 * kSecond);
    try {
        const Grant grant = ask_closed(worker, path, worker.process.deadline_in(limit));
        if (grant && !unreadable) judge_.violation("refused", worker.name + ": holds what it may not create");
        // Alone in the directory nobody needs to list it.
        if (!grant && quiet()) judge_.violation("refused", worker.name + ": has no permission, and is not told");
        if (grant) world_.sleep(&worker.process.actor(), worker.rng.between(0, kSecond));
    } catch (const Error& error) {
        if (error.errc() != Errc::no_permission) throw;
        if (quiet() && world_.now() - start > 3 * kSecond)
            judge_.violation("refused", worker.name + ": is told only late that it has no permission");
    }
}

}  // namespace zkrecipes::sim
