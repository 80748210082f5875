#include "testing/sim_client.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::sim {

namespace {

constexpr SimTime kCloseLimit = 3 * kSecond;  // the C client waits no longer for its last packet

/// The real window is large. A small one lets heartbeats overtake much more often than a real crowd would.
std::size_t some_window(Rng rng) { return rng.one_in(2) ? 1 + rng.below(4) : 1000; }

Request reading(Op op, const std::string& path, bool watch) {
    Request request;
    request.op = op;
    request.path = path;
    request.watch = watch;
    return request;
}

}  // namespace

SimClient::SimClient(SimEnsemble& ensemble, Actor& process, std::shared_ptr<internal::Runtime> runtime,
                     ClientOptions options, std::shared_ptr<ClientEvents> events, bool plain)
    : ensemble_(ensemble),
      world_(ensemble.world()),
      process_(process),
      runtime_(std::move(runtime)),
      events_(std::move(events)),
      rng_(world_.fork("client " + process.name())),
      plain_(plain),
      timeout_ms_(options.timeout.count()),
      window_(plain ? 1000 : some_window(world_.fork("window of " + process.name()))) {
    set_servers(options.hosts);
}

SimClient::~SimClient() {
    if (clock_ != 0) world_.cancel(clock_);
    if (connection_ != nullptr) connection_->close_by_client();
}

void SimClient::start() { connect_next(); }

void SimClient::deliver(std::function<void()> work) {
    if (callbacks_ == Callbacks::wait) return waiting_callbacks_.push_back(std::move(work));
    last_delivery_ = std::max(last_delivery_, world_.now() + (plain_ ? 0 : rng_.between(0, 30 * kMicro)));
    world_.at(last_delivery_, &process_, [self = shared_from_this(), run = std::move(work)] { run(); });
}

void SimClient::delay_callbacks(SimTime at_first) {
    last_delivery_ = std::max(last_delivery_, world_.now()) + at_first;
    callbacks_ = Callbacks::run_until_broken;
}

void SimClient::run_callbacks() {
    callbacks_ = Callbacks::run;
    for (auto& work : std::exchange(waiting_callbacks_, {})) deliver(std::move(work));
}

void SimClient::hurry() {
    if (phase_ == Phase::idle) connect_next();
}

void SimClient::tell_status(ClientState state) {
    ClientStatus status;
    status.state = state;
    status.session_id = session_;
    status.by_zookeeper = !ensemble_.options().keeper;
    status.timeout = std::chrono::milliseconds(timeout_ms_);
    if (connection_ != nullptr && state == ClientState::connected) {
        status.server = ensemble_.hosts()[static_cast<std::size_t>(connection_->server().id())];
    }
    world_.note(&process_, "client status", static_cast<std::uint64_t>(state));
    deliver([this, status] {
        status_ = status;
        if (events_ != nullptr) events_->on_status(status);
        if (status.state == ClientState::expired && ensemble_.on_told_over) ensemble_.on_told_over(status.session_id);
    });
    if (state == ClientState::connecting && callbacks_ == Callbacks::run_until_broken) callbacks_ = Callbacks::wait;
}

// ---- connecting ------------------------------------------------------------------------------------------------

void SimClient::connect_next() {
    if (phase_ == Phase::dead || phase_ == Phase::closed) return;
    phase_ = Phase::connecting;
    last_heard_ = last_sent_ = local_now();
    const std::uint64_t attempt = ++attempt_;
    if (next_server_ >= servers_.size()) next_server_ = 0;
    SimServer* const server = servers_.empty() ? nullptr : ensemble_.find(servers_[next_server_++]);
    if (server != nullptr) {
        ensemble_.network().connect(
            process_, *server, [weak = weak_from_this(), attempt](std::shared_ptr<Connection> made) {
                const auto self = weak.lock();
                if (self == nullptr || self->attempt_ != attempt || self->phase_ != Phase::connecting) {
                    if (made != nullptr) made->close_by_client();
                    return;
                }
                if (made == nullptr) return self->connection_over(Rc::connection_loss);
                self->on_connected_to(std::move(made));
            });
    }
    watch_clock();
}

void SimClient::on_connected_to(std::shared_ptr<Connection> connection) {
    phase_ = Phase::associating;
    connection_ = std::move(connection);
    last_heard_ = last_sent_ = local_now();
    const auto weak = weak_from_this();
    connection_->on_reply = [weak](const Reply& reply) {
        if (const auto self = weak.lock()) self->on_reply(reply);
    };
    connection_->on_closed = [weak] {
        if (const auto self = weak.lock()) self->connection_over(Rc::connection_loss);
    };
    Request request;
    request.op = Op::connect;
    request.session = session_;
    request.last_zxid = last_zxid_;
    request.timeout_ms = timeout_ms_;
    connection_->request(std::move(request));
}

