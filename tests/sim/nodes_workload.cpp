#include "sim/nodes_workload.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace zkrecipes::sim {

// ---- setting up ---------------------------------------------------------------------------------------------------

NodesWorkload::NodesWorkload(SimWorld& world, const Plan& plan, RunResult& result)
    : Workload(world, plan, result, directories_of(plan)),
      places_(places_of(plan)),
      history_(world, ensemble_.network()) {
    begin_to_record();
    for (const auto& worker : workers_) {
        Session& session = worker->process.session();
        auto& all = own_.emplace_back();
        for (const Place& place : places_) {
            Objects& own = all.emplace_back();
            if (place.kind == Kind::barrier) own.barrier = std::make_unique<Barrier>(session, place.path);
            if (place.kind == Kind::double_barrier) {
                own.together = std::make_unique<DoubleBarrier>(session, place.path, place.members);
            }
            if (place.kind == Kind::group) own.group = std::make_unique<Group>(session, place.path);
        }
    }
    for (const Place& place : places_) {
        for (const auto& process : processes_) {
            if (place.kind == Kind::barrier) {
                spawn(*process, "porter",
                      [this, &process = *process, &place] { let_everybody_through(process, place); });
            }
            if (place.kind != Kind::group) continue;
            Group group(process->session(), place.path);
            observe(*process, place, group);
        }
    }
}

std::vector<NodesWorkload::Place> NodesWorkload::places_of(const Plan& plan) {
    Rng rng = Rng(plan.seed).fork("places");
    static constexpr const char* kNames[] = {"/names/", "/group/", "/gates/", "/rooms/"};
    std::vector<Place> places;
    const auto first = rng.below(4);
    for (int i = 0; i < plan.paths; ++i) {
        const auto kind = (first + static_cast<std::uint64_t>(i)) % 4;
        Place place;
        place.kind = static_cast<Kind>(kind);
        place.path = kNames[kind] + std::string(1, static_cast<char>('a' + i));
        place.members = static_cast<int>(rng.between(1, std::min(3, plan.processes * plan.fibers)));
        places.push_back(std::move(place));
    }
    return places;
}

std::vector<std::string> NodesWorkload::directories_of(const Plan& plan) {
    std::vector<std::string> directories;
    for (const Place& place : places_of(plan)) {
        directories.push_back(place.kind == Kind::barrier ? parent_of(place.path) : place.path);
    }
    return directories;
}

void NodesWorkload::begin_to_record() {
    for (const Place& place : places_) history_.record(place.path);
    ensemble_.on_commit = [this](const Txn& txn, const DataTree&) {
        history_.committed(txn);
        committed(txn);
    };
}

void NodesWorkload::drop_locks() noexcept {
    observers_.clear();
    own_.clear();
    stands_.clear();
}

void NodesWorkload::committed(const Txn& txn) {
    std::set<std::string> changed;
    for (const Effect& effect : txn.effects) {
        if (effect.kind != Effect::Kind::check && effect.kind != Effect::Kind::error) changed.insert(effect.path);
    }
    for (const Place& place : places_) {
        for (const std::string& path : changed) {
            if (parent_of(path) != place.path) continue;
            if (place.kind == Kind::name || place.kind == Kind::group) check_change(path);
            if (place.kind != Kind::double_barrier) continue;
            const bool ready = history_.of(place.path + "/ready").back().exists;
            const auto inside = static_cast<int>(history_.count_below(place.path)) - (ready ? 1 : 0);
            rooms_[place.path].push_back({world_.now(), inside});
        }
    }
}

void NodesWorkload::one_round(Worker& worker) {
    // Those who are to meet have to come at the same time.
    const auto phase = static_cast<std::size_t>(world_.now() / (8 * kSecond));
    const auto number = worker.rng.one_in(3) ? worker.rng.below(places_.size()) : phase % places_.size();
    const Place& place = places_[number];
    Objects& own = own_[worker.number][number];
    switch (place.kind) {
        case Kind::name: use_stand(worker, place, own); break;
        case Kind::group:
            worker.rng.one_in(4) ? ask_for_members(worker, place, *own.group) : use_stand(worker, place, own);
            break;
        case Kind::barrier: use_barrier(worker, place, *own.barrier); break;
        case Kind::double_barrier: use_together(worker, place, own); break;
    }
    world_.sleep(&worker.process.actor(), worker.rng.between(0, 500 * kMilli));
}

// ---- names and groups ---------------------------------------------------------------------------------------------

void NodesWorkload::use_stand(Worker& worker, const Place& place, Objects& own) {
    if (own.stand == nullptr) return make_stand(worker, place, own);
    switch (worker.rng.below(6)) {
        case 0:
        case 1: return say_something_else(worker, *own.stand);
        case 2: return close(worker, *std::exchange(own.stand, nullptr));
        default: return wait_for(worker, *own.stand);
    }
}

std::string NodesWorkload::new_text(Stand& stand, const std::string& who) {
    std::string text = std::to_string(texts_.size() + 1) + " " + who;
    texts_[text] = &stand;
    return text;
}

