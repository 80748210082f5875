#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "testing/network.hpp"
#include "testing/server.hpp"
#include "testing/world.hpp"

namespace zkrecipes::sim {

struct EnsembleOptions {
    int servers = 3;
    std::int64_t tick_ms = 2000;
    int sync_limit = 5;
    std::int64_t most_ticks = 20;  // that a session may have as its timeout
    std::int64_t container_check_ms = 60'000;
    bool containers = true;  // false: refused, as by servers before ZooKeeper 3.5 and Keeper 26.7
    /// As ClickHouse Keeper: it counts sessions, makes a new one at each connect, and leaves the pzxid of a directory
    /// as it is when a child ends.
    bool keeper = false;
    bool exists_needs_read = true;  // false: as servers before 3.8.4 and 3.9.2 (ZOOKEEPER-2590)
    std::int64_t server_rate_ppm = 0;
    std::int64_t clock_ahead_ms = 0;  // of the servers, beside what their actors' clocks say
    SimTime peer_delay_least = 100 * kMicro;
    SimTime peer_delay_most = 3 * kMilli;
    // Faults drawn for each request. 0: never.
    unsigned lose_request_one_in = 0;  // the connection breaks before it is executed
    unsigned lose_reply_one_in = 0;    // … after
    unsigned stall_one_in = 0;         // ZOOKEEPER-4537: no answer until the server hears anything else
};

/// What is to happen to one request.
struct Verdict {
    enum class Kind { execute, lose_request, lose_reply, refuse } kind = Kind::execute;  // lose: the connection breaks
    Rc rc = Rc::ok;                                                                      // refuse
};

/// A ZooKeeper ensemble in memory, as far as a client can tell: a leader that commits through a quorum, followers
/// that lag, elections, sessions that only the leader ends. How servers find a leader is decided by an oracle that
/// knows who can talk to whom; everything that a client can see of it (gaps, deposed leaders that still answer reads,
/// lost proposals) comes from messages that are late or held back.
class SimEnsemble {
public:
    SimEnsemble(World& world, EnsembleOptions options);
    ~SimEnsemble();

    World& world() noexcept { return world_; }
    SimNetwork& network() noexcept { return network_; }
    const EnsembleOptions& options() const noexcept { return options_; }
    EnsembleOptions& faults() noexcept { return options_; }
    int size() const noexcept { return static_cast<int>(servers_.size()); }
    SimServer& server(int id) { return *servers_[static_cast<std::size_t>(id)]; }
    std::vector<std::string> hosts() const;
    SimServer* find(const std::string& host);
    SimServer* leader();  // with a quorum; null: none at present

    // ---- nemesis
    void kill(int server);
    void restart(int server);
    void freeze(int server, SimTime duration);
    /// It does not hear the other servers for so long; its clients it does.
    void isolate(int id, SimTime duration);
    void cut(int a, int b, bool cut);  // between two servers
    void heal();                       // every way between all, every server started, none frozen longer than its time
    bool is_cut(int a, int b) const;
    /// As a second handle with the same session that is closed.
    void expire(SessionId session);
    /// An operator deletes the node, and what is below it.
    void remove(const std::string& path);
    /// … writes into the node, or makes one that belongs to nobody.
    void write(const std::string& path, const std::string& data);
    void make(const std::string& path, std::vector<Acl> acl = open_acl(), CreateMode mode = CreateMode::persistent);

    /// Asked of each request that arrives, but connects, pings and credentials. Empty: all are executed.
    std::function<Verdict(const Actor& client, const Request& request)> judge;

    /// Told of each of these transactions that is committed, by every server that applies it. A deletion or an end that
    /// was only proposed may be lost with its leader.
    std::function<void(const Txn&)> on_operator_txn;
    /// Told of each committed transaction once, in their order, with the tree right behind it.
    std::function<void(const Txn&, const DataTree&)> on_commit;
    /// The code of a client was just told that this node is gone, by a heartbeat that it has asked for then, and by a
    /// server that has seen this zxid; or that its session is over.
    std::function<void(const std::string& node, std::int64_t zxid, SimTime asked)> on_told_gone;
    std::function<void(SessionId)> on_told_over;
    /// … as on_commit, which is the workload's.
    void listen(std::function<void(const Txn&)> listener) { listeners_.push_back(std::move(listener)); }

    // ---- what is true
    const DataTree& committed() const;  // of the server that has applied most
    bool settled() const;               // one leader, everyone follows, nothing under way
    std::size_t watch_count() const;
    /// When a session last had something changed; 0: never.
    SimTime last_change_of(SessionId session) const;
    /// The sessions that wait for an event of the node, on whichever server.
    std::set<SessionId> watchers_of(const std::string& path) const;

private:
    friend class SimServer;
    void schedule_election();
    void try_election();
    void applied(const Txn& txn, const DataTree& tree);
    bool reachable(int a, int b) const;
    void peer_send(int from, int to, std::function<void()> deliver);

    World& world_;
    EnsembleOptions options_;
    SimNetwork network_;
    Rng rng_;
    std::vector<std::unique_ptr<SimServer>> servers_;
    std::vector<std::shared_ptr<Pipe>> pipes_;  // from * size + to
    std::vector<bool> cut_;
    bool election_scheduled_ = false;
    std::int64_t epoch_ = 0;
    std::vector<std::function<void(const Txn&)>> listeners_;
    std::int64_t told_ = 0;  // of the last transaction of which on_commit was told
    std::map<SessionId, SimTime> last_change_;
};

}  // namespace zkrecipes::sim
