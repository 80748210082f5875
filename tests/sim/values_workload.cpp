#include "sim/values_workload.hpp"

#include <algorithm>
#include <utility>

#include "core/value/big_endian.hpp"

namespace zkrecipes::sim {
namespace {

constexpr const char* kValues = "/values";
constexpr const char* kGuarded = "/guarded";
constexpr const char* kMarks = "/marks";
constexpr const char* kSeed = "0 seed";

VersionedValue as_value(const VersionedCount& count) { return {internal::to_big_endian(count.count), count.version}; }

bool is_that(const NodeState& state, const VersionedValue& value) {
    return state.exists && state.version == value.version && state.data == value.value;
}

std::string describe(const std::optional<VersionedValue>& value) {
    if (!value) return "no node";
    const auto number = value->value.size() <= 8 ? Ledger::number_of(value->value) : std::nullopt;
    return (number ? std::to_string(*number) : value->value) + " of version " + std::to_string(value->version);
}

}  // namespace

// ---- setting up ---------------------------------------------------------------------------------------------------

ValuesWorkload::ValuesWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, directories_of(plan)),
      places_(places_of(plan)),
      history_(world, ensemble_.network()),
      ledger_(judge_, history_) {
    begin_to_record();
    for (const auto& process : processes_) {
        Rng rng = world.fork("objects of " + process->name());
        make_objects(*process, rng, shared_.emplace_back());
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const Kind kind = places_[i].kind;
            if (kind == Kind::value || kind == Kind::count) observe(*process, places_[i], shared_.back()[i]);
        }
    }
    for (const auto& worker : workers_) make_objects(worker->process, worker->rng, own_.emplace_back());
}

std::vector<ValuesWorkload::Place> ValuesWorkload::places_of(const Plan& plan) {
    Rng rng = Rng(plan.seed).fork("places");
    std::vector<Place> places;
    const auto first = rng.below(4);
    for (int i = 0; i < plan.paths; ++i) {
        Place place;
        place.kind = static_cast<Kind>((first + static_cast<std::uint64_t>(i)) % 4);
        const std::string name = "/" + std::string(1, static_cast<char>('a' + i));
        place.path = (place.kind == Kind::guarded ? kGuarded : kValues) + name;
        if (place.kind == Kind::guarded || rng.one_in(3)) place.lock = "/locks" + name;
        place.leader = rng.one_in(2);
        places.push_back(std::move(place));
    }
    return places;
}

/// Not the marks: without them nothing can be done exactly once.
std::vector<std::string> ValuesWorkload::directories_of(const Plan& plan) {
    std::vector<std::string> directories;
    for (const Place& place : places_of(plan)) {
        if (place.kind != Kind::guarded) directories.emplace_back(kValues);
        if (!place.lock.empty()) directories.push_back(place.lock);
    }
    return directories;
}

void ValuesWorkload::begin_to_record() {
    for (const char* directory : {kValues, kGuarded, kMarks}) history_.record(directory);
    Rng rng = world_.fork("versions");
    for (const Place& place : places_) {
        const bool number = place.kind == Kind::count || place.kind == Kind::counter;
        const auto kind = !number                     ? Ledger::Kind::text
                          : place.kind == Kind::count ? Ledger::Kind::four_bytes
                                                      : Ledger::Kind::eight_bytes;
        ledger_.keep(place.path, kind, number ? internal::to_big_endian(std::int32_t{0}) : kSeed);
        if (place.kind == Kind::guarded || !rng.one_in(4)) continue;  // Transaction takes no negative versions
        for (int id = 0; id < ensemble_.size(); ++id) ensemble_.server(id).tree_for_tests().hurry_versions(place.path);
    }
    ensemble_.on_commit = [this](const Txn& txn, const DataTree& tree) {
        history_.committed(txn);
        ledger_.committed(txn, tree);
    };
}

