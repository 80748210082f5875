#include "testing/ensemble.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::sim {

SimEnsemble::SimEnsemble(World& world, EnsembleOptions options)
    : world_(world), options_(options), network_(world), rng_(world.fork("ensemble")) {
    const auto count = static_cast<std::size_t>(options_.servers);
    for (int id = 0; id < options_.servers; ++id) servers_.push_back(std::make_unique<SimServer>(*this, id));
    cut_.resize(count * count);
    for (std::size_t from = 0; from < count; ++from) {
        for (std::size_t to = 0; to < count; ++to) {
            pipes_.push_back(std::make_shared<Pipe>(world_, servers_[to]->actor()));
        }
    }
    schedule_election();
}

SimEnsemble::~SimEnsemble() { world_.drop_events(); }

std::vector<std::string> SimEnsemble::hosts() const {
    std::vector<std::string> hosts;
    for (std::size_t i = 0; i < servers_.size(); ++i) hosts.push_back("10.0.0." + std::to_string(i + 1) + ":2181");
    return hosts;
}

SimServer* SimEnsemble::find(const std::string& host) {
    const auto all = hosts();
    const auto found = std::find(all.begin(), all.end(), host);
    return found == all.end() ? nullptr : servers_[static_cast<std::size_t>(found - all.begin())].get();
}

SimServer* SimEnsemble::leader() {
    SimServer* newest = nullptr;
    for (const auto& each : servers_) {
        if (each->role() == SimServer::Role::leader && each->has_quorum() &&
            (newest == nullptr || each->last_logged() > newest->last_logged())) {
            newest = each.get();
        }
    }
    return newest;
}

bool SimEnsemble::is_cut(int a, int b) const {
    return cut_[static_cast<std::size_t>(a) * servers_.size() + static_cast<std::size_t>(b)];
}

bool SimEnsemble::reachable(int a, int b) const {
    const auto up = [this](int id) {
        const auto& server = *servers_[static_cast<std::size_t>(id)];
        return server.alive() && !const_cast<SimServer&>(server).actor().paused();
    };
    return up(a) && up(b) && !is_cut(a, b);
}

void SimEnsemble::peer_send(int from, int to, std::function<void()> deliver) {
    const auto& pipe = pipes_[static_cast<std::size_t>(from) * servers_.size() + static_cast<std::size_t>(to)];
    pipe->send(rng_.between(options_.peer_delay_least, options_.peer_delay_most), std::move(deliver), pipe);
}

void SimEnsemble::cut(int a, int b, bool cut) {
    const SimTime flush = rng_.between(0, 300 * kMilli);
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
        const auto index = static_cast<std::size_t>(from) * servers_.size() + static_cast<std::size_t>(to);
        cut_[index] = cut;
        pipes_[index]->set_blocked(cut, flush);
    }
    world_.note(nullptr, cut ? "cut between servers" : "joined servers", static_cast<std::uint64_t>(a * 10 + b));
    if (!cut) schedule_election();
}

void SimEnsemble::kill(int id) {
    SimServer& dying = server(id);
    if (!dying.alive()) return;
    world_.note(&dying.actor(), "killed");
    const bool led = dying.role() == SimServer::Role::leader;
    const int followed = dying.role() == SimServer::Role::follower ? dying.leader_id() : -1;
    dying.go_down();
    network_.server_died(dying);
    for (int other = 0; other < size(); ++other) {
        if (other == id) continue;
        for (const auto& [from, to] : {std::pair{id, other}, std::pair{other, id}}) {
            pipes_[static_cast<std::size_t>(from) * servers_.size() + static_cast<std::size_t>(to)]->clear();
        }
        // Its sockets are reset; whoever is cut off from it does not hear of it and runs into a time limit instead.
        if (led && server(other).leader_id() == id) {
            peer_send(id, other, [this, other, id] {
                if (server(other).role() == SimServer::Role::follower && server(other).leader_id() == id) {
                    server(other).start_looking();
                }
            });
        } else if (other == followed) {
            peer_send(id, other, [this, other, id] { server(other).follower_gone(id); });
        }
    }
}

void SimEnsemble::restart(int id) {
    if (server(id).alive()) return;
    world_.note(&server(id).actor(), "started again");
    server(id).start_looking();
}

void SimEnsemble::freeze(int id, SimTime duration) {
    server(id).actor().pause_for(duration);
    world_.in(duration, nullptr, [this] { schedule_election(); });
}

void SimEnsemble::isolate(int id, SimTime duration) {
    for (int other = 0; other < size(); ++other) {
        if (other != id) cut(id, other, true);
    }
    world_.in(duration, nullptr, [this, id] {
        for (int other = 0; other < size(); ++other) {
            if (other != id && is_cut(id, other)) cut(id, other, false);
        }
    });
}

