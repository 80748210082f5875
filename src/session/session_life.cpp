#include <algorithm>
#include <utility>

#include "base/default_logger.hpp"
#include "session/session_impl.hpp"

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

constexpr Nanoseconds kProbeAfter = 50ms;  // most reconnects are over before anybody need be asked
constexpr Nanoseconds kProbeAgain = 1s;    // when a probe could not be begun
constexpr int kRoundsToConnect = 2;        // probes with the same answer, a second or more apart

}  // namespace

/// What one handle says, under the number by which the state machine knows it.
class SessionImpl::Link final : public ClientEvents {
public:
    Link(std::shared_ptr<SessionImpl> session, std::uint64_t handle) : session_(std::move(session)), handle_(handle) {}

    void on_status(const ClientStatus& status) override {
        session_->internally([&] {
            session_->apply(session_->fsm_.on_status(handle_, status, session_->runtime_->now()));
            session_->plan_probe();
        });
    }
    void on_watch(WatchEventType type, const std::string& path) override {
        session_->internally([&] {
            if (handle_ == session_->fsm_.handle()) session_->watches_.on_event(type, path);
        });
    }
    void on_auth(Rc rc) override {
        session_->internally([&] { session_->apply(session_->fsm_.on_auth(handle_, rc, session_->runtime_->now())); });
    }

private:
    const std::shared_ptr<SessionImpl> session_;
    const std::uint64_t handle_;
};

struct SessionImpl::ConnectWaiter {
    WaitEvent event;
    TimerId timer = 0;
    // Set under the session lock before the event.
    bool connected = false;
    bool closed = false;  // closed_because_ is set, and never changes
};

SessionImpl::SessionImpl(SessionOptions options, std::vector<std::string> hosts, std::string prefix,
                         SessionCore::Environment environment)
    : options_(std::move(options)),
      prefix_(std::move(prefix)),
      runtime_(std::move(environment.runtime)),
      logger_(options_.logger ? options_.logger : default_logger()),
      watches_(*this),
      node_cleaner_(*this),
      fsm_({options_.auth_timeout, static_cast<int>(options_.auth.size())}),
      hosts_(std::move(hosts)),
      clients_(std::move(environment.clients)),
      probe_(std::move(environment.probe)),
      notifier_(runtime_, logger_),
      lease_(options_.server_tick),
      probe_pace_(1s, 10s) {
    failure_.emplace(kStepFailed, "session", options_.hosts, "an internal step failed; make a new Session");
    new_lease_view();
}

void SessionImpl::start() {
    inside([&] {
        SessionActions actions = fsm_.start();
        // The first handle is opened in the user's own call: what is wrong with it is thrown to the user.
        open_handle(actions.front().handle);
        actions.erase(actions.begin());
        apply(actions);
    });
}

void SessionImpl::apply(const SessionActions& actions) {
    using Kind = SessionAction::Kind;
    if (actions.empty()) return;
    update_info();  // before anybody is told
    for (const auto& action : actions) {
        switch (action.kind) {
            case Kind::open_handle: open_next_handle(action.handle); break;
            case Kind::close_handle: close_handle(action.detail); break;
            case Kind::add_auth:
                if (client_) {
                    for (const auto& auth : options_.auth) client_->add_auth(auth);
                }
                break;
            case Kind::session_over: on_session_over(); break;
            case Kind::state_changed: on_state(action.state); break;
            case Kind::connected: on_connected(action.same_session); break;
            case Kind::suspended: on_suspended(); break;
            case Kind::link_up:
                watches_.on_connected();
                node_cleaner_.go_on();
                break;
            case Kind::closed: on_closed(action.errc, action.detail); break;
        }
    }
}

void SessionImpl::open_next_handle(std::uint64_t handle) {
    try {
        open_handle(handle);
    } catch (const std::exception& error) {
        if (should_log(++open_failures_)) {
            logger_->error("session: cannot open a client handle ({} times): {}", open_failures_, error.what());
        }
        apply(fsm_.on_open_failed(handle, runtime_->now()));
        return;
    }
    open_failures_ = 0;
}

void SessionImpl::open_handle(std::uint64_t handle) {
    ClientOptions options;
    options.hosts = hosts_;
    options.timeout = options_.timeout;
    options.logger = logger_;
    stalled_reply_probe_.forget();
    narrowed_to_.clear();
    tried_.clear();
    before_connect_ = runtime_->now();
    client_ = clients_->open(options, std::make_shared<Link>(shared_from_this(), handle));
    plan_probe();
}

void SessionImpl::close_handle(const std::string& why) {
    if (!why.empty() && should_log(++replaced_handles_)) {
        logger_->warn("session {:#x}: {}; making a new one ({} times)", printable(fsm_.incarnation().session_id), why,
                      replaced_handles_);
    }
    stalled_reply_probe_.forget();
    if (!client_) return;
    const bool last = fsm_.finished();
    // The client keeps itself alive through this closure, and is destroyed where that is: without the session lock.
    client_->close([self = shared_from_this(), client = client_, last] {
        if (last) self->internally([&] { self->handle_closed(); });
    });
    last_handle_closing_ = last;
    client_ = nullptr;  // only now: what could not be closed is closed later
}