void ValuesWorkload::make_objects(ClientProcess& process, Rng& rng, std::vector<Objects>& all) {
    Session& session = process.session();
    for (const Place& place : places_) {
        Objects& own = all.emplace_back();
        own.exactly_once = rng.one_in(2);
        SharedValueOptions shared;
        CounterOptions counter;
        if (own.exactly_once) shared.idempotent_in = counter.idempotent_in = kMarks;
        if (!place.lock.empty()) {
            counter.lock_path = place.lock;
            counter.conflicts = RetryPolicy::n_times(2, std::chrono::milliseconds(1));
        } else if (rng.one_in(2)) {
            own.attempts = 3;
            counter.conflicts = RetryPolicy::n_times(own.attempts, std::chrono::milliseconds(1));
        }
        if (place.kind == Kind::count) {
            counter.size = CounterSize::four_bytes;
            own.count = std::make_unique<SharedCount>(session, place.path, 0, shared);
        } else if (place.kind != Kind::counter) {
            own.value = std::make_unique<SharedValue>(session, place.path, kSeed, shared);
        }
        if (place.kind == Kind::count || place.kind == Kind::counter) {
            own.counter = std::make_unique<AtomicCounter>(session, place.path, counter);
        }
        if (place.kind != Kind::guarded) continue;
        own.mutex = std::make_unique<ExclusiveMutex>(session, place.lock, plan_.locks_of(process.number()));
        ElectionOptions candidate;
        candidate.max_hold = plan_.max_hold_of(process.number());
        own.election = std::make_unique<LeaderElection>(session, place.lock, std::move(candidate));
    }
}

ValuesWorkload::Objects& ValuesWorkload::objects(Worker& worker, std::size_t place) {
    auto& all = worker.rng.one_in(2) ? own_[worker.number] : shared_[static_cast<std::size_t>(worker.process.number())];
    return all[place];
}

void ValuesWorkload::drop_locks() noexcept {
    observers_.clear();
    own_.clear();
    shared_.clear();
}

void ValuesWorkload::one_round(Worker& worker) {
    const auto number = worker.rng.below(places_.size());
    const Place& place = places_[number];
    Objects& own = objects(worker, number);
    if (place.kind == Kind::guarded) return use_guarded(worker, place, own);
    for (auto times = worker.rng.between(1, 3); times > 0 && !over(); --times) {
        const bool counts = place.kind == Kind::counter || (place.kind == Kind::count && worker.rng.one_in(2));
        counts ? use_counter(worker, place, own) : use_value(worker, place, own);
    }
    world_.sleep(&worker.process.actor(), worker.rng.between(0, 1200 * kMilli));  // a seed is to take few milliseconds
}

// ---- every write --------------------------------------------------------------------------------------------------

std::uint64_t ValuesWorkload::write(Worker& worker, const Place& place, Ledger::Write what, const Attempt& attempt,
                                    const std::function<bool()>& call) {
    what.path = place.path;
    what.who = worker.name + " " + attempt.what;
    const std::uint64_t number = ledger_.begins(std::move(what));
    const std::int64_t session = worker.process.session().info().session_id;
    const std::size_t since = history_.latest(place.path);
    try {
        const bool written = call();
        ledger_.ends(number, written ? Ledger::Outcome::done : Ledger::Outcome::refused);
    } catch (const Error& error) {
        const bool unknown = error.errc() == Errc::outcome_unknown;
        ledger_.ends(number, unknown ? Ledger::Outcome::unknown : Ledger::Outcome::refused);
        if (!expected_failure(worker, place, error, attempt, session, since)) throw;
        if (world_.tracing()) world_.note_text(&worker.process.actor(), error.what());
    }
    return number;
}

bool ValuesWorkload::expected_failure(const Worker& worker, const Place& place, const Error& error,
                                      const Attempt& attempt, std::int64_t session, std::size_t since) {
    const History::States& states = history_.of(place.path);
    switch (error.errc()) {
        case Errc::outcome_unknown: return may_be_unknown(worker, attempt, session);
        case Errc::unreachable: return attempt.limited;
        // Behind a sync each conflict is somebody else's write; only the first may be news of the past.
        case Errc::bad_version:
            return attempt.attempts > 0 && states.size() - 1 - since + 1 >= static_cast<std::size_t>(attempt.attempts);
        case Errc::unsupported:
            return std::any_of(states.begin(), states.end(), [](const NodeState& each) { return each.version == -1; });
        case Errc::bad_option: return at_the_limit_.count(place.path) != 0;  // it does not fit
        default: return false;
    }
}