void NodesWorkload::make_stand(Worker& worker, const Place& place, Objects& own) {
    Stand& stand = stands_.emplace_back();
    stand.process = &worker.process;
    stand.closed = true;  // until it is made
    // One name is wanted by all processes, but only once in each.
    const bool wanted_by_all = worker.number % static_cast<std::size_t>(plan_.fibers) == 0 && worker.rng.one_in(2);
    const std::string id = wanted_by_all ? "all" : worker.name;
    stand.path = place.path + "/" + id;
    stand.text = new_text(stand, worker.name);
    Session& session = worker.process.session();
    const auto listen = [this, &stand](PersistentNodeState state) { told_state(stand, state); };
    if (place.kind == Kind::group) {
        stand.member = std::make_unique<GroupMember>(session, place.path, id, stand.text);
        stand.listener = stand.member->watch_state(listen);
    } else {
        PersistentNodeOptions options;
        options.data = stand.text;
        stand.node = std::make_unique<PersistentNode>(session, stand.path, std::move(options));
        stand.listener = stand.node->watch_state(listen);
    }
    stand.closed = false;
    own.stand = &stand;
}

void NodesWorkload::told_state(Stand& stand, PersistentNodeState state) {
    if (stand.told == PersistentNodeState::closed) {
        judge_.violation("state", stand.path + ": something is told after \"closed\"");
    }
    stand.told = state;
}

void NodesWorkload::wait_for(Worker& worker, Stand& stand) {
    Limits limits = some_limits(worker);
    // Another process may have it for as long as it likes.
    if (!limits.any() && name_of(stand.path) == "all")
        limits.deadline = worker.process.deadline_in(limits.limit = kSecond);
    const std::string text = stand.text;
    bool there = false;
    {
        const Call call(judge_, worker, "wait_present");
        there = stand.node ? stand.node->wait_present(limits.deadline, limits.stop)
                           : stand.member->wait_joined(limits.deadline, limits.stop);
    }
    if (!there) {
        if (!limits.any()) judge_.violation("deadline", worker.name + ": gave up without a limit");
        return;
    }
    const History::States& states = history_.of(stand.path);
    const bool seen = std::any_of(states.begin(), states.end(), [&](const NodeState& each) {
        return each.exists && each.data == text && history_.actor_of(each.owner) == worker.process.actor().id();
    });
    if (!seen) judge_.violation("present", worker.name + ": " + stand.path + " was never there with what it is to say");
}

void NodesWorkload::say_something_else(Worker& worker, Stand& stand) {
    stand.text = new_text(stand, worker.name);
    stand.node ? stand.node->set_data(stand.text) : stand.member->set_payload(stand.text);
    if (worker.rng.one_in(2)) wait_for(worker, stand);
}

void NodesWorkload::close(Worker& worker, Stand& stand) {
    stand.closed = true;
    if (worker.rng.one_in(2)) {
        worker.rng.one_in(2) ? (stand.node ? stand.node->close() : stand.member->leave())
                             : (stand.node.reset(), stand.member.reset());
        return;
    }
    const std::int64_t session = worker.process.session().info().session_id;
    const SimTime limit = worker.rng.between(0, 2 * plan_.timeout_ms * kMilli);
    const Deadline deadline = worker.process.deadline_in(limit);
    bool confirmed = false;
    {
        const Call call(judge_, worker, "close_and_wait");
        confirmed = stand.node ? stand.node->close_and_wait(deadline) : stand.member->leave_and_wait(deadline);
    }
    if (!confirmed) return;
    // A session that is over ends in the history a little later than its client is told.
    const SessionInfo info = worker.process.session().info();
    const bool same_session = info.session_id == session && info.state == SessionState::connected;
    const NodeState& now = history_.of(stand.path).back();
    if (same_session && now.exists && now.owner == session && texts_.at(now.data) == &stand) {
        judge_.violation("closed", worker.name + ": " + stand.path + " is there though it was confirmed to be gone");
    }
    if (same_session) stand.gone = session;
}

/// Behind every change: whose node it is, and who may touch it.
void NodesWorkload::check_change(const std::string& path) {
    const History::States& states = history_.of(path);
    const NodeState& now = states.back();
    if (now.by_operator || now.session_end) return;
    const NodeState& before = states[states.size() - 2];
    const int owner = history_.actor_of(now.exists ? now.owner : before.owner);
    const bool by_another = history_.actor_of(now.by) != owner;
    // ZooKeeper compares versions and no owners: what was on its way when the node became another's may still hit it.
    const auto made = std::ranges::find(states, before.czxid, &NodeState::czxid);
    if (by_another && before.exists && now.at - made->at < 3 * plan_.timeout_ms * kMilli) {
        written_over_.insert(path);
        return;
    }
    if (by_another) judge_.violation("foreign", path + ": somebody touches the node of another process");
    if (!now.exists) return;
    const auto said = texts_.find(now.data);
    if (said == texts_.end() || said->second->path != path || said->second->process->actor().id() != owner) {
        judge_.violation("foreign", path + ": says what its owner has never said: " + now.data);
    } else if (said->second->gone != 0 && now.owner >= said->second->gone) {
        // What an earlier session had still on its way may come until the servers end it.
        judge_.violation("closed", path + ": is made again after it was confirmed to be gone");
    }
}