void SessionImpl::handle_closed() {
    last_handle_closing_ = false;
    if (closed_) return;
    logger_->info("session {:#x}: closed", printable(fsm_.incarnation().session_id));
    for (const auto& waiter : close_waiters_) deferred_.push_back([waiter] { waiter->set(); });
    close_waiters_.clear();
    closed_ = true;
    if (core_gone_) stop_lanes(false);
}

void SessionImpl::update_info() {
    const std::lock_guard lock(info_mutex_);
    info_.state = fsm_.state();
    info_.incarnation = fsm_.incarnation().number;
    info_.session_id = fsm_.incarnation().session_id;
    info_.timeout = fsm_.incarnation().timeout;
    info_.server = fsm_.server();
}

SessionInfo SessionImpl::info() const {
    const std::lock_guard lock(info_mutex_);
    return info_;
}

// ---- what the state machine says ----------------------------------------------------------------------------------

void SessionImpl::on_state(SessionState state) {
    state_.store(state, std::memory_order_release);
    notifier_.publish(state);
    if (state == SessionState::lost) {
        logger_->warn("session {:#x}: lost{}", printable(fsm_.incarnation().session_id),
                      fsm_.has_session() ? " by our own clock: no server has answered for the session timeout" : "");
        // By our own clock this is after the end of the lease, whose timer may still be on its way.
        lose_all("the session was lost");
    }
}

void SessionImpl::on_connected(bool same_session) {
    const Incarnation& incarnation = fsm_.incarnation();
    const Instant now = runtime_->now();
    const bool had_passed = lease_.passed(now);
    lease_.connected(incarnation.timeout, before_connect_, now);
    last_request_ = now;
    replaced_handles_ = 0;
    if (!holds_.empty() && lease_.passed(now)) {
        lose_all(had_passed ? kNoHeartbeat : "the servers granted a shorter session timeout");
    }
    lease_view_->sure_until_ns.store(
        lease_.sure_until() == Instant::min() ? 0 : lease_.sure_until().time_since_epoch().count(),
        std::memory_order_release);
    if (const auto failures = std::exchange(outage_failures_, 0); failures > 0) {
        logger_->info("session: servers answer again after {} failed attempts", failures);
    }
    logger_->info("session {:#x}: {} to {}, timeout {} ms", printable(incarnation.session_id),
                  same_session ? "connected again" : "connected", fsm_.server(), incarnation.timeout.count());
    if (!same_session && !lease_.attainable()) {
        logger_->error(
            "session {:#x}: the servers granted a timeout of {} ms, which is too short for their tickTime of {} ms: "
            "no lock can be held for sure. Ask for a longer SessionOptions::timeout or raise minSessionTimeout",
            printable(incarnation.session_id), incarnation.timeout.count(), options_.server_tick.count());
    }
    probe_at_ = Instant::max();
    probe_pace_.reset();
    tried_.clear();
    ++probe_round_;  // what is still being probed came too late
    // First of all requests: little may be left of the lease, and what follows may be much.
    if (!holds_.empty()) start_heartbeat(now);
    if (same_session) watches_.on_connected();
    node_cleaner_.go_on();
    watch_unwatched();
    wake_connect_waiters();
    observers_.each([&](SessionObserver& observer) { observer.on_connected(same_session); });
}

void SessionImpl::on_suspended() {
    logger_->warn("session {:#x}: connection lost", printable(fsm_.incarnation().session_id));
    stalled_reply_probe_.forget();
    restore_servers();
    for (const auto& hold : holds_.ending_when_suspended()) lose(hold.get(), "no server answers");
    observers_.each([](SessionObserver& observer) { observer.on_suspended(); });
}

void SessionImpl::on_session_over() {
    lose_all(closing_ ? "the session was closed" : "the servers ended the session");
    new_lease_view();
    lease_.reset();
    heartbeat_at_ = Instant::max();
    ++heartbeat_round_;
    checks_open_ = 0;
    ephemerals_.reset();
    watches_.reset();
    node_cleaner_.session_over();
    stalled_reply_probe_.forget();
    verify_waiting();  // who is told that it is over
    if (!closing_) observers_.each([](SessionObserver& observer) { observer.on_session_lost(); });
}

void SessionImpl::on_closed(Errc errc, const std::string& detail) {
    closing_ = true;
    closed_because_.emplace(errc, "session", prefix_.empty() ? options_.hosts : options_.hosts + " " + prefix_, detail);
    closed_detail_ = detail;
    if (errc != Errc::closed) logger_->error("{}", closed_because_->what());
    lose_all("the session was closed");
    if (lease_view_) lease_view_->sure_until_ns.store(0, std::memory_order_release);
    verify_waiting();  // who is told, and let go of
    probe_at_ = Instant::max();
    ++probe_round_;
    wake_connect_waiters();
    observers_.each([this](SessionObserver& observer) {
        observers_.remove(observer);
        observer.on_closed(*closed_because_);
    });
}

