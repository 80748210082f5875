#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing/data_tree.hpp"
#include "testing/world.hpp"

namespace zkrecipes::sim {

enum class Op {
    connect,
    close,
    ping,
    auth,
    set_watches,
    create,
    remove,
    exists,
    get,
    set,
    children,
    multi,
    sync,
    remove_watches
};
const char* to_string(Op op) noexcept;
bool is_write(Op op) noexcept;  // goes to the leader: sync and close too

struct Request {
    Op op = Op::ping;
    std::int64_t xid = 0;
    std::string path;
    std::string data;
    std::vector<Acl> acl;
    CreateMode mode{};
    std::int32_t version = -1;
    bool watch = false;
    std::vector<MultiOp> ops;
    // connect: the session to go on with (0: a new one) and the last zxid seen; set_watches: relative to that zxid.
    SessionId session = 0;
    std::int64_t last_zxid = 0;
    std::int64_t timeout_ms = 0;
    std::vector<std::string> data_watches, exist_watches, child_watches;
    Auth auth;
    bool own = false;  // sent by the session by itself: a heartbeat
};

struct Reply {
    Op op = Op::ping;
    bool is_event = false;
    WatchEvent event{};
    std::int64_t xid = 0;
    std::int64_t zxid = 0;
    Rc rc = Rc::ok;
    std::string path;
    std::string data;
    NodeStat stat;
    std::vector<std::string> names;
    std::vector<MultiResult> results;
    SessionId session = 0;  // connect; 0: expired
    std::int64_t timeout_ms = 0;
};

/// The answer to a request that is refused as a whole.
Reply refusal_of(const Request& request, Rc rc);

/// Delivers closures in order to one actor; holds them back while the way is blocked, as TCP does.
class Pipe {
public:
    Pipe(World& world, Actor& to) : world_(&world), to_(&to) {}
    void send(SimTime delay, std::function<void()> deliver, const std::shared_ptr<void>& keep);
    void set_blocked(bool blocked, SimTime flush_delay);
    bool blocked() const noexcept { return blocked_; }
    void clear() { queue_.clear(); }

private:
    void pump();
    World* world_;
    Actor* to_;
    std::deque<std::function<void()>> queue_;
    std::weak_ptr<void> owner_;
    SimTime last_ = 0;
    std::size_t skipped_ = 0;
    bool blocked_ = false;
};

class SimServer;
class SimNetwork;

/// One TCP connection between a client process and a server.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(SimNetwork& network, std::uint64_t id, Actor& client, SimServer& server);

    // ---- the client's end
    void request(Request request);
    void close_by_client();
    std::function<void(Reply)> on_reply;
    std::function<void()> on_closed;
    // ---- the server's end
    void reply(Reply reply);
    void close_by_server();
    /// Both ends learn of it at once; what is on the way is lost.
    void reset();

    std::uint64_t id() const noexcept { return id_; }
    Actor& client() const noexcept { return client_; }
    SimServer& server() const noexcept { return server_; }
    bool server_open() const noexcept { return server_open_; }
    bool client_open() const noexcept { return client_open_; }

private:
    friend class SimNetwork;
    void client_sees_close();
    SimNetwork& network_;
    const std::uint64_t id_;
    Actor& client_;
    SimServer& server_;
    Pipe to_server_;
    Pipe to_client_;
    bool client_open_ = true;
    bool server_open_ = true;
};

/// The ways between client processes and servers.
class SimNetwork {
public:
    explicit SimNetwork(World& world);

    struct Shape {
        SimTime least = 100 * kMicro;
        SimTime most = 2 * kMilli;
        unsigned spike_one_in = 200;
        SimTime spike = 30 * kMilli;
    };
    Shape shape;
    SimTime delay();

    /// Opens a connection: `done` gets it, or null (refused). Not called at all while the way is blocked.
    void connect(Actor& client, SimServer& server, std::function<void(std::shared_ptr<Connection>)> done);

    /// A client for which this answers true is refused when it connects. Empty: nobody is.
    std::function<bool(const Actor& client)> refuses;

    /// Packets towards the server, or from it, are dropped until unblocked; TCP sends them again then.
    void block(Actor& client, int server, bool to_server, bool from_server);
    void unblock_all();
    bool blocked(Actor& client, int server) const;
    /// Breaks what is open between them. server < 0: all of the client's.
    void reset(Actor& client, int server);
    /// The client's own side says that its connections are broken (no route any more); the servers do not hear of it.
    void fail_locally(Actor& client);
    /// A dead process: its connections break, and it never opens another.
    void cut_off(Actor& client);
    void server_died(SimServer& server);

    /// The packet of the request after the one that it is sending is lost, and comes so much later, and all after it.
    void hold_back(const Actor& client, SimTime late) { held_back_[client.id()] = {1, late}; }

    /// To which it is connected; -1: to none.
    int server_of(const Actor& client) const;
    std::uint64_t changes_sent() const noexcept { return changes_sent_; }  // requests that change nodes
    /// Whenever a client has just sent a request: for faults that are aimed.
    void listen(std::function<void(Actor& client, const Request& request)> listener) {
        listeners_.push_back(std::move(listener));
    }

    World& world() noexcept { return world_; }
    std::size_t open_connections() const;
    /// Null: it is closed and forgotten.
    const Actor* client_of(std::uint64_t connection) const;

private:
    friend class Connection;
    struct Way {
        bool to_server_blocked = false, from_server_blocked = false;
    };
    void sweep();
    SimTime delay_of_request(const Actor& client);
    World& world_;
    Rng rng_;
    std::map<std::pair<int, int>, Way> ways_;  // (client actor, server)
    std::map<int, bool> cut_off_;
    struct HeldBack {
        int requests_before;
        SimTime late;
    };
    std::map<int, HeldBack> held_back_;  // by the client's id
    std::vector<std::shared_ptr<Connection>> connections_;
    std::uint64_t next_id_ = 1;
    std::uint64_t changes_sent_ = 0;
    std::vector<std::function<void(Actor&, const Request&)>> listeners_;
};

}  // namespace zkrecipes::sim
