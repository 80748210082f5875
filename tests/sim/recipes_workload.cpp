#include "sim/recipes_workload.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "core/queue/node_name.hpp"
#include "sim/impostor.hpp"

namespace zkrecipes::sim {
namespace {

/// The three ways, of a lock that has the usual names for them.
template <class Lock, class... Count>
auto usual_ways(Lock& lock, Count... count) {
    return std::make_tuple([&lock, count...] { return lock.acquire(count...); },
                           [&lock, count...](Deadline deadline, std::stop_token stop) {
                               return lock.try_acquire_until(count..., deadline, std::move(stop));
                           },
                           [&lock, count...](Deadline deadline, std::function<void(AcquireResult)> done) {
                               lock.acquire_async(count..., deadline, {}, std::move(done));
                           });
}

bool has_all_kinds(const Plan& plan) {
    return plan.workload == "mixed" || plan.workload == "strangers" || plan.workload == "keeper" ||
           plan.workload == "numbers";
}

/// As kazoo names it: `<uuid, 32 digits>__lock__<sequence>`, or `__rlock__`.
bool is_kazoo_name(const std::string& name) {
    constexpr std::size_t kUuid = 32, kDigits = 10;
    if (name.size() < kUuid + kDigits || name.find_first_not_of("0123456789abcdef") != kUuid) return false;
    const std::string pattern = name.substr(kUuid, name.size() - kUuid - kDigits);
    return pattern == "__lock__" || pattern == "__rlock__";
}

}  // namespace

RecipesWorkload::RecipesWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, directories_of(plan)), places_(places_of(plan)) {
    if (plan.has(Fault::end_of_numbers)) use_up_numbers();
    if (plan.has(Fault::contenders)) invite_contenders();
    if (plan.workload == "kazoo") ensemble_.listen([this](const Txn& txn) { check_names(txn); });
    for (const auto& worker : workers_) {
        Session& session = worker->process.session();
        LockOptions options = plan.locks_of(worker->process.number());
        if (plan.workload == "kazoo") options.dialect = Dialect::kazoo;
        const LockOptions limits = plan.limits_of(worker->process.number());
        auto& all = locks_.emplace_back();
        for (const Place& place : places_) {
            Locks& own = all.emplace_back();
            switch (place.kind) {
                case Kind::mutex: own.mutex = std::make_unique<ExclusiveMutex>(session, place.path, options); break;
                case Kind::read_write:
                    own.read_write = std::make_unique<ReadWriteLock>(session, place.path, options);
                    own.mutex = std::make_unique<ExclusiveMutex>(session, place.path, options);  // they share the queue
                    break;
                case Kind::semaphore:
                    own.semaphore = std::make_unique<Semaphore>(session, place.path, place.leases, limits);
                    if (place.leases == 1) own.single = std::make_unique<SemaphoreMutex>(session, place.path, limits);
                    break;
                case Kind::election: {
                    ElectionOptions candidate;
                    candidate.id = worker->name;
                    candidate.max_hold = limits.max_hold;
                    if (worker->number % 2 == 1) candidate.when_suspended = WhenSuspended::step_down;
                    own.election = std::make_unique<LeaderElection>(session, place.path, std::move(candidate));
                    observe(worker->process, *own.election);
                    break;
                }
            }
        }
    }
}

std::vector<RecipesWorkload::Place> RecipesWorkload::places_of(const Plan& plan) {
    Rng rng = Rng(plan.seed).fork("places");
    std::vector<Place> places;
    for (const std::string& path : lock_paths(plan)) {
        Place place;
        place.path = path;
        if (plan.workload == "read_write") place.kind = Kind::read_write;
        if (plan.workload == "semaphore") place.kind = Kind::semaphore;
        if (plan.workload == "kazoo") place.kind = rng.one_in(2) ? Kind::mutex : Kind::read_write;
        if (plan.workload == "multi") place.kind = rng.one_in(2) ? Kind::mutex : Kind::read_write;
        if (plan.workload == "election") place.kind = Kind::election;
        if (has_all_kinds(plan)) place.kind = static_cast<Kind>(rng.below(3));
        if (place.kind == Kind::semaphore) place.leases = static_cast<int>(rng.between(1, 4));
        places.push_back(std::move(place));
    }
    return places;
}

