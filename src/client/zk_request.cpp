#include "client/zk_request.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>

#include <boost/container/small_vector.hpp>

#include "base/paths.hpp"
#include "client/wire_size.hpp"
#include "client/zk_handle.hpp"

namespace zkrecipes::internal {
namespace {

// The numbers of Rc are ZooKeeper's own. -12, -122 and -125 (quota) are missing in the C client's list.
#define ZKRECIPES_SAME(ours, theirs) static_assert(static_cast<int>(Rc::ours) == (theirs))
ZKRECIPES_SAME(ok, ZOK);
ZKRECIPES_SAME(system_error, ZSYSTEMERROR);
ZKRECIPES_SAME(runtime_inconsistency, ZRUNTIMEINCONSISTENCY);
ZKRECIPES_SAME(data_inconsistency, ZDATAINCONSISTENCY);
ZKRECIPES_SAME(connection_loss, ZCONNECTIONLOSS);
ZKRECIPES_SAME(marshalling_error, ZMARSHALLINGERROR);
ZKRECIPES_SAME(unimplemented, ZUNIMPLEMENTED);
ZKRECIPES_SAME(operation_timeout, ZOPERATIONTIMEOUT);
ZKRECIPES_SAME(bad_arguments, ZBADARGUMENTS);
ZKRECIPES_SAME(invalid_state, ZINVALIDSTATE);
ZKRECIPES_SAME(new_config_no_quorum, ZNEWCONFIGNOQUORUM);
ZKRECIPES_SAME(reconfig_in_progress, ZRECONFIGINPROGRESS);
ZKRECIPES_SAME(tls_failed, ZSSLCONNECTIONERROR);
ZKRECIPES_SAME(api_error, ZAPIERROR);
ZKRECIPES_SAME(no_node, ZNONODE);
ZKRECIPES_SAME(no_auth, ZNOAUTH);
ZKRECIPES_SAME(bad_version, ZBADVERSION);
ZKRECIPES_SAME(no_children_for_ephemerals, ZNOCHILDRENFOREPHEMERALS);
ZKRECIPES_SAME(node_exists, ZNODEEXISTS);
ZKRECIPES_SAME(not_empty, ZNOTEMPTY);
ZKRECIPES_SAME(session_expired, ZSESSIONEXPIRED);
ZKRECIPES_SAME(invalid_callback, ZINVALIDCALLBACK);
ZKRECIPES_SAME(invalid_acl, ZINVALIDACL);
ZKRECIPES_SAME(auth_failed, ZAUTHFAILED);
ZKRECIPES_SAME(closing, ZCLOSING);
ZKRECIPES_SAME(nothing, ZNOTHING);
ZKRECIPES_SAME(session_moved, ZSESSIONMOVED);
ZKRECIPES_SAME(not_read_only, ZNOTREADONLY);
ZKRECIPES_SAME(local_session, ZEPHEMERALONLOCALSESSION);
ZKRECIPES_SAME(no_watcher, ZNOWATCHER);
ZKRECIPES_SAME(reconfig_disabled, ZRECONFIGDISABLED);
ZKRECIPES_SAME(credentials_demanded, ZSESSIONCLOSEDREQUIRESASLAUTH);
ZKRECIPES_SAME(throttled, ZTHROTTLEDOP);
#undef ZKRECIPES_SAME

Rc rc_of(int rc) { return rc == ZCLOSING ? Rc::closed : static_cast<Rc>(rc); }

NodeStat stat_of(const Stat* stat) {
    if (stat == nullptr) return {};
    return {.czxid = stat->czxid,
            .mzxid = stat->mzxid,
            .pzxid = stat->pzxid,
            .ctime_ms = stat->ctime,
            .mtime_ms = stat->mtime,
            .version = stat->version,
            .cversion = stat->cversion,
            .aversion = stat->aversion,
            .data_length = stat->dataLength,
            .num_children = stat->numChildren,
            .ephemeral_owner = stat->ephemeralOwner};
}

int flags_of(CreateMode mode) {
    switch (mode) {
        case CreateMode::persistent: return ZOO_PERSISTENT;
        case CreateMode::ephemeral: return ZOO_EPHEMERAL;
        case CreateMode::persistent_sequential: return ZOO_PERSISTENT_SEQUENTIAL;
        case CreateMode::ephemeral_sequential: return ZOO_EPHEMERAL_SEQUENTIAL;
        case CreateMode::container: return ZOO_CONTAINER;
    }
    return ZOO_PERSISTENT;
}

/// An access list as the C client reads it. Points into the list that it was made from.
class AclView {
public:
    AclView(const AclView&) = delete;
    AclView& operator=(const AclView&) = delete;
    explicit AclView(const std::vector<Acl>& acl) {
        entries_.reserve(acl.size());
        for (const Acl& entry : acl) {
            entries_.push_back(ACL{entry.permissions,
                                   Id{const_cast<char*>(entry.scheme.c_str()), const_cast<char*>(entry.id.c_str())}});
        }
        vector_ = {static_cast<std::int32_t>(entries_.size()), entries_.data()};
    }
    const ACL_vector* get() const { return &vector_; }

private:
    boost::container::small_vector<ACL, 4> entries_;
    ACL_vector vector_{};
};

ZkRequest& request_of(const void* data) { return *static_cast<ZkRequest*>(const_cast<void*>(data)); }

// The C client calls these under the handle's client_mutex_, so they only copy.

void answered(ZkRequest& request, int rc) {
    request.rc = rc_of(rc);
    request.handle->arrived(request);
}

void on_void(int rc, const void* data) { answered(request_of(data), rc); }

void on_sync(int rc, const char*, const void* data) { on_void(rc, data); }

void on_stat(int rc, const Stat* stat, const void* data) {
    ZkRequest& request = request_of(data);
    request.stat = stat_of(stat);
    request.children = static_cast<std::size_t>(request.stat.num_children);
    answered(request, rc);
}

void on_create(int rc, const char* path, const Stat* stat, const void* data) {
    ZkRequest& request = request_of(data);
    if (path != nullptr) request.text = path;
    request.stat = stat_of(stat);
    answered(request, rc);
}

void on_get(int rc, const char* value, int length, const Stat* stat, const void* data) {
    ZkRequest& request = request_of(data);
    // A node without data comes as a null pointer and the length -1.
    if (value != nullptr && length > 0) request.text.assign(value, static_cast<std::size_t>(length));
    request.stat = stat_of(stat);
    answered(request, rc);
}

void on_children(int rc, const String_vector* strings, const Stat* stat, const void* data) {
    ZkRequest& request = request_of(data);
    if (strings != nullptr) request.names.assign(strings->data, strings->data + strings->count);
    request.children = request.names.size();
    request.stat = stat_of(stat);
    answered(request, rc);
}

}  // namespace

/// The C client writes the results while it reads the answer, so all of this stays in place until it has forgotten the
/// request.
struct ZkMultiBuffers {
    explicit ZkMultiBuffers(const std::vector<MultiOp>& requests)
        : ops(requests.size()), results(requests.size()), names(requests.size()), stats(requests.size()) {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const MultiOp& request = requests[i];
            const char* path = request.path.c_str();
            const int size = static_cast<int>(request.data.size());
            results[i].err = ZRUNTIMEINCONSISTENCY;
            switch (request.kind) {
                case MultiOp::Kind::create:
                    // A name that does not fit is cut without a word: room for a sequence number with sign and the end.
                    names[i].assign(request.path.size() + 12, '\0');
                    acls.emplace_back(request.acl);
                    zoo_create_op_init(&ops[i], path, request.data.c_str(), size, acls.back().get(),
                                       flags_of(request.mode), names[i].data(), static_cast<int>(names[i].size()));
                    break;
                case MultiOp::Kind::remove: zoo_delete_op_init(&ops[i], path, request.version); break;
                case MultiOp::Kind::set:
                    zoo_set_op_init(&ops[i], path, request.data.c_str(), size, request.version, &stats[i]);
                    break;
                case MultiOp::Kind::check: zoo_check_op_init(&ops[i], path, request.version); break;
            }
        }
    }

