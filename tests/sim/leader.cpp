#include <algorithm>
#include <cstdio>

#include "sim/ensemble.hpp"
#include "sim/server.hpp"

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

void SimServer::become_leader(std::int64_t epoch) {
    world_.note(&actor_, "leads", static_cast<std::uint64_t>(epoch));
    ++role_number_;
    role_ = Role::leader;
    leader_ = id_;
    term_ = epoch;
    next_zxid_ = epoch << 32;
    acked_.clear();
    heard_.clear();
    owners_.clear();
    outstanding_.clear();
    records_.clear();
    syncs_.clear();
    timers_.clear();
    disk_free_at_ = world_.now();
    // A quorum takes over our log as it is, so that all of it is committed, and with it the start of the epoch.
    Txn start;
    start.kind = Txn::Kind::new_epoch;
    start.zxid = next_zxid_;
    start.time_ms = clock_ms();
    log_.push_back(std::make_shared<const Txn>(std::move(start)));
    acked_[id_] = log_.size();
    apply_to(log_.size());
    committed_ = applied_;
    // Every session gets its full timeout again.
    for (const auto& [session, timeout_ms] : tree_.sessions()) {
        timers_[session];
        touch_timer(session, timeout_ms);
    }
    const SimTime tick = ensemble_.options().tick_ms * kMilli;
    last_tick_ = actor_.local_now();
    grace_ticks_ = 0;
    after(tick / 2, &SimServer::leader_tick);
    after(tick, &SimServer::expire_tick);
    after(ensemble_.options().container_check_ms * kMilli, &SimServer::reap_tick);
}

bool SimServer::has_quorum() const {
    if (role_ != Role::leader) return false;
    const SimTime limit = ensemble_.options().tick_ms * ensemble_.options().sync_limit * kMilli;
    int synced = 1;
    for (const auto& [follower, heard] : heard_) {
        if (acked_.count(follower) != 0 && actor_.local_now() - heard <= limit) ++synced;
    }
    return synced >= ensemble_.size() / 2 + 1;
}

void SimServer::follower_gone(int follower) {
    // The word may have been held back by a cut until the follower has come back on a new connection.
    const SimServer& other = ensemble_.server(follower);
    if (other.role_ == Role::follower && other.leader_ == id_ && other.term_ == term_) return;
    acked_.erase(follower);
    heard_.erase(follower);
}

void SimServer::leader_tick() {
    // A leader that was frozen counts in its own ticks, which have not gone on: for one or two of them it goes on
    // serving, whoever leads by now.
    const SimTime half_tick = ensemble_.options().tick_ms * kMilli / 2;
    if (actor_.local_now() - last_tick_ > 2 * half_tick) grace_ticks_ = static_cast<int>(rng_.between(1, 3));
    last_tick_ = actor_.local_now();
    if (grace_ticks_ > 0) {
        --grace_ticks_;
    } else if (!has_quorum()) {
        return start_looking();
    }
    for (const auto& [follower, heard] : heard_) to_server(follower, [](SimServer& to) { to.on_leader_ping(); });
    after(half_tick, &SimServer::leader_tick);
}

void SimServer::on_ping_reply(int follower, const std::vector<std::pair<SessionId, std::int64_t>>& touched) {
    if (role_ != Role::leader || acked_.count(follower) == 0) return;
    heard_[follower] = actor_.local_now();
    for (const auto& [session, timeout_ms] : touched) touch_timer(session, timeout_ms);
}

// ---- sessions --------------------------------------------------------------------------------------------------

bool SimServer::touch_timer(SessionId session, std::int64_t timeout_ms) {
    const auto found = timers_.find(session);
    if (found == timers_.end() || found->second.closing) return false;
    Timer& timer = found->second;
    timer.timeout_ms = timeout_ms;
    // Sessions end together, once per tick: the end is rounded up to the next one.
    const std::int64_t tick = ensemble_.options().tick_ms;
    timer.expires_ms = ((clock_ms() + timeout_ms) / tick + 1) * tick;
    return true;
}

void SimServer::expire_tick() {
    const std::int64_t now = clock_ms();
    std::vector<SessionId> over;
    for (const auto& [session, timer] : timers_) {
        if (!timer.closing && timer.expires_ms <= now) over.push_back(session);
    }
    for (const SessionId session : over) {
        world_.note(&actor_, "expires a session", static_cast<std::uint64_t>(session & 0xffffff));
        close_session(session);
    }
    const std::int64_t tick = ensemble_.options().tick_ms;
    const std::int64_t next = (now / tick + 1) * tick;
    after((next - now) * kMilli, &SimServer::expire_tick);
}