void SimClient::on_session(const Reply& reply) {
    const bool another = session_ != 0 && reply.session != session_;
    if (reply.session == 0 || another) return die(ClientState::expired, Rc::session_expired);
    phase_ = Phase::connected;
    session_ = reply.session;
    timeout_ms_ = reply.timeout_ms;
    auth_replies_ = 0;
    for (const Auth& auth : auths_) {
        Request request;
        request.op = Op::auth;
        request.auth = auth;
        connection_->request(std::move(request));
    }
    if (watches() > 0) {
        Request request;
        request.op = Op::set_watches;
        request.last_zxid = last_zxid_;
        request.data_watches.assign(data_watches_.begin(), data_watches_.end());
        request.exist_watches.assign(exist_watches_.begin(), exist_watches_.end());
        request.child_watches.assign(child_watches_.begin(), child_watches_.end());
        connection_->request(std::move(request));
    }
    tell_status(ClientState::connected);
    for (auto waiting = std::exchange(queued_, {}); auto& pending : waiting) send(std::move(pending));
    watch_clock();
}

void SimClient::connection_over(Rc rc) {
    if (phase_ == Phase::dead || phase_ == Phase::closed) return;
    const bool was_connected = phase_ == Phase::connected;
    if (connection_ != nullptr) {
        connection_->close_by_client();
        connection_ = nullptr;
    }
    phase_ = Phase::idle;
    ++attempt_;
    if (was_connected) tell_status(ClientState::connecting);
    fail_all(rc);
    if (closing_) return finish_close();
    // A round without success is followed by a short rest.
    SimTime rest = next_server_ >= servers_.size() ? timeout() / 60 : 0;
    if (plain_ && was_connected) rest = 0;
    if (!plain_) rest += rng_.between(0, kMilli);
    world_.in(rest, &process_, [weak = weak_from_this(), attempt = attempt_] {
        const auto self = weak.lock();
        if (self != nullptr && self->attempt_ == attempt && self->phase_ == Phase::idle) self->connect_next();
    });
}

void SimClient::fail_all(Rc rc) {
    auto failed = std::exchange(sent_, {});
    for (auto& pending : std::exchange(queued_, {})) failed.push_back(std::move(pending));
    bool first = true;
    for (auto& pending : failed) {
        Reply reply;
        reply.op = pending.request.op;
        // Now and then the C client takes a late reply for another request's, and says -2 instead of -4.
        reply.rc = first && !plain_ && rc == Rc::connection_loss && rng_.one_in(20) ? Rc::runtime_inconsistency : rc;
        first = false;
        deliver([done = std::move(pending.done), reply] { done(reply); });
    }
    for (auto& pending : std::exchange(waiting_, {})) {
        Reply reply;
        reply.op = pending.request.op;
        reply.rc = rc == Rc::connection_loss || rc == Rc::operation_timeout ? Rc::not_connected : rc;
        deliver([done = std::move(pending.done), reply] { done(reply); });
    }
}

void SimClient::die(ClientState state, Rc rc) {
    phase_ = Phase::dead;
    ++attempt_;
    if (connection_ != nullptr) {
        connection_->close_by_client();
        connection_ = nullptr;
    }
    data_watches_.clear();
    exist_watches_.clear();
    child_watches_.clear();
    tell_status(state);
    fail_all(rc);
    // What slips in before the news has been told is answered with it.
    deliver([this, rc] { fail_all(rc); });
    if (closing_) finish_close();
}

// ---- time ------------------------------------------------------------------------------------------------------

void SimClient::watch_clock() {
    if (clock_ != 0) world_.cancel(clock_);
    clock_ = 0;
    if (phase_ == Phase::dead || phase_ == Phase::closed || phase_ == Phase::idle) return;
    SimTime next = last_heard_ + timeout() * 2 / 3;
    if (phase_ == Phase::connected) next = std::min(next, std::max(last_sent_, last_heard_) + timeout() / 3);
    if (phase_ == Phase::connected) next = std::min(next, last_sent_ + timeout() / 3);
    next = std::max(next, local_now() + kMilli);
    clock_ = world_.at(process_.to_true(next), &process_, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->check_clock();
    });
}

void SimClient::check_clock() {
    clock_ = 0;
    const SimTime now = local_now();
    if (now - last_heard_ >= timeout() * 2 / 3) return connection_over(Rc::operation_timeout);
    if (phase_ == Phase::connected && now - last_sent_ >= timeout() / 3) {
        if (sent_.empty()) {  // otherwise an answer is on its way that will do
            Request ping;
            ping.op = Op::ping;
            connection_->request(std::move(ping));
        }
        last_sent_ = now;
    }
    watch_clock();
}

// ---- answers ---------------------------------------------------------------------------------------------------

