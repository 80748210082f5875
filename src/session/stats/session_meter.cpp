#include "session/stats/session_meter.hpp"

#include <algorithm>
#include <utility>

#include "session/common/budget.hpp"

namespace zkrecipes {

const char* to_string(LossReason reason) noexcept {
    switch (reason) {
        case LossReason::lease_ended: return "lease_ended";
        case LossReason::session_ended: return "session_ended";
        case LossReason::closed: return "closed";
        case LossReason::node_gone: return "node_gone";
        case LossReason::suspended: return "suspended";
        case LossReason::max_hold: return "max_hold";
    }
    return "unknown";
}

const char* to_string(RequestKind kind) noexcept {
    switch (kind) {
        case RequestKind::create: return "create";
        case RequestKind::remove: return "remove";
        case RequestKind::exists: return "exists";
        case RequestKind::get: return "get";
        case RequestKind::set: return "set";
        case RequestKind::children: return "children";
        case RequestKind::multi: return "multi";
        case RequestKind::sync: return "sync";
        case RequestKind::heartbeat: return "heartbeat";
        case RequestKind::other: return "other";
    }
    return "unknown";
}

SessionEvents::~SessionEvents() = default;
void SessionEvents::on_queued(const EventSubject&, std::int64_t) {}
void SessionEvents::on_acquired(const EventSubject&, FencingToken, std::chrono::nanoseconds) {}
void SessionEvents::on_missed(const EventSubject&, Missed, std::chrono::nanoseconds) {}
void SessionEvents::on_failed(const EventSubject&, const Error&, std::chrono::nanoseconds) {}
void SessionEvents::on_released(const EventSubject&, FencingToken, std::chrono::nanoseconds) {}
void SessionEvents::on_lost(const EventSubject&, FencingToken, LossReason, std::chrono::nanoseconds) {}
void SessionEvents::on_state(SessionState, const SessionInfo&) {}
void SessionEvents::on_error(const std::string&) {}

namespace internal {

SessionMeter::SessionMeter(std::shared_ptr<Runtime> runtime, const SessionOptions& options,
                           std::shared_ptr<EventQueue> events)
    : runtime_(std::move(runtime)), name_of_path_(options.name_of_path), events_(std::move(events)) {}

// ---- names ---------------------------------------------------------------------------------------------------------

std::shared_ptr<const LockLabel> SessionMeter::label(std::string recipe, std::string mode, std::string path) const {
    std::string name = name_of_path_ ? name_of_path_(path) : std::string();
    const std::lock_guard lock(names_mutex_);
    // What is counted of a name stays for ever, and the user may make up as many as there are paths.
    if (names_.size() >= kMostNames && !names_.contains(name)) name = "other";
    names_.insert(name);
    Key key(recipe, mode, name);
    auto meter = meters_.find(key);
    if (meter == meters_.end()) meter = meters_.emplace(std::move(key), std::make_shared<LockMeter>()).first;
    return std::make_shared<LockLabel>(LockLabel{std::move(recipe), std::move(mode), std::move(path), meter->second});
}

// ---- what is asked -------------------------------------------------------------------------------------------------

SessionStats SessionMeter::stats() const {
    SessionStats out;
    out.connects = connects.value();
    out.suspensions = suspensions.value();
    out.sessions = sessions.value();
    out.requests = values_of(requests_);
    out.heartbeats_refused = heartbeats_refused.value();
    out.stalled_replies = stalled_replies.value();
    out.events_dropped = events_ ? events_->dropped() : 0;
    out.node_bytes = node_bytes.value();
    out.node_bytes_max = out.watch_bytes_max = Budget::kLimit;
    out.watch_bytes = watch_bytes.value();
    out.nodes_to_delete = nodes_to_delete.value();
    out.connected = connected_now.value() != 0;
    const Nanoseconds lease(lease_ends_at.load(std::memory_order_relaxed));
    out.remaining_lease = std::max(Nanoseconds::zero(), lease - runtime_->now().time_since_epoch());
    out.session_timeout = std::chrono::milliseconds(timeout_ms.value());
    out.heartbeat_round_trip = Nanoseconds(heartbeat_round_trip_ns.value());
    const std::lock_guard lock(names_mutex_);
    for (const auto& [key, meter] : meters_) {
        LockStats& each = out.locks.emplace_back();
        std::tie(each.recipe, each.mode, each.name) = key;
        each.acquired = meter->acquired.value();
        each.busy = meter->busy.value();
        each.stopped = meter->stopped.value();
        each.unreachable = meter->unreachable.value();
        each.failed = meter->failed.value();
        each.released = meter->released.value();
        each.lost = values_of(meter->lost);
        each.waiting = meter->waiting.value();
        each.held = meter->held.value();
        each.wait = meter->wait.value();
        each.hold = meter->hold.value();
        out.waiting += each.waiting;
        out.held += each.held;
    }
    return out;
}

std::vector<WaitInfo> SessionMeter::waits() const {
    std::vector<WaitInfo> out;
    const Instant now = runtime_->now();
    const std::lock_guard lock(waits_mutex_);
    for (const WaitRecord* wait = waits_; wait != nullptr; wait = wait->next_) {
        out.push_back({wait->label_->recipe, wait->label_->mode, wait->label_->path, now - wait->since_,
                       wait->in_front_.load(std::memory_order_relaxed)});
    }
    return out;
}

// ---- calls and their holds -----------------------------------------------------------------------------------------

template <class Tell>
void SessionMeter::tell(EventQueue::Kind kind, const std::shared_ptr<const LockLabel>& label, std::uint64_t id,
                        Tell tell) noexcept {
    if (!events_) return;
    try {
        events_->push(kind, [label, id, at = runtime_->wall_now(), tell = std::move(tell)](SessionEvents& listener) {
            tell(listener, EventSubject{label->recipe, label->mode, label->path, at, id});
        });
    } catch (...) {
        events_->drop();  // for want of memory
    }
}

void SessionMeter::wait_begins(WaitRecord& wait, std::shared_ptr<const LockLabel> label) {
    wait.since_ = runtime_->now();
    const std::lock_guard lock(waits_mutex_);
    label->meter->waiting.add();
    wait.label_ = std::move(label);
    wait.id_ = ++last_id_;
    wait.next_ = waits_;
    if (waits_ != nullptr) waits_->previous_ = &wait;
    waits_ = &wait;
}

void SessionMeter::unlink(WaitRecord& wait) noexcept {
    wait.label_->meter->waiting.subtract();
    (wait.previous_ != nullptr ? wait.previous_->next_ : waits_) = wait.next_;
    if (wait.next_ != nullptr) wait.next_->previous_ = wait.previous_;
    wait.previous_ = wait.next_ = nullptr;
}

void SessionMeter::forget(WaitRecord& wait) noexcept {
    const std::lock_guard lock(waits_mutex_);
    if (!wait.label_) return;
    unlink(wait);
    wait.label_.reset();
}

/// How long it has waited.
Nanoseconds SessionMeter::wait_ends(WaitRecord& wait) noexcept {
    {
        const std::lock_guard lock(waits_mutex_);
        unlink(wait);
    }
    return runtime_->now() - wait.since_;
}

void SessionMeter::in_front(WaitRecord& wait, std::size_t contenders) {
    if (!wait.label_) return;
    const auto number = static_cast<std::int64_t>(contenders);
    if (wait.in_front_.exchange(number, std::memory_order_relaxed) == number) return;
    tell(EventQueue::Kind::common, wait.label_, wait.id_,
         [number](SessionEvents& listener, const EventSubject& subject) { listener.on_queued(subject, number); });
}

void SessionMeter::granted(WaitRecord& wait, HoldRecord& hold, FencingToken token) {
    const Nanoseconds waited = wait_ends(wait);
    LockMeter& meter = *wait.label_->meter;
    meter.acquired.add();
    meter.wait.add(waited);
    meter.held.add();
    tell(EventQueue::Kind::common, wait.label_, wait.id_,
         [token, waited](SessionEvents& listener, const EventSubject& subject) {
             listener.on_acquired(subject, token, waited);
         });
    hold.label = std::exchange(wait.label_, nullptr);
    hold.since = wait.since_ + waited;
    hold.id = wait.id_;
    hold.token = token;
    if (hold.lost_for) lost(hold, *hold.lost_for);  // before its user knew of it
}

void SessionMeter::missed(WaitRecord& wait, Missed why) {
    const Nanoseconds waited = wait_ends(wait);
    LockMeter& meter = *wait.label_->meter;
    (why == Missed::busy ? meter.busy : why == Missed::stopped ? meter.stopped : meter.unreachable).add();
    tell(EventQueue::Kind::common, std::exchange(wait.label_, nullptr), wait.id_,
         [why, waited](SessionEvents& listener, const EventSubject& subject) {
             listener.on_missed(subject, why, waited);
         });
}

void SessionMeter::failed(WaitRecord& wait, const Error& error) {
    const Nanoseconds waited = wait_ends(wait);
    const auto label = std::exchange(wait.label_, nullptr);
    label->meter->failed.add();
    tell(EventQueue::Kind::common, label, wait.id_,
         [error, waited](SessionEvents& listener, const EventSubject& subject) {
             listener.on_failed(subject, error, waited);
         });
}

void SessionMeter::released(HoldRecord& hold) noexcept {
    const HoldRecord record = std::exchange(hold, {});
    if (!record.label) return;
    const Nanoseconds held_for = runtime_->now() - record.since;
    LockMeter& meter = *record.label->meter;
    meter.released.add();
    meter.held.subtract();
    meter.hold.add(held_for);
    tell(EventQueue::Kind::common, record.label, record.id,
         [token = record.token, held_for](SessionEvents& listener, const EventSubject& subject) {
             listener.on_released(subject, token, held_for);
         });
}

void SessionMeter::lost(HoldRecord& hold, LossReason reason) noexcept {
    const HoldRecord record = std::exchange(hold, {});
    hold.lost_for = reason;
    if (!record.label) return;
    const Nanoseconds held_for = runtime_->now() - record.since;
    LockMeter& meter = *record.label->meter;
    meter.lost[static_cast<std::size_t>(reason)].add();
    meter.held.subtract();
    meter.hold.add(held_for);
    tell(EventQueue::Kind::certain, record.label, record.id,
         [token = record.token, reason, held_for](SessionEvents& listener, const EventSubject& subject) {
             listener.on_lost(subject, token, reason, held_for);
         });
}

void SessionMeter::state_changed(SessionState state, const SessionInfo& info) {
    connected_now.set(state == SessionState::connected ? 1 : 0);
    if (!events_) return;
    try {
        events_->push(EventQueue::Kind::certain,
                      [state, info](SessionEvents& listener) { listener.on_state(state, info); });
    } catch (...) {
        events_->drop();  // for want of memory
    }
}

}  // namespace internal
}  // namespace zkrecipes
