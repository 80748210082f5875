#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/session_options.hpp>

#include "base/runtime.hpp"
#include "client/result.hpp"

namespace zkrecipes::internal {

struct NodeStat {
    std::int64_t czxid = 0, mzxid = 0, pzxid = 0;
    std::int64_t ctime_ms = 0, mtime_ms = 0;
    std::int32_t version = 0, cversion = 0, aversion = 0;
    std::int32_t data_length = 0, num_children = 0;
    std::int64_t ephemeral_owner = 0;
};

enum class CreateMode { persistent, ephemeral, persistent_sequential, ephemeral_sequential, container };

struct MultiOp {
    enum class Kind { create, remove, set, check } kind = Kind::check;
    std::string path{};
    std::string data{};         // create, set
    std::vector<Acl> acl{};     // create
    CreateMode mode{};          // create; never container (the C client aborts the process on its answer)
    std::int32_t version = -1;  // remove, set, check
};
struct MultiResult {
    Rc rc = Rc::ok;    // of this operation; runtime_inconsistency for those after the one that failed
    std::string path;  // create: the name given by the server
    NodeStat stat;     // set: of the node right after this operation; its mzxid is the zxid of the transaction
};

enum class WatchEventType { created, deleted, changed, children_changed, removed };

enum class ClientState {
    connecting,  // no server answers
    connected,
    expired,      // final
    auth_failed,  // final
    dead          // final: the handle cannot be used, for another reason
};
struct ClientStatus {
    ClientState state = ClientState::connecting;
    std::int64_t session_id = 0;           // valid when connected, and after
    std::chrono::milliseconds timeout{0};  // as negotiated by this connect
    std::string server;
    bool by_zookeeper = true;  // made_by_zookeeper(), of the session
};

/// Whether a server of Apache ZooKeeper made a session, to judge by its id and password. ZooKeeper puts the number of
/// the server that made the session, 1 to 255, into the first byte of the id, and makes a random password. ClickHouse
/// Keeper counts its sessions, from 1 or from the last id of the ZooKeeper whose data it has taken over, and writes
/// zeros for the password. Where false, the library takes no shortcut that rests on more than the protocol says
/// (docs/guarantees.md#clickhouse-keeper). A ZooKeeper server with the number 0 loses nothing but the shortcuts.
inline bool made_by_zookeeper(std::int64_t session_id, std::string_view password) {
    const bool numbered = static_cast<std::uint64_t>(session_id) >> 56U != 0;
    return numbered && password.find_first_not_of('\0') != password.npos;
}

/// Told what a Client sees. Called from the client's own thread, one call at a time, in the order in which things
/// happened, in one order with the replies; never from inside a call into the Client, and not after the close
/// completion has run. Must not block and must not throw.
class ClientEvents {
public:
    virtual ~ClientEvents() = default;
    virtual void on_status(const ClientStatus& status) = 0;
    virtual void on_watch(WatchEventType type, const std::string& path) = 0;
    /// Why an attempt to connect failed, if that is known (SessionInfo::problem).
    virtual void on_problem(const std::string& /*text*/) {}
    virtual void on_auth(Rc rc) = 0;  // one per add_auth of the handle, in their order, unless it is closed before
};

/// One ZooKeeper handle: one session, several connections, until it is expired or closed.
///
/// Asynchronous: no function blocks. Each request is answered exactly once, on the client's thread (or the protocol
/// lane when it cannot be sent), never from inside the call, also after expiry and on close (`closed`). Requests
/// of one handle are executed and, until it ends, answered in the order of the calls, except heartbeat() and nudge();
/// answers and watch events arrive in ZooKeeper's order. A read with `watch` registers for one event on that path, of
/// the kinds that this read can see, if it was answered with ok (exists: also with no_node). All paths are complete
/// server paths and must have been validated.
class Client {
public:
    virtual ~Client() = default;  // after close() has completed, or when nothing was ever started

    using VoidDone = std::function<void(Rc)>;
    using StatDone = std::function<void(Rc, const NodeStat&)>;
    using CreateDone = std::function<void(Rc, std::string path, const NodeStat&)>;
    using GetDone = std::function<void(Rc, std::string data, const NodeStat&)>;
    using ChildrenDone = std::function<void(Rc, std::vector<std::string> names, const NodeStat&)>;
    using MultiDone = std::function<void(Rc, std::vector<MultiResult>)>;

    virtual void create(std::string path, std::string data, const std::vector<Acl>& acl, CreateMode mode,
                        CreateDone done) = 0;
    virtual void remove(const std::string& path, std::int32_t version, VoidDone done) = 0;
    virtual void exists(const std::string& path, bool watch, StatDone done) = 0;
    virtual void get(const std::string& path, bool watch, GetDone done) = 0;
    virtual void set(const std::string& path, const std::string& data, std::int32_t version, StatDone done) = 0;
    virtual void children(const std::string& path, bool watch, ChildrenDone done) = 0;
    virtual void multi(std::vector<MultiOp> ops, MultiDone done) = 0;
    virtual void sync(const std::string& path, VoidDone done) = 0;
    // These two are sent in front of all requests that still wait to be sent, so they may be executed before requests
    // that were made earlier. Their answers say nothing about those.
    /// Checks in one transaction that the nodes exist. For nodes whose create was answered.
    virtual void heartbeat(const std::vector<std::string>& nodes, MultiDone done) = 0;
    /// Reads the root.
    virtual void nudge(StatDone done) = 0;
    /// Removes every watch of this handle on the path, on the server too.
    virtual void remove_watches(const std::string& path, VoidDone done) = 0;

    virtual void add_auth(const Auth& auth) = 0;  // answered by on_auth
    virtual void set_servers(
        const std::vector<std::string>& hosts) = 0;  // "host:port"; takes effect at the next connect

    /// Ends the session if connected (the servers delete its ephemeral nodes), joins the handle's threads, answers what
    /// is still open with `closed`, then runs `done` once. Runs on the blocking lane; callable once, from anywhere.
    virtual void close(std::function<void()> done) = 0;

    virtual ClientStatus status() const = 0;
};

struct ClientOptions {
    std::vector<std::string> hosts;  // "host:port"; tried in random order, so that clients spread over the servers
    std::chrono::milliseconds timeout{10'000};
    std::shared_ptr<spdlog::logger> logger;
    std::optional<TlsOptions> tls{};    // checked; the names of the files are absolute
    std::optional<SaslOptions> sasl{};  // checked; with the password
};

/// Opens handles. The real one is make_zk_client_factory; the simulation has its own.
class ClientFactory {
public:
    virtual ~ClientFactory() = default;
    /// Returns at once; connects later. Throws Error (bad_connect_string, bad_option, unsupported, out_of_resources)
    /// when no handle can be made. The
    /// events object must live until close() has completed.
    virtual std::shared_ptr<Client> open(const ClientOptions& options, std::shared_ptr<ClientEvents> events) = 0;
};

std::shared_ptr<ClientFactory> make_zk_client_factory(std::shared_ptr<Runtime> runtime);

}  // namespace zkrecipes::internal