std::vector<std::string> RecipesWorkload::directories_of(const Plan& plan) {
    std::vector<std::string> directories;
    for (const Place& place : places_of(plan)) {
        if (place.kind == Kind::semaphore) {
            directories.push_back(place.path + "/locks");
            directories.push_back(place.path + "/leases");
        } else {
            directories.push_back(place.path);
        }
    }
    return directories;
}

/// Where the library begins to refuse them, or where the servers have no others.
void RecipesWorkload::use_up_numbers() {
    Rng rng = Rng(plan_.seed).fork("numbers");
    for (const Place& place : places_) {
        if (rng.one_in(4)) continue;
        used_up_.insert(place.path);
        const std::string directory = place.path + (place.kind == Kind::semaphore ? "/locks" : "");
        const std::int64_t first = rng.one_in(2) ? internal::kSequenceLimit - rng.between(1, 60)
                                                 : std::numeric_limits<std::int32_t>::max() - rng.between(0, 20);
        for (int id = 0; id < ensemble_.size(); ++id)
            ensemble_.server(id).tree_for_tests().count_from(directory, static_cast<std::int32_t>(first));
    }
}

void RecipesWorkload::invite_contenders() {
    Rng rng = Rng(plan_.seed).fork("contenders");
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Place& place = places_[i];
        if (place.kind == Kind::semaphore || rng.one_in(3)) continue;
        Contender::Style style = Contender::Style::same_number;
        if (plan_.workload == "kazoo") {
            style = place.kind == Kind::mutex ? Contender::Style::kazoo_lock
                    : rng.one_in(2)           ? Contender::Style::kazoo_write
                                              : Contender::Style::kazoo_read;
        }
        contenders_.push_back(
            std::make_unique<Contender>(ensemble_, plan_, judge_, static_cast<int>(i), place.path, style));
    }
}

void RecipesWorkload::trouble_begins() {
    for (const auto& each : contenders_) each->start();
}

void RecipesWorkload::trouble_ends() {
    for (const auto& each : contenders_) each->stop();
}

/// kazoo's tools show and sort what they find by these names.
void RecipesWorkload::check_names(const Txn& txn) {
    for (const Effect& effect : txn.effects) {
        if (effect.kind != Effect::Kind::create || effect.owner == 0) continue;
        if (!is_kazoo_name(name_of(effect.path))) judge_.violation("names", effect.path + " is no name of kazoo's");
    }
}

void RecipesWorkload::one_round(Worker& worker) {
    Rng& rng = worker.rng;
    const bool several = plan_.workload == "multi" ? !rng.one_in(3) : has_all_kinds(plan_) && rng.one_in(3);
    if (several) return use_several(worker);
    const auto place = static_cast<int>(rng.below(places_.size()));
    if (plan_.has(Fault::impostor) && rng.one_in(6)) return look_at(worker, place);
    switch (places_[static_cast<std::size_t>(place)].kind) {
        case Kind::mutex: return use_mutex(worker, place);
        case Kind::read_write: return use_read_write(worker, place);
        case Kind::semaphore: return use_semaphore(worker, place);
        case Kind::election: return use_election(worker, place);
    }
}

/// Who is there; of nodes that are none of ours nothing but their data as they are.
void RecipesWorkload::look_at(Worker& worker, int place) {
    Locks& own = locks(worker, place);
    const Deadline deadline = worker.process.deadline_in(2 * plan_.timeout_ms * kMilli);
    std::vector<Participant> all;
    try {
        const Call call(judge_, worker, "participants");
        all = own.semaphore ? own.semaphore->participants(deadline)
              : own.mutex   ? own.mutex->participants(deadline)
                            : own.read_write->participants(deadline);
    } catch (const Error& error) {
        if (error.errc() != Errc::unreachable) throw;
    }
    for (const Participant& each : all) {
        const bool foreign = each.raw == Impostor::kSays;
        const bool read =
            !each.id.empty() || !each.host.empty() || each.pid != 0 || !each.name.empty() || !each.labels.empty();
        if (foreign == read) judge_.violation("raw", worker.name + ": " + each.path + " is shown as saying " + each.id);
    }
}

void RecipesWorkload::take_and_hold(Worker& worker, const Ways& ways, const std::vector<Claim>& claims,
                                    const std::function<void(const Grant&)>& meanwhile) {
    if (worker.rng.one_in(6)) {
        // What comes on the notifier thread belongs to nobody, so that there is nothing to be re-entered.
        if (Grant grant = take_later(worker, ways)) hold(worker, std::move(grant), claims);
        return;
    }
    if (Grant grant = take(worker, ways)) hold(worker, std::move(grant), claims, meanwhile);
}

