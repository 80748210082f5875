#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "testing/data_tree.hpp"
#include "testing/network.hpp"
#include "testing/world.hpp"

namespace zkrecipes::sim {

class SimEnsemble;

using LogEntry = std::shared_ptr<const Txn>;

inline constexpr SimTime kDiskUsual = 2 * kMilli;  // at most, for one write

/// What a client asked that has to go through the leader.
struct Forwarded {
    int server = -1;
    std::uint64_t connection = 0;
    SessionId session = 0;
    Request request;
    std::vector<std::string> identities;  // "scheme:id", of the connection
};

/// One ZooKeeper server: a prefix of the leader's log, the tree that it makes, the connections of its clients; when it
/// leads, also the next zxid, the session timers and the acknowledgements. In follower.cpp the common and the
/// follower's part, in leader.cpp the leader's.
class SimServer {
public:
    enum class Role { down, looking, follower, leader };

    SimServer(SimEnsemble& ensemble, int id);

    int id() const noexcept { return id_; }
    Actor& actor() noexcept { return actor_; }
    Role role() const noexcept { return role_; }
    bool alive() const noexcept { return role_ != Role::down; }
    bool serving() const noexcept { return role_ == Role::follower || role_ == Role::leader; }
    const DataTree& tree() const noexcept { return tree_; }
    DataTree& tree_for_tests() noexcept { return tree_; }
    std::int64_t last_logged() const noexcept { return log_.empty() ? 0 : log_.back()->zxid; }
    std::size_t watch_count() const noexcept;
    void add_watchers_of(const std::string& path,
                         std::set<SessionId>& sessions) const;  // of the node, not its children
    std::size_t proposals_open() const noexcept { return log_.size() - applied_; }

    // ---- clients
    void on_request(Connection& connection, const Request& request);
    void on_disconnect(Connection& connection);

    // ---- roles, decided by the ensemble
    void start_looking();
    void go_down();
    void become_leader(std::int64_t epoch);
    void join(SimServer& leader);
    void follower_gone(int follower);
    bool has_quorum() const;
    /// Not one that was deposed and does not know it yet: whoever has accepted a later epoch never goes back.
    bool may_follow(const SimServer& leader) const noexcept { return leader.term_ >= last_logged() >> 32; }
    int leader_id() const noexcept { return leader_; }

    // ---- leader's own transactions
    void close_session(SessionId session, bool by_operator = false);
    void do_as_operator(const MultiOp& op);            // nothing, where it is refused
    void remove_as_operator(const std::string& path);  // the reaper does the same

    SimTime fsync_most = kDiskUsual;  // more: a slow disk

private:
    struct Entry {  // a request that waits for its turn
        Request request;
        bool write = false;
        bool done = false;
        bool lose_reply = false;
        Reply reply;
    };
    struct Client {  // one connection
        std::shared_ptr<Connection> connection;
        SessionId session = 0;
        std::int64_t timeout_ms = 0;
        std::deque<Entry> entries;
        std::vector<std::string> identities;
        bool ready = false;
    };
    struct Record {  // what the leader knows of a node beyond its tree: proposed, not applied
        std::string path;
        std::int64_t zxid = 0;
        bool exists = true;
        std::int32_t version = 0, cversion = 0, child_count = 0;
        SessionId owner = 0;
        AclList acl;
    };
    using RecordPtr = std::shared_ptr<Record>;
    struct Timer {
        std::int64_t timeout_ms = 0;
        std::int64_t expires_ms = 0;
        bool closing = false;
    };
    struct PendingSync {
        std::size_t index;
        Forwarded request;
    };

    // follower.cpp
    Client* client_of(std::uint64_t connection);
    void on_connect(Connection& connection, const Request& request);
    void finish_connect(std::uint64_t connection, SessionId session, std::int64_t timeout_ms, bool valid);
    void touch(SessionId session, std::int64_t timeout_ms);
    void forward(Forwarded request);
    void drain(Client& client);
    void answer_read(Client& client, const Request& request);
    void send(Client& client, Reply reply);
    void complete(std::uint64_t connection, std::int64_t xid, Reply reply);
    void set_watches(Client& client, const Request& request);
    void fire(const std::vector<WatchEvent>& events);
    void notify(std::uint64_t connection, const WatchEvent& event);
    void drop_client(std::uint64_t connection);
    void drop_clients();
    void append(LogEntry entry);  // a proposal: log it, then acknowledge
    void apply_to(std::size_t count);
    Reply reply_for(const Txn& txn) const;
    void finish_session_txn(const Txn& txn);
    void follower_tick();
    void on_leader_ping();

    // leader.cpp
    void on_forwarded(Forwarded request);
    void on_ack(int follower, std::size_t count);
    void on_ping_reply(int follower, const std::vector<std::pair<SessionId, std::int64_t>>& touched);
    void on_revalidate(int follower, std::uint64_t connection, SessionId session, std::int64_t timeout_ms);
    bool touch_timer(SessionId session, std::int64_t timeout_ms);
    void leader_tick();
    void expire_tick();
    void reap_tick();
    void propose(Txn txn);
    void advance_commit();
    void finish_sync(const Forwarded& request);
    Rc check_session(SessionId session, int owner);
    Txn prepare(const Forwarded& request);
    Rc prepare_op(const MultiOp& op, const Forwarded& request, std::int64_t zxid, Effect& effect);
    Rc prepare_create(const MultiOp& op, const Forwarded& request, std::int64_t zxid, Effect& effect);
    Rc fix_acl(const std::vector<Acl>& acl, const std::vector<std::string>& identities, AclList& fixed) const;
    RecordPtr record_of(const std::string& path) const;
    void add_record(Record record);
    Txn prepare_close(SessionId session, std::int64_t zxid);
    void forget_records(std::int64_t zxid);
    std::int64_t clock_ms() const;

    void after(SimTime delay, void (SimServer::*what)());  // dropped when the role changes meanwhile
    void to_server(int server, std::function<void(SimServer&)> deliver);

    SimEnsemble& ensemble_;
    World& world_;
    const int id_;
    Actor actor_;
    Rng rng_;
    Role role_ = Role::looking;
    int leader_ = -1;
    std::int64_t term_ = 0;          // epoch of the leader that we follow or are
    std::uint64_t role_number_ = 0;  // counts role changes

    std::vector<LogEntry> log_;
    std::size_t applied_ = 0;    // entries of log_ in the tree
    std::size_t committed_ = 0;  // follower: told so
    SimTime disk_free_at_ = 0;
    DataTree tree_;

    std::map<std::uint64_t, Client> clients_;
    std::map<SessionId, std::uint64_t> by_session_;
    std::map<std::string, std::set<std::uint64_t>> data_watchers_, child_watchers_;
    std::map<SessionId, std::int64_t> touched_;
    SimTime heard_leader_ = 0;
    std::deque<std::uint64_t> stalled_;  // connections whose answers wait for any other request (ZOOKEEPER-4537)

    // leader
    std::int64_t next_zxid_ = 0;
    SimTime last_tick_ = 0;
    int grace_ticks_ = 0;
    std::uint64_t next_session_ = 1;
    std::map<int, std::size_t> acked_;  // synced followers, and ourselves
    std::map<int, SimTime> heard_;
    std::map<SessionId, Timer> timers_;
    std::map<SessionId, int> owners_;
    std::deque<RecordPtr> outstanding_;
    std::map<std::string, RecordPtr> records_;
    std::deque<PendingSync> syncs_;
};

}  // namespace zkrecipes::sim
