// What the leader makes of a request before it proposes it: the checks of ZooKeeper's PrepRequestProcessor against the
// state as it will be when everything under way has happened (`records_`), and the changes that the leader makes
// itself.
#include <algorithm>
#include <cstdio>

#include "testing/ensemble.hpp"
#include "testing/server.hpp"

namespace zkrecipes::sim {
namespace {

std::int32_t wrapping_next(std::int32_t value) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) + 1U);
}

bool is_sequential(CreateMode mode) {
    return mode == CreateMode::persistent_sequential || mode == CreateMode::ephemeral_sequential;
}

bool is_ephemeral(CreateMode mode) { return mode == CreateMode::ephemeral || mode == CreateMode::ephemeral_sequential; }

std::string sequence_text(std::int32_t number) {
    char text[16];
    std::snprintf(text, sizeof text, "%010d", number);
    return text;
}

Effect error(Rc rc) {
    Effect effect;
    effect.kind = Effect::Kind::error;
    effect.rc = rc;
    return effect;
}

}  // namespace

// ---- what a transaction will do --------------------------------------------------------------------------------

SimServer::RecordPtr SimServer::record_of(const std::string& path) const {
    if (const auto known = records_.find(path); known != records_.end()) return known->second;
    const Node* const node = tree_.find(path);
    if (node == nullptr) return nullptr;
    auto record = std::make_shared<Record>();
    record->path = path;
    record->version = node->version;
    record->cversion = node->cversion;
    record->child_count = static_cast<std::int32_t>(node->children.size());
    record->owner = node->owner;
    record->acl = node->acl;
    return record;
}

void SimServer::add_record(Record record) {
    auto kept = std::make_shared<Record>(std::move(record));
    records_[kept->path] = kept;
    outstanding_.push_back(std::move(kept));
}

void SimServer::forget_records(std::int64_t zxid) {
    while (!outstanding_.empty() && outstanding_.front()->zxid <= zxid) {
        const auto found = records_.find(outstanding_.front()->path);
        if (found != records_.end() && found->second == outstanding_.front()) records_.erase(found);
        outstanding_.pop_front();
    }
}

Rc SimServer::fix_acl(const std::vector<Acl>& acl, const std::vector<std::string>& identities, AclList& fixed) const {
    std::vector<Acl> list;
    for (const Acl& each : acl) {
        if (each.scheme == "auth") {
            bool any = false;
            for (const std::string& identity : identities) {
                const auto colon = identity.find(':');
                list.push_back({each.permissions, identity.substr(0, colon), identity.substr(colon + 1)});
                any = true;
            }
            if (!any) return Rc::invalid_acl;
        } else if ((each.scheme == "world" && each.id == "anyone") || each.scheme == "digest" || each.scheme == "ip") {
            list.push_back(each);
        } else {
            return Rc::invalid_acl;
        }
    }
    if (list.empty()) return Rc::invalid_acl;
    fixed = std::make_shared<const std::vector<Acl>>(std::move(list));
    return Rc::ok;
}

Rc SimServer::prepare_create(const MultiOp& op, const Forwarded& request, std::int64_t zxid, Effect& effect) {
    effect.kind = Effect::Kind::create;
    effect.container = op.mode == CreateMode::container;
    if (effect.container && !ensemble_.options().containers) return Rc::bad_arguments;
    const Rc acl_rc = fix_acl(op.acl, request.identities, effect.acl);
    if (acl_rc != Rc::ok) return acl_rc;
    const RecordPtr parent = record_of(parent_of(op.path));
    if (parent == nullptr || !parent->exists) return Rc::no_node;
    if (!permits(parent->acl, Acl::create, request.identities)) return Rc::no_auth;
    effect.path = is_sequential(op.mode) ? op.path + sequence_text(parent->cversion) : op.path;
    if (const RecordPtr there = record_of(effect.path); there != nullptr && there->exists) return Rc::node_exists;
    if (parent->owner != 0) return Rc::no_children_for_ephemerals;
    Record changed = *parent;
    changed.zxid = zxid;
    changed.cversion = wrapping_next(parent->cversion);
    ++changed.child_count;
    effect.parent_cversion = changed.cversion;
    effect.data = op.data;
    effect.owner = is_ephemeral(op.mode) ? request.session : 0;
    add_record(std::move(changed));
    Record made;
    made.path = effect.path;
    made.zxid = zxid;
    made.owner = effect.owner;
    made.cversion = tree_.first_number(effect.path);
    made.acl = effect.acl;
    add_record(std::move(made));
    return Rc::ok;
}