// ---- groups from outside ------------------------------------------------------------------------------------------

void NodesWorkload::observe(ClientProcess& process, const Place& place, Group& group) {
    Told& by = told_.emplace_back();
    by.process = &process;
    by.path = place.path;
    observers_.push_back(group.observe([this, &by](const GroupMembers& members) { told_members(by, members); }));
}

/// Nobody is told of a member, its payload or its absence what was so before what was told earlier.
void NodesWorkload::told_members(Told& by, const GroupMembers& members) {
    if (by.process->dead()) return;
    for (const auto& [id, payload] : members) by.positions.try_emplace(id);
    for (auto& [id, position] : by.positions) {
        const auto member = members.find(id);
        const History::States& states = history_.of(by.path + "/" + id);
        const auto found = std::find_if(
            states.begin() + static_cast<std::ptrdiff_t>(position), states.end(), [&](const NodeState& each) {
                return member == members.end() ? !each.exists : each.exists && each.data == member->second;
            });
        if (found == states.end()) {
            judge_.violation("observer", by.process->name() + ": is told of member " + id + " of " + by.path +
                                             " what was never so, or not any more when it was told before");
            continue;
        }
        position = static_cast<std::size_t>(found - states.begin());
    }
    by.last = members;
    by.any = true;
}

GroupMembers NodesWorkload::members_now(const std::string& path) const {
    GroupMembers members;
    for (const std::string& each : history_.paths_below(path)) {
        const NodeState& now = history_.of(each).back();
        if (now.exists) members[name_of(each)] = now.data;
    }
    return members;
}

void NodesWorkload::ask_for_members(Worker& worker, const Place& place, Group& group) {
    const Limits limits = some_limits(worker);
    GroupMembers members;
    try {
        const Call call(judge_, worker, "members");
        members = group.members(limits.deadline);
    } catch (const Error& error) {
        if (error.errc() != Errc::unreachable || !limits.any()) throw;
        return;
    }
    for (const auto& [id, payload] : members) {
        const History::States& states = history_.of(place.path + "/" + id);
        const bool was = std::any_of(states.begin(), states.end(), [&payload = payload](const NodeState& each) {
            return each.exists && each.data == payload;
        });
        if (!was) judge_.violation("members", worker.name + ": member " + id + " has never said " + payload);
    }
}

// ---- at the end ---------------------------------------------------------------------------------------------------

/// One of those who want the name has it, and the others know.
bool NodesWorkload::is_right(const std::string& path) const {
    if (written_over_.contains(path)) return true;  // what others write stays until the owner writes again
    const NodeState& now = history_.of(path).back();
    int wanted = 0, present = 0;
    for (const Stand& each : stands_) {
        if (each.closed || each.path != path || !usable(*each.process)) continue;
        ++wanted;
        const PersistentNodeState state = each.node ? each.node->state() : each.member->state();
        const bool ours = now.exists && now.data == each.text && now.owner == each.process->session().info().session_id;
        if (state != each.told || state != (ours ? PersistentNodeState::present : PersistentNodeState::taken))
            return false;
        if (ours) ++present;
    }
    return present == std::min(wanted, 1) && now.exists == (present == 1);
}

/// Empty: nothing.
std::string NodesWorkload::what_is_wrong() const {
    for (const Place& place : places_) {
        if (place.kind != Kind::name && place.kind != Kind::group) continue;
        std::set<std::string> paths;
        for (std::string& path : history_.paths_below(place.path)) paths.insert(std::move(path));
        for (const Stand& each : stands_) paths.insert(each.path);
        for (const std::string& path : paths) {
            if (parent_of(path) == place.path && !is_right(path)) return path + " is not what it should be";
        }
    }
    for (const Told& each : told_) {
        const bool right = each.any ? each.last == members_now(each.path) : members_now(each.path).empty();
        if (usable(*each.process) && !right) return each.process->name() + " is not told who is in " + each.path;
    }
    return {};
}

void NodesWorkload::expect_all_right(const std::string& when) {
    const SimTime until = world_.now() + 3 * plan_.timeout_ms * kMilli + 60 * kSecond;
    const auto wrong = [this] { return world_.as_world([this] { return what_is_wrong(); }); };
    while (!wrong().empty() && world_.now() < until) world_.run(world_.now() + 100 * kMilli);
    if (const std::string what = wrong(); !what.empty()) judge_.violation("converged", when + ", " + what);
}

void NodesWorkload::stop_watching() {
    expect_all_right("after healing");
    for (Stand& each : stands_) {
        if (std::exchange(each.closed, true)) continue;
        each.node ? each.node->close() : each.member->leave();
    }
    expect_all_right("after closing");
    for (const Place& place : places_) {
        if (place.kind == Kind::double_barrier) a_last_round(place);
    }
    drop_locks();
}

}  // namespace zkrecipes::sim
