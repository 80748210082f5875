#include <algorithm>

#include "testing/ensemble.hpp"
#include "testing/server.hpp"

namespace zkrecipes::sim {

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
    if (ensemble_.size() > 1) after(tick / 2, &SimServer::leader_tick);
    after(tick, &SimServer::expire_tick);
    after(ensemble_.options().container_check_ms * kMilli, &SimServer::reap_tick);
}

std::int64_t SimServer::clock_ms() const { return actor_.local_now() / kMilli + ensemble_.options().clock_ahead_ms; }

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

}  // namespace zkrecipes::sim
