#include <algorithm>

#include "testing/ensemble.hpp"
#include "testing/server.hpp"

namespace zkrecipes::sim {

SimServer::SimServer(SimEnsemble& ensemble, int id)
    : ensemble_(ensemble),
      world_(ensemble.world()),
      id_(id),
      actor_(ensemble.world(), "zk" + std::to_string(id + 1), ensemble.options().server_rate_ppm),
      rng_(ensemble.world().fork("server " + std::to_string(id))),
      tree_(ensemble.options().keeper) {}

std::size_t SimServer::watch_count() const noexcept {
    std::size_t count = 0;
    for (const auto& [path, watchers] : data_watchers_) count += watchers.size();
    for (const auto& [path, watchers] : child_watchers_) count += watchers.size();
    return count;
}

void SimServer::add_watchers_of(const std::string& path, std::set<SessionId>& sessions) const {
    const auto found = data_watchers_.find(path);
    if (found == data_watchers_.end()) return;
    for (const std::uint64_t connection : found->second) {
        if (const auto client = clients_.find(connection); client != clients_.end())
            sessions.insert(client->second.session);
    }
}

void SimServer::after(SimTime delay, void (SimServer::*what)()) {
    world_.in(delay, &actor_, [this, what, number = role_number_] {
        if (role_number_ == number) (this->*what)();
    });
}

void SimServer::to_server(int server, std::function<void(SimServer&)> deliver) {
    // A message belongs to the leadership under which it was sent, as does the TCP connection that carries it.
    SimServer& target = ensemble_.server(server);
    ensemble_.peer_send(id_, server, [&target, term = term_, deliver = std::move(deliver)] {
        if (target.serving() && target.term_ == term) deliver(target);
    });
}

// ---- roles -----------------------------------------------------------------------------------------------------

void SimServer::start_looking() {
    if (role_ == Role::looking) return;
    world_.note(&actor_, "looks for a leader");
    const int followed = role_ == Role::follower ? leader_ : -1;
    const std::int64_t old_term = term_;
    ++role_number_;
    role_ = Role::looking;
    leader_ = -1;
    drop_clients();
    if (followed >= 0) {
        // The leader sees the connection close, unless it cannot hear us.
        ensemble_.peer_send(id_, followed, [this, followed, old_term] {
            SimServer& leader = ensemble_.server(followed);
            if (leader.role_ == Role::leader && leader.term_ == old_term) leader.follower_gone(id_);
        });
    } else if (old_term != 0) {
        for (int other = 0; other < ensemble_.size(); ++other) {
            if (other == id_) continue;
            ensemble_.peer_send(id_, other, [this, other, old_term] {
                SimServer& follower = ensemble_.server(other);
                if (follower.role_ == Role::follower && follower.term_ == old_term) follower.start_looking();
            });
        }
    }
    term_ = 0;
    ensemble_.schedule_election();
}

void SimServer::go_down() {
    ++role_number_;
    role_ = Role::down;
    leader_ = -1;
    term_ = 0;
    clients_.clear();
    by_session_.clear();
    data_watchers_.clear();
    child_watchers_.clear();
    touched_.clear();
    stalled_.clear();
}

void SimServer::join(SimServer& leader) {
    world_.note(&actor_, "follows", static_cast<std::uint64_t>(leader.id_ + 1));
    ++role_number_;
    role_ = Role::follower;
    leader_ = leader.id_;
    term_ = leader.term_;
    // What the leader has not got is cut off; it was never committed.
    log_ = leader.log_;
    tree_ = leader.tree_;
    applied_ = committed_ = leader.applied_;
    disk_free_at_ = world_.now();
    heard_leader_ = actor_.local_now();
    touched_.clear();
    leader.acked_[id_] = leader.applied_;
    leader.heard_[id_] = leader.actor_.local_now();
    const std::size_t count = log_.size();
    to_server(leader_, [id = id_, count](SimServer& to) { to.on_ack(id, count); });
    after(ensemble_.options().tick_ms * kMilli / 2, &SimServer::follower_tick);
}

void SimServer::follower_tick() {
    const SimTime limit = ensemble_.options().tick_ms * ensemble_.options().sync_limit * kMilli;
    if (actor_.local_now() - heard_leader_ > limit) return start_looking();
    after(ensemble_.options().tick_ms * kMilli / 4, &SimServer::follower_tick);
}

void SimServer::on_leader_ping() {
    heard_leader_ = actor_.local_now();
    // Only here does the leader learn which of our sessions are alive.
    std::vector<std::pair<SessionId, std::int64_t>> touched(touched_.begin(), touched_.end());
    touched_.clear();
    to_server(leader_, [id = id_, touched = std::move(touched)](SimServer& to) { to.on_ping_reply(id, touched); });
}

// ---- log -------------------------------------------------------------------------------------------------------

void SimServer::append(LogEntry entry) {
    log_.push_back(std::move(entry));
    disk_free_at_ = std::max(disk_free_at_, world_.now() + rng_.between(0, fsync_most));
    const std::size_t count = log_.size();
    world_.at(disk_free_at_, &actor_, [this, count, number = role_number_] {
        if (role_number_ != number) return;
        if (role_ == Role::leader) return on_ack(id_, count);
        to_server(leader_, [id = id_, count](SimServer& to) { to.on_ack(id, count); });
    });
}

void SimServer::apply_to(std::size_t count) {
    while (applied_ < count && applied_ < log_.size()) {
        const LogEntry entry = log_[applied_++];
        std::vector<WatchEvent> events;
        tree_.apply(*entry, events);
        ensemble_.applied(*entry, tree_);
        if (entry->by_operator && ensemble_.on_operator_txn) ensemble_.on_operator_txn(*entry);
        if (role_ == Role::leader) forget_records(entry->zxid);
        fire(events);
        if (entry->kind != Txn::Kind::request) {
            finish_session_txn(*entry);
        } else if (entry->server == id_) {
            complete(entry->connection, entry->xid, reply_for(*entry));
        }
    }
}

Reply SimServer::reply_for(const Txn& txn) const {
    Reply reply;
    reply.zxid = txn.zxid;
    reply.xid = txn.xid;
    const auto stat_of = [this](const std::string& path) {
        const Node* const node = tree_.find(path);
        return node == nullptr ? NodeStat{} : node->stat();
    };
    if (!txn.multi) {
        const Effect& effect = txn.effects.front();
        reply.rc = effect.kind == Effect::Kind::error ? effect.rc : Rc::ok;
        reply.path = effect.path;
        if (reply.rc == Rc::ok && effect.kind != Effect::Kind::remove) reply.stat = stat_of(effect.path);
        return reply;
    }
    auto set = tree_.stats_of_sets().begin();
    for (const Effect& effect : txn.effects) {
        MultiResult result;
        if (effect.kind == Effect::Kind::error) {
            result.rc = effect.rc;
            if (reply.rc == Rc::ok && effect.rc != Rc::runtime_inconsistency) reply.rc = effect.rc;
        } else if (effect.kind == Effect::Kind::create) {
            result.path = effect.path;
        } else if (effect.kind == Effect::Kind::set) {
            result.stat = *set++;
        }
        reply.results.push_back(std::move(result));
    }
    return reply;
}

void SimServer::finish_session_txn(const Txn& txn) {
    if (txn.kind == Txn::Kind::create_session) {
        if (txn.server == id_) finish_connect(txn.connection, txn.session, txn.timeout_ms, true);
        return;
    }
    if (txn.kind != Txn::Kind::close_session) return;
    if (role_ == Role::leader) {
        timers_.erase(txn.session);
        owners_.erase(txn.session);
    }
    const auto found = by_session_.find(txn.session);
    if (found == by_session_.end()) return;
    const std::uint64_t connection = found->second;
    if (txn.server == id_ && txn.connection == connection) {
        Reply reply;
        reply.op = Op::close;
        reply.zxid = txn.zxid;
        complete(connection, txn.xid, std::move(reply));
    }
    drop_client(connection);
}

// ---- clients ---------------------------------------------------------------------------------------------------

SimServer::Client* SimServer::client_of(std::uint64_t connection) {
    const auto found = clients_.find(connection);
    return found == clients_.end() ? nullptr : &found->second;
}

void SimServer::drop_client(std::uint64_t connection) {
    const auto found = clients_.find(connection);
    if (found == clients_.end()) return;
    const auto kept = found->second.connection;
    const auto session = by_session_.find(found->second.session);
    if (session != by_session_.end() && session->second == connection) by_session_.erase(session);
    clients_.erase(found);
    for (auto* table : {&data_watchers_, &child_watchers_}) {
        for (auto watch = table->begin(); watch != table->end();) {
            watch->second.erase(connection);
            watch = watch->second.empty() ? table->erase(watch) : std::next(watch);
        }
    }
    kept->close_by_server();
}

void SimServer::drop_clients() {
    const auto all = clients_;
    for (const auto& [connection, client] : all) drop_client(connection);
    touched_.clear();
    stalled_.clear();
}

void SimServer::on_disconnect(Connection& connection) { drop_client(connection.id()); }

void SimServer::touch(SessionId session, std::int64_t timeout_ms) {
    if (role_ == Role::leader) {
        touch_timer(session, timeout_ms);
    } else {
        touched_[session] = timeout_ms;
    }
}

void SimServer::on_request(Connection& connection, const Request& request) {
    if (!serving()) {
        connection.close_by_server();
        return;
    }
    for (auto woken = std::exchange(stalled_, {}); const std::uint64_t each : woken) {
        if (Client* const client = client_of(each)) drain(*client);
    }
    if (request.op == Op::connect) return on_connect(connection, request);
    Client* const client = client_of(connection.id());
    if (client == nullptr || !client->ready) return connection.close_by_server();
    touch(client->session, client->timeout_ms);
    if (request.op == Op::auth) {
        Reply reply;
        reply.op = Op::auth;
        reply.xid = request.xid;
        if (request.auth.scheme == "digest") {
            client->identities.push_back("digest:" + digest_id(request.auth.credential));
        } else {
            reply.rc = Rc::auth_failed;
        }
        send(*client, std::move(reply));
        if (request.auth.scheme != "digest") drop_client(connection.id());
        return;
    }
    auto& faults = ensemble_.faults();
    using Kind = Verdict::Kind;
    const Verdict verdict =
        ensemble_.judge && request.op != Op::ping ? ensemble_.judge(connection.client(), request) : Verdict{};
    if (verdict.kind == Kind::lose_request || (request.op != Op::ping && rng_.one_in(faults.lose_request_one_in))) {
        world_.note(&connection.client(), "request lost", static_cast<std::uint64_t>(request.op));
        connection.reset();
        return;
    }
    client->entries.push_back({request, is_write(request.op), false, verdict.kind == Kind::lose_reply, {}});
    if (verdict.kind == Kind::refuse) {
        Entry& refused = client->entries.back();
        refused.write = refused.done = true;  // its answer waits for its turn, as a write's
        refused.reply = refusal_of(request, verdict.rc);
    } else if (is_write(request.op)) {
        forward({id_, connection.id(), client->session, request, client->identities});
    } else if (client->entries.size() == 1 && request.op != Op::ping && rng_.one_in(faults.stall_one_in)) {
        world_.note(&actor_, "stalls a request");
        stalled_.push_back(connection.id());
        return;
    }
    if (Client* const still = client_of(connection.id())) drain(*still);
}

void SimServer::forward(Forwarded request) {
    if (role_ == Role::leader) return on_forwarded(std::move(request));
    to_server(leader_, [request = std::move(request)](SimServer& to) { to.on_forwarded(request); });
}

void SimServer::on_connect(Connection& connection, const Request& request) {
    if (request.last_zxid > tree_.last_zxid()) {
        world_.note(&actor_, "refuses a client that has seen more");
        return connection.close_by_server();
    }
    const std::int64_t tick = ensemble_.options().tick_ms;
    const std::int64_t timeout = std::clamp(request.timeout_ms, 2 * tick, ensemble_.options().most_ticks * tick);
    const SessionId session = ensemble_.options().keeper ? 0 : request.session;
    // An older connection of the same session here is closed before the new one is served.
    if (const auto old = by_session_.find(session); old != by_session_.end()) drop_client(old->second);
    Client& client = clients_[connection.id()];
    client.connection = connection.shared_from_this();
    client.timeout_ms = timeout;
    client.session = session;
    if (session == 0) {
        Request create = request;
        create.timeout_ms = timeout;
        return forward({id_, connection.id(), 0, std::move(create), {}});
    }
    by_session_[session] = connection.id();
    if (role_ == Role::leader) {
        on_revalidate(id_, connection.id(), session, timeout);
    } else {
        // The answer does not wait for proposals that are still under way: what this session asked for over its former
        // connection may be committed only later.
        to_server(leader_, [id = id_, number = connection.id(), session, timeout](SimServer& to) {
            to.on_revalidate(id, number, session, timeout);
        });
    }
}

void SimServer::finish_connect(std::uint64_t connection, SessionId session, std::int64_t timeout_ms, bool valid) {
    Client* const client = client_of(connection);
    if (client == nullptr) return;
    Reply reply;
    reply.op = Op::connect;
    if (!valid) {
        client->connection->reply(std::move(reply));
        return drop_client(connection);
    }
    client->session = session;
    client->ready = true;
    client->timeout_ms = timeout_ms;
    by_session_[session] = connection;
    reply.session = session;
    reply.timeout_ms = timeout_ms;
    client->connection->reply(std::move(reply));
    touch(session, timeout_ms);
}

void SimServer::complete(std::uint64_t connection, std::int64_t xid, Reply reply) {
    Client* const client = client_of(connection);
    if (client == nullptr) return;
    for (Entry& entry : client->entries) {
        if (!entry.write || entry.done || entry.request.xid != xid) continue;
        reply.op = entry.request.op;
        reply.xid = xid;
        entry.reply = std::move(reply);
        entry.done = true;
        break;
    }
    if (rng_.one_in(ensemble_.faults().stall_one_in)) {
        world_.note(&actor_, "stalls an answer");
        stalled_.push_back(connection);
        return;
    }
    drain(*client);
}

void SimServer::drain(Client& client) {
    const std::uint64_t connection = client.connection->id();
    while (!client.entries.empty()) {
        Entry& front = client.entries.front();
        if (front.write && !front.done) return;
        const Entry entry = std::move(front);
        client.entries.pop_front();
        if (!entry.write && !entry.lose_reply) {
            answer_read(client, entry.request);
        } else if (entry.reply.rc == Rc::session_moved) {
            // An error of the connection, not of the request: the server closes it.
            return drop_client(connection);
        } else if (entry.lose_reply || rng_.one_in(ensemble_.faults().lose_reply_one_in)) {
            world_.note(&client.connection->client(), "reply lost", static_cast<std::uint64_t>(entry.request.op));
            const auto kept = client.connection;
            kept->reset();
            return;
        } else {
            send(client, entry.reply);
        }
        if (client_of(connection) == nullptr) return;
    }
}

void SimServer::send(Client& client, Reply reply) { client.connection->reply(std::move(reply)); }

void SimServer::answer_read(Client& client, const Request& request) {
    Reply reply;
    reply.op = request.op;
    reply.xid = request.xid;
    reply.zxid = tree_.last_zxid();
    const std::uint64_t connection = client.connection->id();
    const Node* const node = tree_.find(request.path);
    const bool checked = request.op != Op::exists || ensemble_.options().exists_needs_read;
    const bool readable = node != nullptr && (!checked || permits(node->acl, Acl::read, client.identities));
    switch (request.op) {
        case Op::exists:
        case Op::get:
        case Op::children:
            reply.rc = node == nullptr ? Rc::no_node : readable ? Rc::ok : Rc::no_auth;
            if (reply.rc == Rc::ok) {
                reply.stat = node->stat();
                if (request.op == Op::get) reply.data = node->data;
                if (request.op == Op::children) reply.names.assign(node->children.begin(), node->children.end());
            }
            if (request.watch && (reply.rc == Rc::ok || (request.op == Op::exists && reply.rc == Rc::no_node))) {
                (request.op == Op::children ? child_watchers_ : data_watchers_)[request.path].insert(connection);
            }
            break;
        case Op::set_watches: set_watches(client, request); break;
        case Op::remove_watches: {
            bool any = false;
            for (auto* table : {&data_watchers_, &child_watchers_}) {
                const auto found = table->find(request.path);
                if (found == table->end()) continue;
                any = found->second.erase(connection) != 0 || any;
                if (found->second.empty()) table->erase(found);
            }
            reply.rc = any ? Rc::ok : Rc::no_watcher;
            break;
        }
        default: break;
    }
    send(client, std::move(reply));
}

void SimServer::set_watches(Client& client, const Request& request) {
    const std::uint64_t connection = client.connection->id();
    for (const std::string& path : request.data_watches) {
        const Node* const node = tree_.find(path);
        if (node == nullptr) {
            notify(connection, {WatchEventType::deleted, path});
        } else if (node->mzxid > request.last_zxid) {
            notify(connection, {WatchEventType::changed, path});
        } else {
            data_watchers_[path].insert(connection);
        }
    }
    for (const std::string& path : request.exist_watches) {
        if (tree_.find(path) != nullptr) {
            notify(connection, {WatchEventType::created, path});
        } else {
            data_watchers_[path].insert(connection);
        }
    }
    for (const std::string& path : request.child_watches) {
        const Node* const node = tree_.find(path);
        if (node == nullptr) {
            notify(connection, {WatchEventType::deleted, path});
        } else if (node->pzxid > request.last_zxid) {
            notify(connection, {WatchEventType::children_changed, path});
        } else {
            child_watchers_[path].insert(connection);
        }
    }
}

void SimServer::notify(std::uint64_t connection, const WatchEvent& event) {
    Client* const client = client_of(connection);
    if (client == nullptr) return;
    Reply reply;
    reply.is_event = true;
    reply.event = event;
    reply.zxid = -1;  // an event does not move what the client has seen
    send(*client, std::move(reply));
}

void SimServer::fire(const std::vector<WatchEvent>& events) {
    for (const WatchEvent& event : events) {
        std::set<std::uint64_t> told;
        const auto take = [&](std::map<std::string, std::set<std::uint64_t>>& table) {
            const auto found = table.find(event.path);
            if (found == table.end()) return;
            told.insert(found->second.begin(), found->second.end());
            table.erase(found);
        };
        if (event.type != WatchEventType::children_changed) take(data_watchers_);
        if (event.type == WatchEventType::children_changed || event.type == WatchEventType::deleted)
            take(child_watchers_);
        for (const std::uint64_t connection : told) {
            const Client* const client = client_of(connection);
            if (client != nullptr && permits(event.acl, Acl::read, client->identities)) notify(connection, event);
        }
    }
}

}  // namespace zkrecipes::sim
