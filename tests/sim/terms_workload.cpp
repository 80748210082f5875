#include "sim/terms_workload.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::sim {
namespace {

using Kind = TermsHistory::Kind;
using State = TermsHistory::State;

std::vector<std::string> directories_of(const std::vector<std::string>& paths) {
    std::vector<std::string> directories;
    for (const std::string& path : paths) {
        directories.push_back(path + "/locks");
        directories.push_back(path + "/leases");
    }
    return directories;
}

std::string number_text(std::int32_t number) { return "{\"v\":1,\"leases\":" + std::to_string(number) + "}"; }

}  // namespace

TermsWorkload::TermsWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, directories_of(lock_paths(plan))),
      paths_(lock_paths(plan)),
      empty_at_version_(paths_.size()),
      operator_(world.fork("operator of terms")) {
    // A server that is cut off from the others goes on answering reads.
    for (const std::string& path : paths_) terms_.emplace_back(path + "/leases", quiet() ? kSecond : 60 * kSecond);
    const auto number = static_cast<std::int32_t>(operator_.between(1, kMostLeases - 1));
    for (const auto& worker : workers_) {
        auto& all = objects_.emplace_back(paths_.size());
        for (std::size_t i = 0; i < paths_.size(); ++i) make(*worker, static_cast<int>(i), all[i], number);
    }
    ensemble_.on_commit = [this](const Txn& txn, const DataTree& tree) { committed(txn, tree); };
}

void TermsWorkload::make(Worker& worker, int place, Object& object, std::int32_t number) {
    object.semaphore = std::make_unique<Semaphore>(worker.process.session(), paths_[static_cast<std::size_t>(place)],
                                                   number, plan_.limits_of(worker.process.number()));
    object.made_for = number;
    object.made_at = world_.now();
    object.agreed_in = 0;
}

std::int32_t TermsWorkload::number_now(int place) const {
    const State& state = terms_[static_cast<std::size_t>(place)].now();
    return state.kind == Kind::number ? state.number : 3;
}

void TermsWorkload::one_round(Worker& worker) {
    const auto place = static_cast<int>(worker.rng.below(paths_.size()));
    switch (worker.rng.below(12)) {
        case 0:
        case 1: return change(worker, place);
        case 2: return ask(worker, place);
        case 3:
        case 4: return use_another_number(worker, place);
        case 5: write_nonsense(place); [[fallthrough]];
        default: return use(worker, place);
    }
}

void TermsWorkload::use(Worker& worker, int place) {
    Object& own = object(worker, place);
    if (worker.rng.one_in(12)) make(worker, place, own, number_now(place));
    acquire_and_hold(worker, place, own);
}

void TermsWorkload::use_another_number(Worker& worker, int place) {
    Object other;
    make(worker, place, other, number_now(place) % kMostLeases + 1);
    acquire_and_hold(worker, place, other);
}

// ---- acquiring ----------------------------------------------------------------------------------------------------

void TermsWorkload::acquire_and_hold(Worker& worker, int place, Object& object) {
    Rng& rng = worker.rng;
    Asked asked;
    asked.place = place;
    asked.since = world_.now();
    asked.wanted = static_cast<std::int32_t>(rng.between(1, rng.one_in(4) ? kMostLeases + 1 : number_now(place)));
    Grant grant;
    try {
        grant = acquire(worker, object, asked);
    } catch (const Error& error) {
        if (error.errc() != Errc::bad_option && error.errc() != Errc::bad_data) throw;
        check_refusal(worker, asked, object, error.errc());
        // Started again, with what holds now.
        return make(worker, place, object, number_now(place));
    }
    if (!grant) return check_empty_hands(worker, asked, object);
    check_grant(worker, asked, object, grant);
    agrees(object, place, asked.since);
    hold(worker, std::move(grant), {Claim::leases(place, asked.wanted, kMostLeases)});
}

Grant TermsWorkload::acquire(Worker& worker, Object& object, Asked& asked) {
    Rng& rng = worker.rng;
    Semaphore& semaphore = *object.semaphore;
    const auto kind = rng.below(5);
    const std::string what = " " + std::to_string(asked.wanted) + " leases";
    if (kind == 0) {
        const Call call(judge_, worker, "acquire()" + what);
        return semaphore.acquire(asked.wanted);
    }
    if (kind == 1) {
        const Call call(judge_, worker, "try" + what);
        return semaphore.try_acquire(asked.wanted);
    }
    Limits limits;
    limits.limit = rng.one_in(2) ? rng.between(0, 500 * kMilli) : rng.between(0, 3 * plan_.timeout_ms * kMilli);
    asked.limit = limits.limit;
    const auto disturbed = worker.process.disturbances;
    Grant grant;
    {
        const Call call(judge_, worker, "try_acquire_until(" + std::to_string(limits.limit / kMilli) + " ms)" + what);
        grant = semaphore.try_acquire_until(asked.wanted, worker.process.deadline_in(limits.limit));
    }
    check_punctual(worker, limits, asked.since, disturbed, !grant);
    return grant;
}