void SimServer::close_session(SessionId session, bool by_operator) {
    const auto timer = timers_.find(session);
    if (role_ != Role::leader || timer == timers_.end() || timer->second.closing) return;
    timer->second.closing = true;
    Txn txn = prepare_close(session, ++next_zxid_);
    txn.by_operator = by_operator;
    propose(std::move(txn));
}

void SimServer::on_revalidate(int follower, std::uint64_t connection, SessionId session, std::int64_t timeout_ms) {
    if (role_ != Role::leader) return;
    const bool valid = touch_timer(session, timeout_ms);
    // From now on requests that are still on their way from the former server are refused.
    if (valid) owners_[session] = follower;
    if (follower == id_) return finish_connect(connection, session, timeout_ms, valid);
    if (acked_.count(follower) != 0) heard_[follower] = actor_.local_now();
    to_server(follower, [connection, session, timeout_ms, valid](SimServer& to) {
        to.finish_connect(connection, session, timeout_ms, valid);
    });
}

Rc SimServer::check_session(SessionId session, int owner) {
    const auto timer = timers_.find(session);
    if (timer == timers_.end() || timer->second.closing) return Rc::session_expired;
    const auto [known, fresh] = owners_.try_emplace(session, owner);
    return known->second == owner ? Rc::ok : Rc::session_moved;
}

// ---- proposals -------------------------------------------------------------------------------------------------

void SimServer::propose(Txn txn) {
    const auto entry = std::make_shared<const Txn>(std::move(txn));
    const std::size_t index = log_.size();
    for (const auto& [follower, count] : acked_) {
        if (follower == id_) continue;
        to_server(follower, [entry, index](SimServer& to) {
            // Left over from before this follower fell away and came back: it has that already.
            if (to.role_ == Role::follower && to.log_.size() == index) to.append(entry);
        });
    }
    append(entry);
}

void SimServer::on_ack(int follower, std::size_t count) {
    if (role_ != Role::leader) return;
    const auto found = acked_.find(follower);
    if (found == acked_.end()) return;
    found->second = std::max(found->second, count);
    if (follower != id_) heard_[follower] = actor_.local_now();
    advance_commit();
}

void SimServer::advance_commit() {
    std::vector<std::size_t> counts;
    for (const auto& [follower, count] : acked_) counts.push_back(count);
    const auto majority = static_cast<std::size_t>(ensemble_.size() / 2 + 1);
    if (counts.size() < majority) return;
    std::sort(counts.rbegin(), counts.rend());
    const std::size_t commit = std::min(counts[majority - 1], log_.size());
    if (commit <= committed_) return;
    committed_ = commit;
    for (const auto& [follower, count] : acked_) {
        if (follower == id_) continue;
        to_server(follower, [commit](SimServer& to) {
            if (to.role_ == Role::follower) to.apply_to(commit);
        });
    }
    while (applied_ < commit) {
        apply_to(applied_ + 1);
        if (role_ != Role::leader) return;
        while (!syncs_.empty() && syncs_.front().index <= applied_) {
            const PendingSync due = std::move(syncs_.front());
            syncs_.pop_front();
            finish_sync(due.request);
        }
    }
}

void SimServer::finish_sync(const Forwarded& request) {
    const auto answer = [connection = request.connection, xid = request.request.xid,
                         path = request.request.path](SimServer& to) {
        Reply reply;
        reply.zxid = to.tree_.last_zxid();
        reply.path = path;
        to.complete(connection, xid, std::move(reply));
    };
    if (request.server == id_) return answer(*this);
    to_server(request.server, answer);
}

void SimServer::on_forwarded(Forwarded request) {
    if (role_ != Role::leader) return;
    if (request.server != id_ && acked_.count(request.server) != 0) heard_[request.server] = actor_.local_now();
    const Request& asked = request.request;
    if (asked.op == Op::sync) {
        // Answered by the leader alone, after what is under way: no proof of a quorum when nothing is.
        if (log_.size() == applied_) return finish_sync(request);
        syncs_.push_back({log_.size(), std::move(request)});
        return;
    }
    propose(prepare(request));
}

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

namespace {

bool permits(const AclList& acl, int permission, const std::vector<std::string>& identities) {
    for (const Acl& each : *acl) {
        if ((each.permissions & permission) == 0) continue;
        if (each.scheme == "world" && each.id == "anyone") return true;
        if (std::find(identities.begin(), identities.end(), each.scheme + ":" + each.id) != identities.end())
            return true;
    }
    return false;
}

}  // namespace

Rc SimServer::prepare_create(const MultiOp& op, const Forwarded& request, std::int64_t zxid, Effect& effect) {
    effect.kind = Effect::Kind::create;
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
    effect.container = op.mode == CreateMode::container;
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
        txn.session = (static_cast<SessionId>(id_ + 1) << 56) | (term_ << 24) | static_cast<SessionId>(next_session_++);
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