// ---- waiting for the connection ------------------------------------------------------------------------------------

void SessionImpl::wake_connect_waiters() {
    // They stay in the list until all of them are woken: what throws here is followed by a second call.
    for (const auto& waiter : connect_waiters_) {
        cancel(waiter->timer);
        waiter->connected = connected();
        waiter->closed = closed_because_.has_value();
        failed_ ? waiter->event.set() : deferred_.push_back([waiter] { waiter->event.set(); });
    }
    connect_waiters_.clear();
}

bool SessionImpl::wait_connected(Deadline deadline, std::stop_token stop) {
    const auto waiter = std::make_shared<ConnectWaiter>();
    const auto give_up = [this, waiter] {
        deferred_.push_back([waiter] { waiter->event.set(); });
        std::erase(connect_waiters_, waiter);
    };
    bool waits = false;
    inside([&] {
        waiter->closed = closed_because_.has_value();
        waiter->connected = connected();
        if (waiter->closed || waiter->connected) return;
        const Instant until = runtime_->instant(deadline);
        if (until <= runtime_->now() || stop.stop_requested()) return;
        waits = true;
        connect_waiters_.push_back(waiter);
        waiter->timer = at(until, give_up);
    });
    if (waits) {
        const std::stop_callback on_stop(stop, [&, self = shared_from_this()] {
            self->run_locked_or_post([self, waiter, give_up] {
                self->cancel(waiter->timer);
                give_up();
            });
        });
        waiter->event.wait();
    }
    if (waiter->closed) throw Error(closed_because_->errc(), "wait_connected", options_.hosts, closed_detail_);
    return waiter->connected;
}

Subscription SessionImpl::watch_state(std::function<void(SessionState)> listener) {
    if (!listener) throw Error(Errc::bad_option, "watch_state", {}, "the listener is empty; pass a callable");
    Subscription out;
    inside([&] { out = notifier_.subscribe(std::move(listener), fsm_.state()); });
    return out;
}

// ---- probing -------------------------------------------------------------------------------------------------------

/// While no server has answered for a moment, find out which one would.
void SessionImpl::plan_probe() {
    if (!probe_ || probing_ || closing_ || fsm_.linked() || probe_at_ != Instant::max()) return;
    probe_at_ = runtime_->now() + kProbeAfter;
}

void SessionImpl::start_probe() {
    probe_at_ = Instant::max();
    if (!probe_ || probing_ || closing_ || fsm_.linked() || !client_) return;
    const auto timeout = fsm_.has_session() ? fsm_.incarnation().timeout : options_.timeout;
    const auto limit = std::clamp(timeout / 12, std::chrono::milliseconds(100), std::chrono::milliseconds(1000));
    try {
        probe_->probe(hosts_, limit,
                      [self = shared_from_this(), round = probe_round_](const std::vector<std::string>& up) {
                          self->internally([&] { self->on_probed(round, up); });
                      });
        probing_ = true;  // its answer cannot come earlier: that takes the session lock
    } catch (const std::exception& error) {
        logger_->warn("session: cannot ask the servers whether they serve: {}", error.what());
        probe_at_ = runtime_->now() + kProbeAgain;
    }
}

void SessionImpl::on_probed(std::uint64_t round, const std::vector<std::string>& answering) {
    probing_ = false;
    if (closing_ || fsm_.linked() || !client_) return;
    probe_at_ = runtime_->now() + probe_pace_.next(runtime_->random());
    if (round != probe_round_) return;
    if (answering.empty()) {
        restore_servers();
        if (should_log(++outage_failures_)) {
            logger_->warn("session {:#x}: no server of {} answers and serves ({} attempts)",
                          printable(fsm_.incarnation().session_id), options_.hosts, outage_failures_);
        }
        return;
    }
    // All of them: the client finds one by itself, and an attempt that is under way is not disturbed.
    if (answering.size() == hosts_.size()) return restore_servers();
    if (answering == narrowed_to_ && ++narrowed_rounds_ < kRoundsToConnect) return;
    // The client had its time to connect to one of these and did not. What they say does not hold for this client: they
    // are not preferred again before it has found a server by itself.
    if (!tried_.insert(answering).second) return restore_servers();
    narrowed_rounds_ = 0;
    narrowed_to_ = answering;
    client_->set_servers(answering);
}

/// Only while not connected: a list that changes under a connection may make the C client leave it.
void SessionImpl::restore_servers() {
    if (narrowed_to_.empty() || !client_) return;
    narrowed_to_.clear();
    client_->set_servers(hosts_);
}

}  // namespace zkrecipes::internal