void RecipesWorkload::use_mutex(Worker& worker, int place) {
    const auto [wait, before, later] = usual_ways(*locks(worker, place).mutex);
    take_and_hold(worker, {wait, before, later}, {Claim::alone(place)});
}

void RecipesWorkload::use_semaphore(Worker& worker, int place) {
    Locks& own = locks(worker, place);
    const int all = places_[static_cast<std::size_t>(place)].leases;
    if (own.single && worker.rng.one_in(2)) {
        const auto [wait, before, later] = usual_ways(*own.single);
        return take_and_hold(worker, {wait, before, later}, {Claim::leases(place, 1, 1)});
    }
    const int wanted = static_cast<int>(worker.rng.between(1, all));
    const auto [wait, before, later] = usual_ways(*own.semaphore, wanted);
    take_and_hold(worker, {wait, before, later}, {Claim::leases(place, wanted, all)});
}

void RecipesWorkload::use_election(Worker& worker, int place) {
    LeaderElection& election = *locks(worker, place).election;
    if (!worker.rng.one_in(3)) {
        const Ways ways{[&election] { return election.campaign(); },
                        [&election](Deadline deadline, std::stop_token stop) {
                            return election.try_campaign_until(deadline, std::move(stop));
                        },
                        [&election](Deadline deadline, std::function<void(AcquireResult)> done) {
                            election.campaign_async(deadline, {}, std::move(done));
                        }};
        return take_and_hold(worker, ways, {Claim::alone(place)});
    }
    const auto stop = std::make_shared<std::stop_source>();
    world_.in(worker.rng.between(0, 4 * plan_.timeout_ms * kMilli), &worker.process.actor(),
              [stop] { stop->request_stop(); });
    const Call call(judge_, worker, "run()");
    election.run([&](const Grant& leadership, const std::stop_token& over) { lead(worker, place, leadership, over); },
                 stop->get_token());
}

/// Acts until it has had enough or is told to stop; nobody else may lead meanwhile.
void RecipesWorkload::lead(Worker& worker, int place, const Grant& leadership, const std::stop_token& stop) {
    struct Ended {
        Judge& judge;
        Judge::Ticket ticket;
        ~Ended() { judge.ended(ticket); }
    } const ended{judge_, judge_.granted(Claim::alone(place), worker.process, leadership)};
    const SimTime until = world_.now() + hold_time(worker.rng);
    while (judge_.act(ended.ticket) && !stop.stop_requested() && world_.now() < until) {
        world_.sleep(&worker.process.actor(), worker.rng.between(kMilli, 400 * kMilli));
    }
}

/// Whoever is told of a leader is not told of an earlier one later.
void RecipesWorkload::observe(ClientProcess& process, LeaderElection& election) {
    const auto told = std::make_shared<Told>(Told{&process, election.path()});
    told_.push_back(told);
    observers_.push_back(election.observe([this, told](const std::optional<Participant>& leader) {
        if (told->process->dead()) return;
        told->nobody_leads = !leader;
        if (!leader) return;
        if (leader->token <= told->latest) {
            judge_.violation("observer", told->process->name() + ": told of token " + std::to_string(leader->token) +
                                             " after " + std::to_string(told->latest));
        }
        told->latest = leader->token;
    }));
}

/// Everybody was served and has resigned.
void RecipesWorkload::expect_nobody_is_seen_to_lead() {
    const auto wrong = [this]() -> const Told* {
        for (const auto& told : told_) {
            if (usable(*told->process) && !told->nobody_leads) return told.get();
        }
        return nullptr;
    };
    const SimTime limit = world_.now() + 3 * plan_.timeout_ms * kMilli + 60 * kSecond;
    if (world_.run(limit, [&] { return wrong() == nullptr; })) return;
    const Told& told = *wrong();
    judge_.violation("converged", told.process->name() + " is not told that nobody leads " + told.path +
                                      " any more, but of token " + std::to_string(told.latest));
}

void RecipesWorkload::stop_watching() {
    expect_nobody_is_seen_to_lead();
    observers_.clear();
}