    std::vector<MultiResult> take(const std::vector<MultiOp>& requests) {
        std::vector<MultiResult> taken(results.size());
        // Of a transaction that was refused, the operations before the refused one are "ok", and nothing else is filled
        // in.
        const bool happened =
            std::all_of(results.begin(), results.end(), [](const zoo_op_result_t& each) { return each.err == ZOK; });
        for (std::size_t i = 0; i < results.size(); ++i) {
            taken[i].rc = rc_of(results[i].err);
            if (!happened) continue;
            if (requests[i].kind == MultiOp::Kind::create) taken[i].path = names[i].data();
            if (requests[i].kind == MultiOp::Kind::set) taken[i].stat = stat_of(&stats[i]);
        }
        return taken;
    }

    std::vector<zoo_op_t> ops;
    std::vector<zoo_op_result_t> results;
    std::vector<std::vector<char>> names;
    std::vector<Stat> stats;
    std::deque<AclView> acls;
};

namespace {

void on_multi(int rc, const void* data) {
    ZkRequest& request = request_of(data);
    request.results = request.buffers->take(request.ops);
    answered(request, rc);
}

/// What the C client, or the whole process, does not survive.
bool multi_is_sound(const std::vector<MultiOp>& ops) {
    return !ops.empty() && std::all_of(ops.begin(), ops.end(), [](const MultiOp& op) {
        const bool sequential = op.kind == MultiOp::Kind::create && (op.mode == CreateMode::persistent_sequential ||
                                                                     op.mode == CreateMode::ephemeral_sequential);
        if (op.kind == MultiOp::Kind::create && op.mode == CreateMode::container) return false;
        // A sequential name may end with a slash: the number follows.
        return path_problem(sequential ? op.path + "0" : op.path).empty();
    });
}

}  // namespace