bool ValuesWorkload::may_be_unknown(const Worker& worker, const Attempt& attempt, std::int64_t session) {
    if (attempt.limited || !usable(worker.process)) return true;
    if (plan_.faults == 0) return false;
    if (!attempt.exactly_once) return true;
    const SessionInfo now = worker.process.session().info();
    return session == 0 || now.session_id != session || now.state == SessionState::lost ||
           now.state == SessionState::connecting;
}

std::optional<std::size_t> ValuesWorkload::find(const std::string& path, std::size_t from,
                                                const std::function<bool(const NodeState&)>& is) const {
    const History::States& states = history_.of(path);
    for (std::size_t i = from; i < states.size(); ++i) {
        if (is(states[i])) return i;
    }
    return std::nullopt;
}

// ---- values and counts --------------------------------------------------------------------------------------------

void ValuesWorkload::use_value(Worker& worker, const Place& place, Objects& own) {
    if (worker.rng.one_in(3)) {
        static_cast<void>(get_value(worker, place, own, some_limits(worker)));
        return;
    }
    place.kind == Kind::count ? put_count(worker, place, own) : put_text(worker, place, own);
}

std::optional<VersionedValue> ValuesWorkload::get_value(Worker& worker, const Place& place, Objects& own,
                                                        const Limits& limits) {
    const std::size_t from = own.seen;
    VersionedValue value;
    try {
        const Call call(judge_, worker, "get()");
        value = own.count ? as_value(own.count->get(limits.deadline, limits.stop))
                          : own.value->get(limits.deadline, limits.stop);
    } catch (const Error& error) {
        if (error.errc() != Errc::unreachable || !limits.any()) throw;
        return std::nullopt;
    }
    const auto position = find(place.path, from, [&](const NodeState& state) { return is_that(state, value); });
    if (!position) {
        judge_.violation("value", worker.name + ": is told " + describe(value) + " of " + place.path +
                                      ", which never was there, or not any more when this object was asked before");
    }
    own.seen = std::max(own.seen, position.value_or(0));
    return value;
}

/// True: written. False: not, also because it took too long.
template <class Shared, class Data>
bool ValuesWorkload::put(Worker& worker, Shared& shared, std::optional<std::int32_t> version, const Data& data,
                         const Limits& limits) {
    if (worker.rng.one_in(3)) {
        const auto result = later<SetResult>(worker, "set_async", [&](std::function<void(SetResult)> done) {
            version ? shared.try_set_async(*version, data, limits.deadline, limits.stop, std::move(done))
                    : shared.set_async(data, limits.deadline, limits.stop, std::move(done));
        });
        return result.value;
    }
    const Call call(judge_, worker, version ? "try_set" : "set");
    if (version) return shared.try_set(*version, data, limits.deadline, limits.stop);
    shared.set(data, limits.deadline, limits.stop);
    return true;
}

void ValuesWorkload::put_text(Worker& worker, const Place& place, Objects& own) {
    const Limits limits = some_limits(worker);
    std::optional<std::int32_t> version;
    if (!worker.rng.one_in(3)) {
        const auto now = get_value(worker, place, own, limits);
        if (!now) return;
        version = now->version;
    }
    const std::string text = Ledger::text_of(ledger_.next_number(), worker.name);
    const std::size_t since = history_.latest(place.path);
    bool refused = false;
    const auto number = write(worker, place, {}, {version ? "try_set" : "set", own.exactly_once, limits.any()}, [&] {
        const bool written = put(worker, *own.value, version, text, limits);
        refused = !written && !limits.any();
        return written;
    });
    if (ledger_.of(number).outcome == Ledger::Outcome::done) {
        own.seen = std::max(own.seen, ledger_.of(number).position);
    }
    if (version) check_condition(worker, place, number, *version, since, refused);
}

