#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/client.hpp"

namespace zkrecipes::sim {

using internal::CreateMode;
using internal::MultiOp;
using internal::MultiResult;
using internal::NodeStat;
using internal::Rc;
using internal::WatchEventType;

using SessionId = std::int64_t;
using AclList = std::shared_ptr<const std::vector<Acl>>;

struct Node {
    std::string data;
    AclList acl;
    std::int64_t czxid = 0, mzxid = 0, pzxid = 0, ctime_ms = 0, mtime_ms = 0;
    std::int32_t version = 0;
    std::int32_t cversion = 0;  // counts creates only, as the server does inside
    SessionId owner = 0;        // 0: not ephemeral
    bool container = false;
    std::set<std::string> children;

    NodeStat stat() const;
};

/// One change that a committed transaction makes.
struct Effect {
    enum class Kind { create, remove, set, check, error } kind = Kind::check;
    std::string path;
    std::string data;
    AclList acl;
    SessionId owner = 0;
    bool container = false;
    std::int32_t parent_cversion = 0;  // create
    std::int32_t version = 0;          // set: the new one
    Rc rc = Rc::ok;                    // error
};

/// One entry of the log. A request that failed takes a zxid too, as in ZooKeeper.
struct Txn {
    enum class Kind { request, create_session, close_session, new_epoch } kind = Kind::request;
    std::int64_t zxid = 0;
    std::int64_t time_ms = 0;
    SessionId session = 0;
    std::int64_t timeout_ms = 0;  // create_session
    std::vector<Effect> effects;
    bool multi = false;
    bool by_operator = false;
    int server = -1;               // that took the request; -1: the leader itself
    std::uint64_t connection = 0;  // on that server
    std::int64_t xid = 0;
};

struct WatchEvent {
    WatchEventType type;
    std::string path;
    AclList acl{};  // of the node: who may not read it is not told (CVE-2024-23944). Null: all are
};

/// Whether the list gives a permission to one of these identities.
bool permits(const AclList& acl, int permission, const std::vector<std::string>& identities);

/// Anyone may do anything.
std::vector<Acl> open_acl();

std::string parent_of(std::string_view path);
std::string name_of(std::string_view path);
/// The name whose last ten characters, those of its number, come first; as text. There must be one.
const std::string& first_in_queue(const std::set<std::string>& names);

/// The state of one server: a function of the transactions that it has applied.
class DataTree {
public:
    explicit DataTree(bool keeper);  // EnsembleOptions::keeper

    const Node* find(const std::string& path) const;
    /// Applies in order; appends what watchers of this server would see.
    void apply(const Txn& txn, std::vector<WatchEvent>& events);

    std::int64_t last_zxid() const noexcept { return last_zxid_; }
    /// Of each set of the last transaction, in their order, as it left the node: a later operation may have deleted it.
    const std::vector<NodeStat>& stats_of_sets() const noexcept { return stats_of_sets_; }
    const std::map<SessionId, std::int64_t>& sessions() const noexcept { return sessions_; }  // timeout in ms
    const std::set<std::string>& containers() const noexcept { return containers_; }
    std::vector<std::string> ephemerals_of(SessionId session) const;
    std::size_t ephemeral_count() const noexcept;
    std::vector<std::string> all_paths() const;  // sorted; without /zookeeper

    /// For tests of the 2^31 boundary: as if so many children had been created.
    void set_cversion(const std::string& path, std::int32_t cversion);
    /// For the version that comes round to -1: as if 2^32 - 5 writes came between the first one and the second.
    void hurry_versions(const std::string& path) { hurried_.insert(path); }
    /// As if so many children had been created, and deleted, when the node is made for the first time.
    void count_from(const std::string& path, std::int32_t number) { first_numbers_[path] = number; }
    std::int32_t first_number(const std::string& path) const;
    std::int32_t version_after(const std::string& path, std::int32_t version) const;

private:
    void create(const Effect& effect, const Txn& txn, std::vector<WatchEvent>& events);
    void remove(const std::string& path, const Txn& txn, std::vector<WatchEvent>& events);

    bool keeper_;
    std::unordered_map<std::string, Node> nodes_;  // looked up only; never walked in an order that matters
    std::map<SessionId, std::int64_t> sessions_;
    std::map<SessionId, std::set<std::string>> ephemerals_;
    std::set<std::string> containers_;
    std::set<std::string> hurried_;
    std::map<std::string, std::int32_t> first_numbers_;
    std::int64_t last_zxid_ = 0;
    std::vector<NodeStat> stats_of_sets_;
};

/// ZooKeeper's "digest" identity of user:password.
std::string digest_id(const std::string& credential);

}  // namespace zkrecipes::sim