Rc SimServer::prepare_op(const MultiOp& op, const Forwarded& request, std::int64_t zxid, Effect& effect) {
    if (op.kind == MultiOp::Kind::create) return prepare_create(op, request, zxid, effect);
    effect.path = op.path;
    const RecordPtr node = record_of(op.path);
    if (op.kind == MultiOp::Kind::remove) {
        effect.kind = Effect::Kind::remove;
        const RecordPtr parent = record_of(parent_of(op.path));
        if (parent == nullptr || !parent->exists) return Rc::no_node;
        if (!permits(parent->acl, Acl::remove, request.identities)) return Rc::no_auth;
        if (node == nullptr || !node->exists) return Rc::no_node;
        if (op.version != -1 && op.version != node->version) return Rc::bad_version;
        if (node->child_count > 0) return Rc::not_empty;
        Record changed = *parent;
        changed.zxid = zxid;
        --changed.child_count;
        add_record(std::move(changed));
        Record gone;
        gone.path = op.path;
        gone.zxid = zxid;
        gone.exists = false;
        add_record(std::move(gone));
        return Rc::ok;
    }
    const bool sets = op.kind == MultiOp::Kind::set;
    effect.kind = sets ? Effect::Kind::set : Effect::Kind::check;
    if (node == nullptr || !node->exists) return Rc::no_node;
    if (!permits(node->acl, sets ? Acl::write : Acl::read, request.identities)) return Rc::no_auth;
    if (op.version != -1 && op.version != node->version) return Rc::bad_version;
    if (!sets) return Rc::ok;
    Record changed = *node;
    changed.zxid = zxid;
    changed.version = tree_.version_after(op.path, node->version);
    effect.version = changed.version;
    effect.data = op.data;
    add_record(std::move(changed));
    return Rc::ok;
}

Txn SimServer::prepare_close(SessionId session, std::int64_t zxid) {
    Txn txn;
    txn.kind = Txn::Kind::close_session;
    txn.zxid = zxid;
    txn.time_ms = clock_ms();
    txn.session = session;
    std::set<std::string> owned;
    for (const std::string& path : tree_.ephemerals_of(session)) owned.insert(path);
    for (const auto& record : outstanding_) {
        if (!record->exists) {
            owned.erase(record->path);
        } else if (record->owner == session) {
            owned.insert(record->path);
        }
    }
    for (const std::string& path : owned) {
        if (const RecordPtr parent = record_of(parent_of(path))) {
            Record changed = *parent;
            changed.zxid = zxid;
            --changed.child_count;
            add_record(std::move(changed));
        }
        Record gone;
        gone.path = path;
        gone.zxid = zxid;
        gone.exists = false;
        add_record(std::move(gone));
        Effect effect;
        effect.kind = Effect::Kind::remove;
        effect.path = path;
        txn.effects.push_back(std::move(effect));
    }
    return txn;
}