void SimEnsemble::heal() {
    for (int a = 0; a < size(); ++a) {
        for (int b = a + 1; b < size(); ++b) {
            if (is_cut(a, b)) cut(a, b, false);
        }
        if (!server(a).alive()) restart(a);
        server(a).fsync_most = 2 * kMilli;
    }
    network_.unblock_all();
    schedule_election();
}

void SimEnsemble::expire(SessionId session) {
    if (SimServer* const now_leading = leader()) now_leading->close_session(session, true);
}

void SimEnsemble::remove(const std::string& path) {
    SimServer* const now_leading = leader();
    if (now_leading == nullptr) return;
    now_leading->remove_as_operator(path);
}

void SimEnsemble::write(const std::string& path, const std::string& data) {
    MultiOp op;
    op.kind = MultiOp::Kind::set;
    op.path = path;
    op.data = data;
    if (SimServer* const now_leading = leader()) now_leading->do_as_operator(op);
}

void SimEnsemble::make(const std::string& path, std::vector<Acl> acl, CreateMode mode) {
    MultiOp op;
    op.kind = MultiOp::Kind::create;
    op.path = path;
    op.acl = std::move(acl);
    op.mode = mode;
    if (SimServer* const now_leading = leader()) now_leading->do_as_operator(op);
}

const DataTree& SimEnsemble::committed() const {
    const SimServer* most = servers_.front().get();
    for (const auto& each : servers_) {
        if (each->tree().last_zxid() > most->tree().last_zxid()) most = each.get();
    }
    return most->tree();
}

bool SimEnsemble::settled() const {
    int leaders = 0;
    for (const auto& each : servers_) {
        if (!each->serving() || each->proposals_open() != 0) return false;
        if (each->role() == SimServer::Role::leader) ++leaders;
    }
    if (leaders != 1) return false;
    for (const auto& each : servers_) {
        if (each->tree().last_zxid() != servers_.front()->tree().last_zxid()) return false;
    }
    return true;
}

std::size_t SimEnsemble::watch_count() const {
    std::size_t count = 0;
    for (const auto& each : servers_) count += each->watch_count();
    return count;
}

SimTime SimEnsemble::last_change_of(SessionId session) const {
    const auto found = last_change_.find(session);
    return found == last_change_.end() ? 0 : found->second;
}

std::set<SessionId> SimEnsemble::watchers_of(const std::string& path) const {
    std::set<SessionId> sessions;
    for (const auto& each : servers_) each->add_watchers_of(path, sessions);
    return sessions;
}

void SimEnsemble::applied(const Txn& txn, const DataTree& tree) {
    if (txn.zxid <= told_) return;  // another server was faster
    told_ = txn.zxid;
    const auto failed = [](const Effect& each) { return each.kind == Effect::Kind::error; };
    if (txn.kind == Txn::Kind::request && !txn.by_operator && std::ranges::none_of(txn.effects, failed))
        last_change_[txn.session] = world_.now();
    if (on_commit) on_commit(txn, tree);
    for (const auto& listener : listeners_) listener(txn);
}

void SimEnsemble::schedule_election() {
    if (election_scheduled_) return;
    election_scheduled_ = true;
    world_.in(rng_.between(150 * kMilli, 500 * kMilli), nullptr, [this] {
        election_scheduled_ = false;
        try_election();
    });
}

void SimEnsemble::try_election() {
    const int majority = size() / 2 + 1;
    const auto looking = [this](int id) {
        return server(id).role() == SimServer::Role::looking && !server(id).actor().paused();
    };
    for (int id = 0; id < size(); ++id) {
        if (!looking(id)) continue;
        for (int other = 0; other < size() && looking(id); ++other) {
            const SimServer& leads = server(other);
            if (leads.role() == SimServer::Role::leader && leads.has_quorum() && reachable(id, other) &&
                server(id).may_follow(leads)) {
                server(id).join(server(other));
            }
        }
    }
    for (int id = 0; id < size(); ++id) {
        if (!looking(id)) continue;
        std::vector<int> group;
        for (int other = 0; other < size(); ++other) {
            if (looking(other) && (other == id || reachable(id, other))) group.push_back(other);
        }
        if (static_cast<int>(group.size()) < majority) continue;
        // The longest log among those who elect wins; `id` must reach everybody, so it decides only whether they meet.
        const int chosen = *std::max_element(group.begin(), group.end(), [this](int a, int b) {
            return std::pair(server(a).last_logged(), a) < std::pair(server(b).last_logged(), b);
        });
        std::vector<int> members;
        for (const int member : group) {
            if (member != chosen && reachable(chosen, member)) members.push_back(member);
        }
        if (static_cast<int>(members.size()) + 1 < majority) continue;
        for (const auto& each : servers_) epoch_ = std::max(epoch_, each->last_logged() >> 32);
        server(chosen).become_leader(++epoch_);
        for (const int member : members) server(member).join(server(chosen));
        break;
    }
    for (int id = 0; id < size(); ++id) {
        if (server(id).role() == SimServer::Role::looking) return schedule_election();
    }
}

}  // namespace zkrecipes::sim