ZkRequest::ZkRequest(Kind kind_of, std::string server_path, Done when_done)
    : kind(kind_of), path(std::move(server_path)), done(std::move(when_done)) {}

ZkRequest::~ZkRequest() = default;

std::size_t ZkRequest::wire_bytes() const {
    return ops.empty() ? request_wire_bytes(path, data, acl) : multi_wire_bytes(ops);
}

Rc ZkRequest::send(void* zookeeper_handle) {
    auto* const zh = static_cast<zhandle_t*>(zookeeper_handle);
    const char* const where = path.c_str();
    const int size = static_cast<int>(data.size());
    switch (kind) {
        case Kind::create:
            return static_cast<Rc>(
                zoo_acreate2(zh, where, data.c_str(), size, AclView(acl).get(), flags_of(mode), &on_create, this));
        case Kind::remove: return static_cast<Rc>(zoo_adelete(zh, where, version, &on_void, this));
        case Kind::exists: return static_cast<Rc>(zoo_aexists(zh, where, watch ? 1 : 0, &on_stat, this));
        case Kind::get: return static_cast<Rc>(zoo_aget(zh, where, watch ? 1 : 0, &on_get, this));
        case Kind::set: return static_cast<Rc>(zoo_aset(zh, where, data.c_str(), size, version, &on_stat, this));
        case Kind::children: return static_cast<Rc>(zoo_aget_children2(zh, where, watch ? 1 : 0, &on_children, this));
        case Kind::multi:
            if (!multi_is_sound(ops)) return Rc::bad_arguments;
            buffers = std::make_unique<ZkMultiBuffers>(ops);
            return static_cast<Rc>(zoo_amulti(zh, static_cast<int>(ops.size()), buffers->ops.data(),
                                              buffers->results.data(), &on_multi, this));
        case Kind::sync: return static_cast<Rc>(zoo_async(zh, where, &on_sync, this));
        case Kind::remove_watches:
            // The parameter's type says "pointer to a completion function pointer", but the function itself is called.
            return static_cast<Rc>(zoo_aremove_all_watches(zh, where, ZWATCHTYPE_ANY, 0,
                                                           reinterpret_cast<void_completion_t*>(&on_void), this));
    }
    return Rc::bad_arguments;
}

void ZkRequest::give() {
    struct Visitor {
        ZkRequest& request;
        void operator()(const Client::VoidDone& answer) const { answer(request.rc); }
        void operator()(const Client::StatDone& answer) const { answer(request.rc, request.stat); }
        void operator()(const Client::CreateDone& answer) const {
            answer(request.rc, std::move(request.text), request.stat);
        }
        void operator()(const Client::ChildrenDone& answer) const {
            answer(request.rc, std::move(request.names), request.stat);
        }
        void operator()(const Client::MultiDone& answer) const { answer(request.rc, std::move(request.results)); }
    };
    std::visit(Visitor{*this}, done);
}

void ZkRequest::fail(Rc why) {
    rc = why;
    results.assign(ops.size(), MultiResult{why, {}, {}});
    give();
}

}  // namespace zkrecipes::internal