void TermsWorkload::agrees(Object& object, int place, SimTime since) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    const std::int64_t directory = terms.now().directory;
    const bool one = terms.all_since(since, [&](const State& state) { return state.directory == directory; });
    object.agreed_in = one ? directory : 0;
}

/// Whoever has agreed follows each change; nobody else takes leases, nor waits for them, by another number.
void TermsWorkload::check_refusal(const Worker& worker, const Asked& asked, const Object& object, Errc why) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(asked.place)];
    const bool agreed = object.agreed_in != 0 && terms.all_since(asked.since, [&](const State& state) {
        return state.directory == object.agreed_in;
    });
    const bool justified = terms.any_since(asked.since, [&](const State& state) {
        if (why == Errc::bad_data) return state.kind == Kind::nonsense;
        if (state.kind != Kind::number) return state.kind != Kind::nonsense;  // what the object knew of before
        return state.number < asked.wanted || (state.number != object.made_for && !agreed);
    });
    if (justified) return;
    judge_.violation("terms", worker.name + ": is refused " + std::to_string(asked.wanted) + " leases of " +
                                  std::to_string(terms.now().number) +
                                  (why == Errc::bad_data ? ", because of data that are no number"
                                                         : ", although it follows their number"));
}

void TermsWorkload::check_grant(const Worker& worker, const Asked& asked, const Object& object, const Grant& grant) {
    if (const auto found = beyond_limit_.find(grant.token()); found != beyond_limit_.end())
        judge_.violation("terms", worker.name + ": holds leases, " + found->second);
    const TermsHistory& terms = terms_[static_cast<std::size_t>(asked.place)];
    const bool never_agreed = object.agreed_in == 0 && terms.all_since(object.made_at, [&](const State& state) {
        return state.kind == Kind::number && state.number != object.made_for;
    });
    if (never_agreed) {
        judge_.violation("terms", worker.name + ": takes leases by an object for " + std::to_string(object.made_for) +
                                      " where everybody else has agreed on " + std::to_string(terms.now().number));
    }
}

/// Those who can never be served are told so at once. (A try looks at the queue first.)
void TermsWorkload::check_empty_hands(const Worker& worker, const Asked& asked, const Object& object) {
    if (!quiet() || asked.limit.value_or(0) < 2 * kSecond) return;
    const TermsHistory& terms = terms_[static_cast<std::size_t>(asked.place)];
    const bool too_many = terms.all_since(asked.since, [&](const State& state) {
        return state.kind == Kind::nonsense || (state.kind == Kind::number && state.number < asked.wanted);
    });
    const bool another = object.agreed_in == 0 && terms.all_since(object.made_at, [&](const State& state) {
        return state.kind == Kind::number && state.number != object.made_for;
    });
    if (too_many || another) {
        judge_.violation("refused", worker.name + ": waits for " + std::to_string(asked.wanted) + " leases of " +
                                        std::to_string(terms.now().number) + " by an object for " +
                                        std::to_string(object.made_for) + ", and is not refused");
    }
}

// ---- the number ---------------------------------------------------------------------------------------------------

void TermsWorkload::change(Worker& worker, int place) {
    const auto number = static_cast<std::int32_t>(worker.rng.between(1, kMostLeases));
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    Object& own = object(worker, place);
    const SimTime since = world_.now();
    try {
        const Call call(judge_, worker, "set_leases(" + std::to_string(number) + ")");
        own.semaphore->set_leases(number, worker.process.deadline_in(5 * kSecond));
    } catch (const Error& error) {
        const auto nonsense = [](const State& state) { return state.kind == Kind::nonsense; };
        const bool justified =
            error.errc() == Errc::unreachable || (error.errc() == Errc::bad_data && terms.any_since(since, nonsense));
        if (!justified) throw;
        return;
    }
    if (!terms.any_since(since, [&](const State& s) { return s.kind == Kind::number && s.number == number; }))
        judge_.violation("terms", worker.name + ": has set a number of leases that nobody has seen");
    agrees(own, place, since);
}

void TermsWorkload::ask(Worker& worker, int place) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    const SimTime since = world_.now();
    std::int32_t number = 0;
    try {
        const Call call(judge_, worker, "leases()");
        number = object(worker, place).semaphore->leases(worker.process.deadline_in(5 * kSecond));
    } catch (const Error& error) {
        const auto nonsense = [](const State& state) { return state.kind == Kind::nonsense; };
        const bool justified =
            error.errc() == Errc::unreachable || (error.errc() == Errc::bad_data && terms.any_since(since, nonsense));
        if (!justified) throw;
        return;
    }
    const auto so = [&](const State& state) {
        return state.kind == Kind::number ? state.number == number : state.kind != Kind::nonsense;
    };
    if (!terms.any_since(since, so))
        judge_.violation("terms", worker.name + ": reads of " + std::to_string(number) + " leases");
}

