#include "testing/network.hpp"

#include <algorithm>

#include "testing/server.hpp"

namespace zkrecipes::sim {

const char* to_string(Op op) noexcept {
    switch (op) {
        case Op::connect: return "connect";
        case Op::close: return "close";
        case Op::ping: return "ping";
        case Op::auth: return "auth";
        case Op::set_watches: return "set_watches";
        case Op::create: return "create";
        case Op::remove: return "delete";
        case Op::exists: return "exists";
        case Op::get: return "get";
        case Op::set: return "set";
        case Op::children: return "children";
        case Op::multi: return "multi";
        case Op::sync: return "sync";
        case Op::remove_watches: return "remove_watches";
    }
    return "?";
}

bool is_write(Op op) noexcept {
    switch (op) {
        case Op::close:
        case Op::create:
        case Op::remove:
        case Op::set:
        case Op::multi:
        case Op::sync: return true;
        default: return false;
    }
}

Reply refusal_of(const Request& request, Rc rc) {
    Reply reply;
    reply.op = request.op;
    reply.xid = request.xid;
    reply.rc = rc;
    reply.results.resize(request.ops.size());
    for (MultiResult& result : reply.results) {
        result.rc = &result == &reply.results.front() ? rc : Rc::runtime_inconsistency;
    }
    return reply;
}

void Pipe::send(SimTime delay, std::function<void()> deliver, const std::shared_ptr<void>& keep) {
    owner_ = keep;
    queue_.push_back(std::move(deliver));
    last_ = std::max(last_, world_->now() + delay);
    world_->at(last_, to_, [this, alive = std::weak_ptr<void>(keep)] {
        if (const auto kept = alive.lock()) pump();
    });
}

void Pipe::pump() {
    if (blocked_) {
        ++skipped_;
        return;
    }
    if (queue_.empty()) return;
    auto deliver = std::move(queue_.front());
    queue_.pop_front();
    deliver();
}

void Pipe::set_blocked(bool blocked, SimTime flush_delay) {
    if (blocked_ == blocked) return;
    blocked_ = blocked;
    if (blocked) return;
    last_ = std::max(last_, world_->now() + flush_delay);
    for (; skipped_ > 0; --skipped_) {
        world_->at(last_, to_, [this, alive = owner_] {
            if (const auto kept = alive.lock()) pump();
        });
    }
}

Connection::Connection(SimNetwork& network, std::uint64_t id, Actor& client, SimServer& server)
    : network_(network),
      id_(id),
      client_(client),
      server_(server),
      to_server_(network.world(), server.actor()),
      to_client_(network.world(), client) {}

void Connection::request(Request request) {
    if (!client_open_) return;
    for (const auto& listener : network_.listeners_) listener(client_, request);
    const bool changes = request.op == Op::create || request.op == Op::remove || request.op == Op::set;
    if (changes || request.op == Op::multi) ++network_.changes_sent_;
    to_server_.send(
        network_.delay_of_request(client_),
        [this, request = std::move(request)] {
            if (server_open_) server_.on_request(*this, request);
        },
        shared_from_this());
}

void Connection::reply(Reply reply) {
    if (!server_open_) return;
    to_client_.send(
        network_.delay(),
        [this, reply = std::move(reply)] {
            if (client_open_ && on_reply) on_reply(reply);
        },
        shared_from_this());
}

void Connection::close_by_client() {
    if (!client_open_) return;
    client_open_ = false;
    on_reply = nullptr;
    on_closed = nullptr;
    to_server_.send(
        network_.delay(),
        [this] {
            if (!server_open_) return;
            server_open_ = false;
            server_.on_disconnect(*this);
        },
        shared_from_this());
}

void Connection::client_sees_close() {
    if (!client_open_) return;
    client_open_ = false;
    const auto told = std::move(on_closed);
    on_reply = nullptr;
    on_closed = nullptr;
    if (told) told();
}

void Connection::close_by_server() {
    if (!server_open_) return;
    server_open_ = false;
    to_client_.send(
        network_.delay(), [this] { client_sees_close(); }, shared_from_this());
}

void Connection::reset() {
    to_server_.clear();
    to_client_.clear();
    if (server_open_) {
        server_open_ = false;
        server_.on_disconnect(*this);
    }
    to_client_.send(
        network_.delay(), [this] { client_sees_close(); }, shared_from_this());
}

SimNetwork::SimNetwork(World& world) : world_(world), rng_(world.fork("network")) {}

SimTime SimNetwork::delay() {
    SimTime delay = rng_.between(shape.least, shape.most);
    if (rng_.one_in(shape.spike_one_in)) delay += rng_.between(0, shape.spike);
    return delay;
}

SimTime SimNetwork::delay_of_request(const Actor& client) {
    const auto found = held_back_.find(client.id());
    if (found == held_back_.end() || found->second.requests_before-- > 0) return delay();
    const SimTime late = found->second.late;
    held_back_.erase(found);
    return late + delay();
}

void SimNetwork::sweep() {
    std::erase_if(connections_, [](const auto& connection) {
        return !connection->client_open_ && !connection->server_open_ && connection.use_count() == 1;
    });
}

void SimNetwork::connect(Actor& client, SimServer& server, std::function<void(std::shared_ptr<Connection>)> done) {
    if (connections_.size() > 64) sweep();
    if (cut_off_.count(client.id()) != 0 || blocked(client, server.id())) return;
    world_.in(delay(), &client, [this, &client, &server, done = std::move(done)] {
        if (cut_off_.count(client.id()) != 0 || blocked(client, server.id())) return;
        if (!server.alive() || (refuses && refuses(client))) return done(nullptr);
        auto connection = std::make_shared<Connection>(*this, next_id_++, client, server);
        connections_.push_back(connection);
        done(connection);
    });
}

bool SimNetwork::blocked(Actor& client, int server) const {
    const auto found = ways_.find({client.id(), server});
    return found != ways_.end() && (found->second.to_server_blocked || found->second.from_server_blocked);
}

void SimNetwork::block(Actor& client, int server, bool to_server, bool from_server) {
    Way& way = ways_[{client.id(), server}];
    way.to_server_blocked = to_server;
    way.from_server_blocked = from_server;
    for (const auto& connection : connections_) {
        if (&connection->client_ != &client || connection->server_.id() != server) continue;
        // The kernel goes on sending for a socket that was closed meanwhile, or has given up: either may be.
        if (!to_server && connection->to_server_.blocked() && !connection->client_open_ && rng_.one_in(2)) {
            connection->to_server_.clear();
            connection->server_open_ = false;
            connection->server_.on_disconnect(*connection);
        }
        const SimTime flush = rng_.between(0, 300 * kMilli);
        connection->to_server_.set_blocked(to_server, flush);
        connection->to_client_.set_blocked(from_server, flush);
    }
}

void SimNetwork::unblock_all() {
    for (const auto& connection : connections_) {
        const auto found = ways_.find({connection->client_.id(), connection->server_.id()});
        if (found != ways_.end() && cut_off_.count(connection->client_.id()) == 0) {
            block(connection->client_, connection->server_.id(), false, false);
        }
    }
    ways_.clear();
}

void SimNetwork::reset(Actor& client, int server) {
    const auto all = connections_;
    for (const auto& connection : all) {
        if (&connection->client_ != &client || (server >= 0 && connection->server_.id() != server)) continue;
        if (connection->client_open_ && !blocked(client, connection->server_.id())) connection->reset();
    }
}

void SimNetwork::fail_locally(Actor& client) {
    const auto all = connections_;
    for (const auto& connection : all) {
        if (&connection->client_ != &client) continue;
        world_.in(0, &client, [connection] {
            const auto told = std::move(connection->on_closed);
            connection->close_by_client();
            if (told) told();
        });
    }
}

int SimNetwork::server_of(const Actor& client) const {
    for (const auto& connection : connections_) {
        if (&connection->client_ == &client && connection->client_open_) return connection->server_.id();
    }
    return -1;
}

void SimNetwork::cut_off(Actor& client) {
    reset(client, -1);
    cut_off_[client.id()] = true;
    for (const auto& connection : connections_) {
        if (&connection->client_ != &client) continue;
        connection->to_server_.clear();
        if (connection->server_open_) connection->server_.on_disconnect(*connection);
        connection->server_open_ = false;
    }
}

void SimNetwork::server_died(SimServer& server) {
    const auto all = connections_;
    for (const auto& connection : all) {
        if (&connection->server_ != &server) continue;
        connection->to_server_.clear();
        connection->to_client_.clear();  // unsent data dies with the process
        connection->server_open_ = false;
        if (connection->client_open_) {
            connection->to_client_.send(
                delay(), [raw = connection.get()] { raw->client_sees_close(); }, connection);
        }
    }
}

std::size_t SimNetwork::open_connections() const {
    return static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(), [](const auto& each) { return each->client_open_; }));
}

const Actor* SimNetwork::client_of(std::uint64_t connection) const {
    const auto found = std::find_if(connections_.begin(), connections_.end(),
                                    [&](const auto& each) { return each->id() == connection; });
    return found == connections_.end() ? nullptr : &(*found)->client();
}

}  // namespace zkrecipes::sim