Txn SimServer::prepare(const Forwarded& request) {
    const Request& asked = request.request;
    Txn txn;
    txn.zxid = ++next_zxid_;
    txn.time_ms = clock_ms();
    txn.server = request.server;
    txn.connection = request.connection;
    txn.xid = asked.xid;
    txn.session = request.session;
    txn.multi = asked.op == Op::multi;
    if (asked.op == Op::connect) {
        txn.kind = Txn::Kind::create_session;
        txn.session = (term_ << 24) | static_cast<SessionId>(next_session_++);
        if (!ensemble_.options().keeper) txn.session |= static_cast<SessionId>(id_ + 1) << 56;
        txn.timeout_ms = asked.timeout_ms;
        timers_[txn.session];
        touch_timer(txn.session, txn.timeout_ms);
        owners_[txn.session] = request.server;
        return txn;
    }
    if (const Rc rc = check_session(request.session, request.server); rc != Rc::ok) {
        txn.multi = false;
        txn.effects.push_back(error(rc));
        return txn;
    }
    if (asked.op == Op::close) {
        timers_[request.session].closing = true;
        Txn close = prepare_close(request.session, txn.zxid);
        close.server = txn.server;
        close.connection = txn.connection;
        close.xid = txn.xid;
        return close;
    }
    std::vector<MultiOp> ops = asked.ops;
    if (!txn.multi) {
        MultiOp op;
        op.kind = asked.op == Op::create   ? MultiOp::Kind::create
                  : asked.op == Op::remove ? MultiOp::Kind::remove
                                           : MultiOp::Kind::set;
        op.path = asked.path;
        op.data = asked.data;
        op.acl = asked.acl;
        op.mode = asked.mode;
        op.version = asked.version;
        ops.push_back(std::move(op));
    }
    // All or nothing: what the first operations would have changed is forgotten when a later one fails.
    const auto records_before = records_;
    const auto outstanding_before = outstanding_.size();
    std::size_t failed = ops.size();
    for (std::size_t i = 0; i < ops.size(); ++i) {
        Effect effect;
        const Rc rc = prepare_op(ops[i], request, txn.zxid, effect);
        txn.effects.push_back(rc == Rc::ok ? std::move(effect) : error(rc));
        if (rc == Rc::ok) continue;
        failed = i;
        break;
    }
    if (failed < ops.size()) {
        records_ = records_before;
        outstanding_.resize(outstanding_before);
        for (std::size_t i = 0; i < failed; ++i) txn.effects[i] = error(Rc::ok);
        for (std::size_t i = failed + 1; i < ops.size(); ++i) txn.effects.push_back(error(Rc::runtime_inconsistency));
    }
    return txn;
}

// ---- the leader's own changes ----------------------------------------------------------------------------------

void SimServer::reap_tick() {
    std::vector<std::string> empty;
    for (const std::string& path : tree_.containers()) {
        const Node* const node = tree_.find(path);
        // One that was never used stays.
        if (node->children.empty() && node->cversion > 0) empty.push_back(path);
    }
    for (const std::string& path : empty) {
        const RecordPtr node = record_of(path);
        if (node == nullptr || !node->exists || node->child_count > 0) continue;
        world_.note(&actor_, "reaps a container");
        remove_as_operator(path);
    }
    after(ensemble_.options().container_check_ms * kMilli, &SimServer::reap_tick);
}

void SimServer::do_as_operator(const MultiOp& op) {
    if (role_ != Role::leader) return;
    Effect effect;
    if (prepare_op(op, {}, next_zxid_ + 1, effect) != Rc::ok) return;
    Txn txn;
    txn.zxid = ++next_zxid_;
    txn.time_ms = clock_ms();
    txn.by_operator = true;
    txn.effects.push_back(std::move(effect));
    propose(std::move(txn));
}

void SimServer::remove_as_operator(const std::string& path) {
    if (role_ != Role::leader) return;
    const RecordPtr node = record_of(path);
    if (node == nullptr || !node->exists || node->child_count > 0) return;
    const std::int64_t zxid = ++next_zxid_;
    Record changed = *record_of(parent_of(path));
    changed.zxid = zxid;
    --changed.child_count;
    add_record(std::move(changed));
    Record gone;
    gone.path = path;
    gone.zxid = zxid;
    gone.exists = false;
    add_record(std::move(gone));
    Txn txn;
    txn.zxid = zxid;
    txn.time_ms = clock_ms();
    txn.by_operator = true;
    Effect effect;
    effect.kind = Effect::Kind::remove;
    effect.path = path;
    txn.effects.push_back(std::move(effect));
    propose(std::move(txn));
}

}  // namespace zkrecipes::sim