void ValuesWorkload::put_count(Worker& worker, const Place& place, Objects& own) {
    const Limits limits = some_limits(worker);
    const auto now = get_value(worker, place, own, limits);
    if (!now) return;
    const std::int64_t count = *Ledger::number_of(now->value);
    Ledger::Write what;
    const auto id = static_cast<std::int64_t>(ledger_.next_number());
    what.delta = count > 1'000'000 ? -id : id;
    const std::size_t since = history_.latest(place.path);
    bool refused = false;
    const auto number = write(worker, place, what, {"try_set", own.exactly_once, limits.any()}, [&] {
        const bool written =
            put(worker, *own.count, now->version, static_cast<std::int32_t>(count + what.delta), limits);
        refused = !written && !limits.any();
        return written;
    });
    if (ledger_.of(number).outcome == Ledger::Outcome::done) {
        own.seen = std::max(own.seen, ledger_.of(number).position);
    }
    check_condition(worker, place, number, now->version, since, refused);
}

/// Written on top of that version, or refused because it was not there any more.
void ValuesWorkload::check_condition(const Worker& worker, const Place& place, std::uint64_t number,
                                     std::int32_t version, std::size_t since, bool refused) {
    const Ledger::Write& write = ledger_.of(number);
    const History::States& states = history_.of(place.path);
    if (write.happened != 0 && states[write.position - 1].version != version) {
        judge_.violation("condition", worker.name + ": writes over a version that it has not named");
    }
    if (refused && since == states.size() - 1 && states[since].exists && states[since].version == version) {
        judge_.violation("condition", worker.name + ": is refused though nobody has written");
    }
}

void ValuesWorkload::observe(ClientProcess& process, const Place& place, Objects& own) {
    Told& by = told_.emplace_back();
    by.process = &process;
    by.place = &place;
    by.who = process.name();
    if (own.count) {
        observers_.push_back(own.count->observe([this, &by](const std::optional<VersionedCount>& count) {
            told(by, count ? std::optional(as_value(*count)) : std::nullopt);
        }));
    } else {
        observers_.push_back(
            own.value->observe([this, &by](const std::optional<VersionedValue>& value) { told(by, value); }));
    }
}

/// Whoever is told of a change is not told of an earlier one later.
void ValuesWorkload::told(Told& by, std::optional<VersionedValue> value) {
    if (by.process->dead()) return;
    const auto position = find(by.place->path, by.position,
                               [&](const NodeState& state) { return value ? is_that(state, *value) : !state.exists; });
    if (!position) {
        judge_.violation("observer", by.who + ": is told " + describe(value) + " of " + by.place->path +
                                         ", which never was there, or not any more when it was told before");
    }
    by.position = std::max(by.position, position.value_or(0));
    by.last = std::move(value);
}

// ---- at the end ---------------------------------------------------------------------------------------------------

bool ValuesWorkload::all_told_the_latest() const {
    return std::all_of(told_.begin(), told_.end(), [&](const Told& each) {
        const NodeState& now = history_.of(each.place->path).back();
        return !usable(*each.process) || (each.last ? is_that(now, *each.last) : !now.exists);
    });
}

void ValuesWorkload::check_values_at_the_end(ClientProcess& process) {
    auto& objects = shared_[static_cast<std::size_t>(process.number())];
    for (std::size_t i = 0; i < places_.size(); ++i) {
        if (!objects[i].value && !objects[i].count) continue;
        const SimTime until = world_.now() + 60 * kSecond;
        Worker reader{process, world_.fork("reader"), process.name() + " at the end", 0};
        for (;;) {
            const auto value = get_value(reader, places_[i], objects[i], {});
            if (value && is_that(history_.of(places_[i].path).back(), *value)) break;
            if (world_.now() > until) {
                judge_.violation("converged", reader.name + ": still gets " + describe(value) + " of " +
                                                  places_[i].path + ", which is over");
                break;
            }
            world_.sleep(&process.actor(), 100 * kMilli);
        }
    }
}

void ValuesWorkload::stop_watching() {
    const SimTime limit = world_.now() + 3 * plan_.timeout_ms * kMilli + 60 * kSecond;
    if (!world_.run(limit, [this] { return all_told_the_latest(); })) {
        judge_.violation("converged", "after healing, an observer is not told what is there");
    }
    for (const auto& process : processes_) {
        if (!usable(*process)) continue;
        spawn(*process, "reads at the end", [this, &process = *process] { check_values_at_the_end(process); });
    }
    if (!all_done(plan_.patience)) judge_.violation("served", "at the end, calls have not returned:" + open_calls());
    drop_locks();
}

}  // namespace zkrecipes::sim