void SimClient::on_reply(const Reply& reply) {
    last_heard_ = local_now();
    if (reply.op == Op::connect) return on_session(reply);
    if (reply.zxid > 0) last_zxid_ = reply.zxid;
    if (reply.is_event) return on_event(reply.event);
    if (reply.op == Op::auth) {
        if (reply.rc != Rc::ok) {
            deliver([this] {
                if (events_ != nullptr) events_->on_auth(Rc::auth_failed);
            });
            return die(ClientState::auth_failed, Rc::auth_failed);
        }
        // The same credentials are presented at each connect; only the first answer is news.
        if (++auth_replies_ <= auths_answered_) return;
        ++auths_answered_;
        deliver([this] {
            if (events_ != nullptr) events_->on_auth(Rc::ok);
        });
        return;
    }
    if (reply.op == Op::ping || reply.op == Op::set_watches || sent_.empty()) return;
    Pending pending = std::move(sent_.front());
    sent_.pop_front();
    register_watch(pending.request, reply.rc);
    if (pending.request.op == Op::close) return finish_close();
    send_waiting();
    deliver([done = std::move(pending.done), reply] { done(reply); });
}

void SimClient::register_watch(const Request& request, Rc rc) {
    if (request.op == Op::remove_watches && rc == Rc::ok) {
        data_watches_.erase(request.path);
        exist_watches_.erase(request.path);
        child_watches_.erase(request.path);
    }
    if (!request.watch) return;
    if (request.op == Op::exists && rc == Rc::no_node) exist_watches_.insert(request.path);
    if (rc != Rc::ok) return;
    (request.op == Op::children ? child_watches_ : data_watches_).insert(request.path);
}

void SimClient::on_event(const WatchEvent& event) {
    bool wanted = false;
    if (event.type != WatchEventType::children_changed) {
        wanted = data_watches_.erase(event.path) != 0 || wanted;
        wanted = exist_watches_.erase(event.path) != 0 || wanted;
    }
    if (event.type == WatchEventType::children_changed || event.type == WatchEventType::deleted) {
        wanted = child_watches_.erase(event.path) != 0 || wanted;
    }
    if (!wanted) return;
    deliver([this, event] {
        if (events_ != nullptr) events_->on_watch(event.type, event.path);
    });
}

// ---- requests --------------------------------------------------------------------------------------------------

void SimClient::submit(Request request, Done done, bool urgent) {
    world_.maybe_pause(process_);
    Pending pending{std::move(request), std::move(done), urgent};
    if (closing_ || phase_ == Phase::dead || phase_ == Phase::closed) {
        Reply reply;
        reply.rc = closing_                                ? Rc::closed
                   : status_.state == ClientState::expired ? Rc::session_expired
                                                           : Rc::invalid_state;
        deliver([done = std::move(pending.done), reply] { done(reply); });
        return;
    }
    if (phase_ == Phase::connected) {
        const auto in_order = [](const Pending& other) { return !other.urgent; };
        waiting_.insert(urgent ? std::ranges::find_if(waiting_, in_order) : waiting_.end(), std::move(pending));
        send_waiting();
    } else {
        queued_.push_back(std::move(pending));
    }
}

void SimClient::send_waiting() {
    while (!waiting_.empty() && (waiting_.front().urgent || sent_.size() < window_ || closing_)) {
        Pending next = std::move(waiting_.front());
        waiting_.pop_front();
        send(std::move(next));
    }
}

void SimClient::send(Pending pending) {
    pending.request.xid = next_xid_++;
    last_sent_ = local_now();
    if (world_.tracing()) {
        world_.note_text(&process_, std::string("sends ") + to_string(pending.request.op) + " " + pending.request.path +
                                        (pending.request.ops.empty() ? "" : pending.request.ops.front().path));
    }
    connection_->request(pending.request);
    sent_.push_back(std::move(pending));
}

void SimClient::create(std::string path, std::string data, const std::vector<Acl>& acl, CreateMode mode,
                       CreateDone done) {
    Request request;
    request.op = Op::create;
    request.path = std::move(path);
    request.data = std::move(data);
    request.acl = acl;
    request.mode = mode;
    submit(std::move(request), [done = std::move(done)](const Reply& reply) {
        done(reply.rc, reply.rc == Rc::ok ? reply.path : std::string(), reply.stat);
    });
}

void SimClient::remove(const std::string& path, std::int32_t version, VoidDone done) {
    Request request;
    request.op = Op::remove;
    request.path = path;
    request.version = version;
    submit(std::move(request), [done = std::move(done)](const Reply& reply) { done(reply.rc); });
}

void SimClient::exists(const std::string& path, bool watch, StatDone done) {
    submit(reading(Op::exists, path, watch),
           [done = std::move(done)](const Reply& reply) { done(reply.rc, reply.stat); });
}