void RecipesWorkload::use_read_write(Worker& worker, int place) {
    ReadWriteLock& lock = *locks(worker, place).read_write;
    switch (worker.rng.below(5)) {
        case 0: return alone_then_shared(worker, place);
        case 1: {
            if (worker.rng.one_in(2)) return use_mutex(worker, place);
            const auto [wait, before, later] = usual_ways(lock);
            return take_and_hold(worker, {wait, before, later}, {Claim::alone(place)});
        }
        default: {
            const Ways ways{[&lock] { return lock.acquire_shared(); },
                            [&lock](Deadline deadline, std::stop_token stop) {
                                return lock.try_acquire_shared_until(deadline, std::move(stop));
                            },
                            [&lock](Deadline deadline, std::function<void(AcquireResult)> done) {
                                lock.acquire_shared_async(deadline, {}, std::move(done));
                            }};
            return take_and_hold(worker, ways, {Claim::shared(place)},
                                 [&](const Grant& share) { ask_for_more(worker, lock, share); });
        }
    }
}

/// After lock_shared(), lock() would wait for itself. A grant has no owner: a try beside it finds the lock busy.
void RecipesWorkload::ask_for_more(Worker& worker, ReadWriteLock& lock, const Grant& share) {
    {
        const Call call(judge_, worker, "try_acquire() beside a share");
        const Grant other = lock.try_acquire();
        const bool deleted =
            ensemble_.committed().find(share.node()) == nullptr;  // by an operator; it learns that later
        if (other.held() && share.held() && !deleted)
            judge_.violation("deadlock", worker.name + ": a share became the whole");
    }
    {
        const Call call(judge_, worker, "try_lock_shared()");
        if (!lock.try_lock_shared()) return;
    }
    const std::shared_lock<ReadWriteLock> unlocks(lock, std::adopt_lock);
    try {
        const Call call(judge_, worker, "lock() after lock_shared()");
        lock.lock();
        judge_.violation("deadlock", worker.name + ": locked the whole beside its own share");
        lock.unlock();
    } catch (const Error& error) {
        if (error.errc() != Errc::would_deadlock) throw;
    }
}

/// Has all, takes a share besides, gives up the rest: nobody who wants all gets in between.
void RecipesWorkload::alone_then_shared(Worker& worker, int place) {
    ReadWriteLock& lock = *locks(worker, place).read_write;
    const auto [wait, before, later] = usual_ways(lock);
    Grant alone = take(worker, {wait, before, later});
    if (!alone) return;
    Grant share;
    {
        struct Ended {
            Judge& judge;
            Judge::Ticket ticket;
            ~Ended() { judge.ended(ticket); }
        } const ended{judge_, judge_.granted(Claim::alone(place), worker.process, alone)};
        if (!judge_.act(ended.ticket)) return;
        world_.sleep(&worker.process.actor(), worker.rng.between(0, 500 * kMilli));
        const Call call(judge_, worker, "downgrade");
        share = lock.downgrade(alone, worker.process.deadline_in(worker.rng.between(0, 5 * kSecond)));
        judge_.act(ended.ticket);
    }
    alone.release();
    if (share) hold(worker, std::move(share), {Claim::shared(place)});
}

void RecipesWorkload::use_several(Worker& worker) {
    Rng& rng = worker.rng;
    std::vector<MultiLock::Member> members;
    std::vector<Claim> claims;
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const int place = static_cast<int>(i);
        if (places_[i].kind == Kind::semaphore || places_[i].kind == Kind::election || rng.one_in(3)) continue;
        const bool shared = places_[i].kind == Kind::read_write && rng.one_in(2);
        const auto as = shared                                ? MultiLock::As::shared
                        : places_[i].kind == Kind::read_write ? MultiLock::As::exclusive
                                                              : MultiLock::As::mutex;
        members.push_back({places_[i].path, as});
        claims.push_back(shared ? Claim::shared(place) : Claim::alone(place));
    }
    if (members.empty()) return;
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[rng.below(i)]);
    LockOptions options = plan_.limits_of(worker.process.number());
    if (rng.one_in(4)) {  // nobody may write the nodes of this set, not even a marker
        options.acl = open_acl();
        options.acl->front().permissions = Acl::all & ~Acl::write;
    }
    MultiLock lock(worker.process.session(), std::move(members), std::move(options));
    const auto [wait, before, later] = usual_ways(lock);
    take_and_hold(worker, {wait, before, later}, claims);
}

}  // namespace zkrecipes::sim