// ---- what ZooKeeper's history says, and operators -----------------------------------------------------------------

void TermsWorkload::committed(const Txn& txn, const DataTree& tree) {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
        const int place = static_cast<int>(i);
        terms_[i].committed(tree, world_.now());
        const Node* const directory = tree.find(terms_[i].directory());
        empty_at_version_[i] = directory != nullptr && directory->children.empty() ? directory->version : -1;
        std::vector<std::string> leases;
        for (const Effect& effect : txn.effects) {
            if (effect.kind != Effect::Kind::create) continue;
            const std::string parent = parent_of(effect.path);
            if (parent == terms_[i].directory() && effect.path.find("-lease-") != std::string::npos)
                leases.push_back(effect.path);
            // Somebody is about to look how many there are.
            if (parent != paths_[i] + "/locks" || !operator_.one_in(8)) continue;
            const bool anew = plan_.has(Fault::delete_node) && operator_.one_in(2);
            world_.in(operator_.between(0, 10 * kMilli), nullptr,
                      [this, place, anew] { anew ? make_anew(place) : lower(place); });
        }
        if (!leases.empty()) taken(place, leases, txn, tree);
    }
}

void TermsWorkload::taken(int place, const std::vector<std::string>& leases, const Txn& txn, const DataTree& tree) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    const std::size_t all = tree.find(terms.directory())->children.size();
    if (terms.now().kind != Kind::number) {
        beyond_limit_[txn.zxid] = "which were taken where nobody knows how many there are";
    } else if (std::cmp_greater(all, terms.now().number)) {
        beyond_limit_[txn.zxid] = "of which " + std::to_string(leases.size()) + " were taken, and then there were " +
                                  std::to_string(all) + " of " + std::to_string(terms.now().number);
    }
    if (leases.size() < 2 || !plan_.has(Fault::delete_node) || !operator_.one_in(4)) return;
    const std::string& lease = leases[operator_.below(leases.size())];
    world_.in(0, nullptr, [this, lease, owner = txn.session] { delete_behind_a_taking(lease, owner); });
}

/// Its taker does not learn that it has it, and finds out later.
void TermsWorkload::delete_behind_a_taking(const std::string& lease, SessionId owner) {
    if (over()) return;
    for (const auto& process : processes_) {
        if (process->dead() || process->closing || process->session().info().session_id != owner) continue;
        ensemble_.network().reset(process->actor(), -1);
    }
    world_.note(nullptr, "an operator deletes one of several leases");
    ensemble_.remove(lease);
}

void TermsWorkload::lower(int place) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    if (over() || terms.now().kind != Kind::number || terms.now().number == 1) return;
    world_.note(nullptr, "an operator lowers the number of leases");
    ensemble_.write(terms.directory(),
                    number_text(static_cast<std::int32_t>(operator_.between(1, terms.now().number - 1))));
}

/// Between a look at the empty directory and the taking, which then finds the version that it expects.
void TermsWorkload::make_anew(int place) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    const std::int32_t version = empty_at_version_[static_cast<std::size_t>(place)];
    if (over() || version < 0 || terms.now().kind == Kind::nonsense) return;
    world_.note(nullptr, "an operator makes the directory of leases anew, perhaps with another number");
    const std::string number = number_text(static_cast<std::int32_t>(operator_.between(1, kMostLeases)));
    ensemble_.remove(terms.directory());
    ensemble_.make(terms.directory(), open_acl(), CreateMode::container);
    for (std::int32_t written = 0; written < version; ++written) ensemble_.write(terms.directory(), number);
    ensemble_.make(terms.directory() + "/change");  // so that the servers remove this container, too, in the end
    clear_change(place);
}

/// Until it is gone: a leader that ends forgets what was proposed last.
void TermsWorkload::clear_change(int place) {
    const std::string change = terms_[static_cast<std::size_t>(place)].directory() + "/change";
    ensemble_.remove(change);
    world_.in(300 * kMilli, nullptr, [this, place, change] {
        if (ensemble_.committed().find(change) != nullptr) clear_change(place);
    });
}

void TermsWorkload::write_nonsense(int place) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    if (over() || terms.now().kind != Kind::number) return;
    static const char* const kTexts[] = {"five", "{\"v\":1,\"leases\":0}", "{\"v\":1,\"leases\":2", "{}", "3\n"};
    const std::int32_t number = terms.now().number;
    ensemble_.write(terms.directory(), kTexts[operator_.below(std::size(kTexts))]);
    world_.in(operator_.between(kMilli, 4 * kSecond), nullptr, [this, place, number] { mend(place, number); });
}

void TermsWorkload::mend(int place, std::int32_t number) {
    const TermsHistory& terms = terms_[static_cast<std::size_t>(place)];
    if (terms.now().kind != Kind::nonsense) return;
    ensemble_.write(terms.directory(), number_text(number));
    world_.in(300 * kMilli, nullptr, [this, place, number] { mend(place, number); });
}

}  // namespace zkrecipes::sim