void SimClient::get(const std::string& path, bool watch, GetDone done) {
    submit(reading(Op::get, path, watch),
           [done = std::move(done)](const Reply& reply) { done(reply.rc, reply.data, reply.stat); });
}

void SimClient::set(const std::string& path, const std::string& data, std::int32_t version, StatDone done) {
    Request request;
    request.op = Op::set;
    request.path = path;
    request.data = data;
    request.version = version;
    submit(std::move(request), [done = std::move(done)](const Reply& reply) { done(reply.rc, reply.stat); });
}

void SimClient::children(const std::string& path, bool watch, ChildrenDone done) {
    submit(reading(Op::children, path, watch),
           [done = std::move(done)](const Reply& reply) { done(reply.rc, reply.names, reply.stat); });
}

void SimClient::multi(std::vector<MultiOp> ops, MultiDone done) {
    Request request;
    request.op = Op::multi;
    request.ops = std::move(ops);
    submit(std::move(request), [done = std::move(done)](const Reply& reply) { done(reply.rc, reply.results); });
}

void SimClient::heartbeat(const std::vector<std::string>& nodes, MultiDone done) {
    Request request;
    request.op = Op::multi;
    request.own = true;
    for (const auto& node : nodes) request.ops.emplace_back().path = node;
    const auto answered = [this, nodes, since = world_.now(), done = std::move(done)](const Reply& reply) {
        done(reply.rc, reply.results);
        const auto gone = std::ranges::find(reply.results, Rc::no_node, &MultiResult::rc) - reply.results.begin();
        const auto node = static_cast<std::size_t>(gone);
        if (node < nodes.size() && ensemble_.on_told_gone) ensemble_.on_told_gone(nodes[node], reply.zxid, since);
    };
    submit(std::move(request), answered, true);
}

void SimClient::nudge(StatDone done) {
    Request request;
    request.op = Op::exists;
    request.path = "/";
    request.own = true;
    submit(
        std::move(request), [done = std::move(done)](const Reply& reply) { done(reply.rc, reply.stat); }, true);
}

void SimClient::sync(const std::string& path, VoidDone done) {
    Request request;
    request.op = Op::sync;
    request.path = path;
    submit(std::move(request), [done = std::move(done)](const Reply& reply) { done(reply.rc); });
}

void SimClient::remove_watches(const std::string& path, VoidDone done) {
    Request request;
    request.op = Op::remove_watches;
    request.path = path;
    submit(std::move(request), [done = std::move(done)](const Reply& reply) { done(reply.rc); });
}

void SimClient::add_auth(const Auth& auth) {
    auths_.push_back(auth);
    if (phase_ != Phase::connected) return;
    Request request;
    request.op = Op::auth;
    request.auth = auth;
    connection_->request(std::move(request));
}

void SimClient::set_servers(const std::vector<std::string>& hosts) {
    servers_ = hosts;
    for (std::size_t i = servers_.size(); i > 1; --i) std::swap(servers_[i - 1], servers_[rng_.below(i)]);
    next_server_ = 0;
}

// ---- closing ---------------------------------------------------------------------------------------------------

void SimClient::close(std::function<void()> done) {
    if (phase_ == Phase::closed) {
        runtime_->post(Lane::blocking, std::move(done));
        return;
    }
    on_closed_.push_back(std::move(done));
    if (closing_) return;
    closing_ = true;
    if (phase_ != Phase::connected) return finish_close();
    send_waiting();
    Request request;
    request.op = Op::close;
    send({std::move(request), [](const Reply&) {}});
    world_.at(process_.to_true(local_now() + kCloseLimit), &process_,
              [self = shared_from_this()] { self->finish_close(); });
}

void SimClient::finish_close() {
    if (phase_ == Phase::closed) return;
    phase_ = Phase::closed;
    ++attempt_;
    if (clock_ != 0) world_.cancel(clock_);
    clock_ = 0;
    if (connection_ != nullptr) {
        connection_->close_by_client();
        connection_ = nullptr;
    }
    data_watches_.clear();
    exist_watches_.clear();
    child_watches_.clear();
    fail_all(Rc::closed);
    deliver([this] {
        events_ = nullptr;
        for (auto& told : std::exchange(on_closed_, {})) runtime_->post(Lane::blocking, std::move(told));
    });
}

std::shared_ptr<Client> SimClientFactory::open(const ClientOptions& options, std::shared_ptr<ClientEvents> events) {
    auto client = std::make_shared<SimClient>(ensemble_, process_, runtime_, options, std::move(events));
    client->start();
    opened_.push_back(client);
    return client;
}

std::vector<std::shared_ptr<SimClient>> SimClientFactory::clients() const {
    std::vector<std::shared_ptr<SimClient>> alive;
    for (const auto& weak : opened_) {
        if (auto client = weak.lock()) alive.push_back(std::move(client));
    }
    return alive;
}

}  // namespace zkrecipes::sim
