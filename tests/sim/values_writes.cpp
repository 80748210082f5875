// The counters and the guarded writes of the workload of values.

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/values_workload.hpp"

namespace zkrecipes::sim {

// ---- counters -----------------------------------------------------------------------------------------------------

void ValuesWorkload::use_counter(Worker& worker, const Place& place, Objects& own) {
    switch (worker.rng.below(8)) {
        case 0: static_cast<void>(get_counter(worker, place, *own.counter)); return;
        case 1: return compare_and_set(worker, place, own);
        case 2: return write_over(worker, place, own);
        default: return add(worker, place, own);
    }
}

/// Only a leader that was stopped, or cut off, and does not know that it was replaced answers a sync with the past.
bool ValuesWorkload::honest_leaders() const {
    return !plan_.has(Fault::freeze_server) && !plan_.has(Fault::cut_servers) && !plan_.has(Fault::isolate_server);
}

std::int64_t ValuesWorkload::get_counter(Worker& worker, const Place& place, AtomicCounter& counter) {
    const Fresh fresh = worker.rng.one_in(2) ? Fresh::yes : Fresh::no;
    const std::int64_t session = worker.process.session().info().session_id;
    const Known known = known_[{worker.process.number(), place.path}];
    std::size_t from = known.session == session ? known.position : 0;
    if (fresh == Fresh::yes && honest_leaders()) from = history_.latest(place.path);
    std::int64_t number = 0;
    {
        const Call call(judge_, worker, "get()");
        number = counter.get(fresh);
    }
    const bool same_session = worker.process.session().info().session_id == session;
    if (!same_session && fresh == Fresh::no) from = 0;
    const auto position =
        find(place.path, from, [&](const NodeState& state) { return Ledger::value_of(state) == number; });
    if (!position) {
        judge_.violation("value", worker.name + ": gets " + std::to_string(number) + " of " + place.path +
                                      ", which never was there, or not any more when it was asked for");
    }
    Known& now = known_[{worker.process.number(), place.path}];
    if (same_session && position)
        now = {session, now.session == session ? std::max(now.position, *position) : *position};
    return number;
}

void ValuesWorkload::add(Worker& worker, const Place& place, Objects& own) {
    const Limits limits = some_limits(worker);
    const auto id = static_cast<std::int64_t>(ledger_.next_number());
    Ledger::Write what;
    what.delta = worker.rng.one_in(5) ? -id : id;
    std::optional<CounterChange> change;
    const auto number = write(worker, place, what, {"add", own.exactly_once, limits.any(), own.attempts}, [&] {
        AtomicCounter& counter = *own.counter;
        if (worker.rng.one_in(4)) {
            change = later<CounterResult>(worker, "add_async", [&](std::function<void(CounterResult)> done) {
                         counter.add_async(what.delta, limits.deadline, limits.stop, std::move(done));
                     }).value;
        } else {
            const Call call(judge_, worker, "add");
            change = limits.any()     ? counter.try_add_until(what.delta, limits.deadline, limits.stop)
                     : what.delta < 0 ? counter.subtract(id)
                                      : counter.add(id);
        }
        if (!change && !limits.any()) judge_.violation("deadline", worker.name + ": gave up without a limit");
        return change.has_value();
    });
    if (change) check_change(worker, number, *change);
}

void ValuesWorkload::compare_and_set(Worker& worker, const Place& place, Objects& own) {
    const std::int64_t expected = get_counter(worker, place, *own.counter);
    const Limits limits = some_limits(worker);
    const auto id = static_cast<std::int64_t>(ledger_.next_number());
    Ledger::Write what;
    what.delta = expected > 0 && worker.rng.one_in(2) ? -id : id;
    if (expected > 1'000'000) what.delta = -id;
    std::optional<CounterChange> change;
    const auto number =
        write(worker, place, what, {"compare_and_set", own.exactly_once, limits.any(), own.attempts}, [&] {
            const Call call(judge_, worker, "compare_and_set");
            change = own.counter->compare_and_set(expected, expected + what.delta, limits.deadline, limits.stop);
            return change && change->changed;
        });
    if (!change) return;
    if (change->changed) return check_change(worker, number, *change);
    const bool other = change->before != expected && change->after == change->before;
    const auto is = [&](const NodeState& state) { return Ledger::value_of(state) == change->before; };
    if (!other || !find(place.path, 0, is)) {
        judge_.violation("change", worker.name + ": compare_and_set finds what never was there, or what it expected");
    }
}

/// Whatever stands there: with a number that nobody else writes. Once for each counter one where most adds overflow.
void ValuesWorkload::write_over(Worker& worker, const Place& place, Objects& own) {
    const Limits limits = some_limits(worker);
    const auto id = static_cast<std::int64_t>(ledger_.next_number());
    const bool small = place.kind == Kind::count;
    const auto most = small ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
    Ledger::Write what;
    what.number = small ? most - (id << 14) : id << 40;
    const auto how = worker.rng.below(3);
    if (how != 2 && worker.rng.one_in(3) && at_the_limit_.emplace(place.path).second) what.number = most - 3;
    AtomicCounter& counter = *own.counter;
    std::optional<CounterChange> change;
    const char* const names[] = {"exchange", "force_set", "initialize"};
    const auto number = write(worker, place, what, {names[how], own.exactly_once, limits.any(), own.attempts}, [&] {
        const Call call(judge_, worker, names[how]);
        if (how == 2) return counter.initialize(*what.number, limits.deadline, limits.stop);
        if (how == 1) return counter.force_set(*what.number, limits.deadline, limits.stop), true;
        change = counter.exchange(*what.number, limits.deadline, limits.stop);
        return change.has_value();
    });
    if (change) check_change(worker, number, *change);
}

void ValuesWorkload::check_change(const Worker& worker, std::uint64_t number, const CounterChange& change) {
    const Ledger::Write& write = ledger_.of(number);
    if (write.doubtful || write.happened == 0) return;
    if (change.before == write.before && change.after == write.after) return;
    // Deleted and made again with the same version between the read and the write: documented.
    const std::int32_t version = history_.of(write.path)[write.position - 1].version;
    const auto was_read = [&](const NodeState& state) {
        return state.exists && state.version == version && Ledger::value_of(state) == change.before;
    };
    if (change.after == write.after && find(write.path, 0, was_read)) return;
    judge_.violation("change", worker.name + ": is told " + std::to_string(change.before) + " to " +
                                   std::to_string(change.after) + ", but it was " + std::to_string(write.before) +
                                   " to " + std::to_string(write.after));
}

// ---- guarded writes -----------------------------------------------------------------------------------------------

void ValuesWorkload::use_guarded(Worker& worker, const Place& place, Objects& own) {
    if (!get_value(worker, place, own, {})) return;  // makes a missing node
    ExclusiveMutex& mutex = *own.mutex;
    LeaderElection& election = *own.election;
    const Ways as_leader{
        [&] { return election.campaign(); },
        [&](Deadline deadline, std::stop_token stop) { return election.try_campaign_until(deadline, stop); },
        {}};
    const Ways as_owner{
        [&] { return mutex.acquire(); },
        [&](Deadline deadline, std::stop_token stop) { return mutex.try_acquire_until(deadline, stop); },
        {}};
    Grant grant = take(worker, place.leader ? as_leader : as_owner);
    if (!grant) return;
    // With it, the node is not handed over.
    std::optional<Sequencer> former;
    if (worker.rng.one_in(2)) former.emplace(grant);
    {
        struct Ended {
            Judge& judge;
            Judge::Ticket ticket;
            ~Ended() { judge.ended(ticket); }
        } const ended{judge_, judge_.granted(Claim::alone(number_of(place)), worker.process, grant)};
        for (auto times = worker.rng.between(1, 3); times > 0; --times) {
            judge_.act(ended.ticket);
            write_within(worker, place, grant);
            send_to_register(worker, place, {grant.token(), grant.handovers()});
            world_.sleep(&worker.process.actor(), hold_time(worker.rng));
        }
        judge_.act(ended.ticket);
    }
    grant.release();
    if (former) write_behind(worker, place, *former);
}

/// Empty: the grant is over.
std::optional<NodeContent> ValuesWorkload::read_within(Worker& worker, const Place& place, const Grant& grant) {
    const std::size_t since = history_.latest(place.path);
    std::optional<NodeContent> content;
    try {
        const Call call(judge_, worker, "read_node");
        content = read_node(worker.process.session(), place.path, grant, Deadline::never());
    } catch (const Error& error) {
        if (error.errc() != Errc::lock_lost) throw;
        return std::nullopt;
    }
    const bool known = find(place.path, since, [&](const NodeState& state) {
                           return content ? state.exists && state.zxid == content->changed : !state.exists;
                       }).has_value();
    if (!known) judge_.violation("read-within", worker.name + ": does not see what was written before");
    return content;
}

void ValuesWorkload::write_within(Worker& worker, const Place& place, const Grant& grant) {
    std::optional<NodeContent> content;
    if (worker.rng.one_in(2)) {
        content = read_within(worker, place, grant);
        if (!content) return;
    }
    // The text of the hold knows no clock: its writes are sent also when the grant is over, and refused by the servers.
    Transaction transaction =
        worker.rng.one_in(3) ? Transaction(worker.process.session(), Sequencer(grant)) : Transaction(grant);
    try {
        commit(worker, place, transaction, {grant.node(), grant.token()}, content);
    } catch (const Error& error) {
        if (error.errc() != Errc::lock_lost) throw;
        const Node* const node = ensemble_.committed().find(grant.node());
        const bool there = node != nullptr && node->czxid == grant.token();
        if (there && world_.as_world([&] { return grant.held(); })) {
            judge_.violation("guard", worker.name + ": is refused a write though it holds");
        }
    }
}

void ValuesWorkload::write_behind(Worker& worker, const Place& place, const Sequencer& former) {
    Transaction transaction(worker.process.session(), former);
    try {
        commit(worker, place, transaction, {former.nodes().front().path, former.token()}, std::nullopt);
    } catch (const Error& error) {
        if (error.errc() != Errc::lock_lost) throw;
    }
}

void ValuesWorkload::commit(Worker& worker, const Place& place, Transaction& transaction, const LockNode& guard,
                            const std::optional<NodeContent>& content) {
    const Limits limits = some_limits(worker);
    Ledger::Write what;
    what.guard = guard.path;
    what.token = guard.token;
    transaction.set(place.path, Ledger::text_of(ledger_.next_number(), worker.name),
                    content ? content->version : Transaction::any_version);
    const bool exactly_once = worker.rng.one_in(2) && history_.of("/marks").back().exists;
    if (exactly_once) transaction.idempotent_in("/marks");
    try {
        write(worker, place, what, {"commit", exactly_once, limits.any()}, [&] {
            if (worker.rng.one_in(4)) {
                return later<CommitResult>(worker, "commit_async",
                                           [&](std::function<void(CommitResult)> done) {
                                               transaction.commit_async(limits.deadline, limits.stop, std::move(done));
                                           })
                    .value.has_value();
            }
            const Call call(judge_, worker, "commit");
            if (limits.any()) return transaction.try_commit_until(limits.deadline, limits.stop).has_value();
            return transaction.commit(), true;
        });
    } catch (const Error& error) {
        // Somebody else has written since it was read: under a later grant, or a former one's write has come late.
        const bool changed = content && history_.of(place.path).back().zxid != content->changed;
        if (error.errc() != Errc::bad_version || !changed) throw;
    }
}

/// A server beside ZooKeeper, which a message may reach late.
void ValuesWorkload::send_to_register(Worker& worker, const Place& place, const Fence& fence) {
    world_.in(worker.rng.between(0, 5 * kSecond), nullptr, [this, path = place.path, fence] {
        const bool let_in = register_.admit_exclusive(path, fence);
        Fence& latest = let_in_.try_emplace(path, 0).first->second;
        if (let_in != (fence >= latest)) judge_.violation("register", path + ": lets in whom it must not");
        latest = std::max(latest, fence);
    });
}

}  // namespace zkrecipes::sim
