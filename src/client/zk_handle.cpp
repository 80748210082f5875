#include "client/zk_handle.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <zkrecipes/error.hpp>

#include "base/default_logger.hpp"
#include "base/session_timeout.hpp"
#include "base/signal_mask.hpp"
#include "client/resolver.hpp"

namespace zkrecipes::internal {
namespace {

/// How long closing waits for the answers to what is under way. The C client may take 1.5 seconds more.
constexpr auto kDrainLimit = std::chrono::seconds(1);

std::string peer_of(zhandle_t* zh) {
    // Not zoo_get_current_server: it answers a static buffer that all handles share. This asks the kernel about the
    // socket.
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    if (zookeeper_get_connected_host(zh, reinterpret_cast<sockaddr*>(&address), &length) == nullptr) return {};
    char text[INET6_ADDRSTRLEN] = {};
    if (address.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
        inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
        return std::string(text) + ":" + std::to_string(ntohs(v4.sin_port));
    }
    if (address.ss_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {  // resolver.hpp says why
            inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof(text));
            return std::string(text) + ":" + std::to_string(ntohs(v6.sin6_port));
        }
        inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
        return "[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port));
    }
    return {};
}

// tests/support/tsan.supp knows a defect of zoo_set_servers by the name of the second one. Of code that is not
// instrumented ThreadSanitizer shows only who called the last function that is.
[[gnu::noinline]] int call_set_servers(zhandle_t* zh, const std::string& servers) {
    return zoo_set_servers(zh, servers.c_str());
}
[[gnu::noinline]] int change_servers_of_client(zhandle_t* zh, const std::string& servers) {
    return call_set_servers(zh, servers);
}

}  // namespace

// ---- what the handle sees -----------------------------------------------------------------------------------------

void ZkHandle::on_session_event(zhandle_t* zh, int state) noexcept {
    if (state == ZOO_CONNECTED_STATE)
        connected(zh);
    else if (state == ZOO_CONNECTING_STATE)
        disconnected();
    else if (state == ZOO_EXPIRED_SESSION_STATE)
        ended(ClientState::expired, Rc::session_expired);
    else if (state == ZOO_AUTH_FAILED_STATE)
        ended(ClientState::auth_failed, Rc::auth_failed);
}

void ZkHandle::connected(zhandle_t* zh) {
    // What the C client shows now may change at any time: it is read once, here, and told from this copy.
    const clientid_t session = *zoo_client_id(zh);
    const int timeout_ms = zoo_recv_timeout(zh);
    std::shared_ptr<ZkRelay> relay;
    {
        const std::lock_guard lock(mutex_);
        relay = relay_;
    }
    if (trust_ && !trust_->has_checked()) {
        logger_->error("ZooKeeper over TLS: the certificate of the server was not checked; the session is not used");
        return ended(ClientState::auth_failed, Rc::auth_failed);
    }
    const std::uint64_t connection = relay ? relay->newest() : 0;  // before the C client is asked
    std::string server = peer_of(zh);
    if (relay && !server.empty()) server = relay->established(connection);
    if (status().state == ClientState::connected) disconnected();  // the C client may leave that event out
    ClientStatus status;
    {
        const std::lock_guard lock(mutex_);
        if (final_rc_ != Rc::ok) return;
        adopt(zh);
        status_.state = ClientState::connected;
        if (status_.session_id == 0) {  // never changes while a handle lives
            status_.session_id = session.client_id;
            status_.by_zookeeper = made_by_zookeeper(session.client_id, {session.passwd, sizeof(session.passwd)});
        }
        if (timeout_ms > 0) status_.timeout = std::chrono::milliseconds(timeout_ms);
        status_.server = server;
        status = status_;
        tls_problems_ = 0;
        tls_problem_.clear();
        if (lookup_timer_ != 0) runtime_->cancel(std::exchange(lookup_timer_, 0));
        send_auth_locked();  // before anything that the news of being connected may set off
    }
    tell([&](ClientEvents& events) { events.on_status(status); });
}

void ZkHandle::disconnected() {
    ClientStatus status;
    bool look_up = false;
    {
        const std::lock_guard lock(mutex_);
        if (final_rc_ != Rc::ok) return;
        status_.state = ClientState::connecting;
        status_.server.clear();
        status = status_;
        while (!waiting_.empty()) refuse_locked(waiting_.front(), waiting_, Rc::not_connected);
        drained_.notify_all();
        if (sasl_) look_for_sasl_failure_locked();
        look_up = servers_changed_ || needs_lookup(servers_);
    }
    tell([&](ClientEvents& events) { events.on_status(status); });
    if (look_up) runtime_->post(Lane::blocking, [self = shared_from_this()] { self->apply_servers(); });
}

void ZkHandle::ended(ClientState state, Rc rc) {
    ClientStatus status;
    ZkRequest::List waiting;
    std::vector<ZkRequest*> sent;
    {
        const std::lock_guard lock(mutex_);
        if (final_rc_ != Rc::ok) return;
        final_rc_ = rc;
        ending_ = true;
        status_.state = state;
        status_.server.clear();
        status = status_;
        waiting.splice(waiting.end(), waiting_);
        // The C client answers most of what it has after this event, but not what slipped in while its I/O thread was
        // ending. So all of it is answered here, and what the C client says afterwards is dropped.
        for (ZkRequest& request : sent_) {
            request.answered = true;
            sent.push_back(&request);
        }
        answered_.splice(answered_.end(), sent_);
        sent_weight_ = 0;
        drained_.notify_all();
    }
    tell([&](ClientEvents& events) { events.on_status(status); });
    // Until ending_ is false again, none of these is forgotten.
    for (ZkRequest* request : sent) answer([&] { request->fail(rc); });
    for (ZkRequest& request : waiting) answer([&] { request.fail(rc); });
    answer_refused();  // those that had waited for these
    answer_auths(rc);
    const std::lock_guard lock(mutex_);
    ending_ = false;
    drained_.notify_all();
}

void ZkHandle::on_node_event(int type, const char* path) noexcept {
    auto event = WatchEventType::removed;
    if (type == ZOO_CREATED_EVENT)
        event = WatchEventType::created;
    else if (type == ZOO_DELETED_EVENT)
        event = WatchEventType::deleted;
    else if (type == ZOO_CHANGED_EVENT)
        event = WatchEventType::changed;
    else if (type == ZOO_CHILD_EVENT)
        event = WatchEventType::children_changed;
    tell([&](ClientEvents& events) { events.on_watch(event, path == nullptr ? "" : path); });
}

ClientStatus ZkHandle::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

// ---- credentials --------------------------------------------------------------------------------------------------

// One at a time: the C client answers all that are on their way with the reply to the first of them.

void ZkHandle::add_auth(const Auth& auth) {
    const std::lock_guard lock(mutex_);
    auths_.push_back(std::make_unique<PendingAuth>(PendingAuth{this, auths_.size(), auth}));
    if (final_rc_ != Rc::ok) {
        runtime_->post(Lane::protocol, [self = shared_from_this()] {
            Rc rc{};
            {
                const std::lock_guard final_lock(self->mutex_);
                rc = self->final_rc_;
            }
            self->answer_auths(rc);
        });
        return;
    }
    send_auth_locked();
}

void ZkHandle::send_auth_locked() {
    using State = PendingAuth::State;
    // zoo_add_auth refuses while the connection is down; connected() calls again.
    if (zh_ == nullptr || life_ != Life::open || status_.state != ClientState::connected) return;
    for (const auto& auth : auths_) {
        if (auth->state == State::sent) return;
        if (auth->state == State::answered) continue;
        const auto reply = [](int rc, const void* data) {
            const auto* const pending = static_cast<const PendingAuth*>(data);
            pending->handle->on_auth_reply(pending->index, static_cast<Rc>(rc));
        };
        const int rc = zoo_add_auth(zh_, auth->auth.scheme.c_str(), auth->auth.credential.data(),
                                    static_cast<int>(auth->auth.credential.size()), reply, auth.get());
        if (rc == ZOK) auth->state = State::sent;
        return;
    }
}

void ZkHandle::on_auth_reply(std::size_t index, Rc rc) noexcept {
    runtime_->post(Lane::protocol, [self = shared_from_this(), index, rc] { self->auth_answered(index, rc); });
}

void ZkHandle::auth_answered(std::size_t index, Rc rc) {
    using State = PendingAuth::State;
    {
        const std::lock_guard lock(mutex_);
        PendingAuth& auth = *auths_[index];
        if (auth.state != State::sent || life_ != Life::open) return;
        if (rc != Rc::ok && rc != Rc::auth_failed && final_rc_ == Rc::ok) {
            auth.state = State::waiting;  // the connection broke first: once more on the next one
            send_auth_locked();
            return;
        }
        auth.state = State::answered;
        send_auth_locked();
    }
    tell([&](ClientEvents& events) { events.on_auth(rc); });
}

void ZkHandle::answer_auths(Rc rc) {
    std::size_t count = 0;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& auth : auths_) {
            if (std::exchange(auth->state, PendingAuth::State::answered) != PendingAuth::State::answered) ++count;
        }
    }
    for (; count > 0; --count) tell([&](ClientEvents& events) { events.on_auth(rc); });
}

// ---- servers ------------------------------------------------------------------------------------------------------

void ZkHandle::set_servers(const std::vector<std::string>& hosts) {
    std::vector<HostPort> servers = parse_servers(hosts);
    const std::lock_guard lock(mutex_);
    if (life_ != Life::open || final_rc_ != Rc::ok || servers == servers_) return;
    servers_ = std::move(servers);
    servers_changed_ = true;
    if (status_.state != ClientState::connecting) return;  // disconnected() does it
    runtime_->post(Lane::blocking, [self = shared_from_this()] { self->apply_servers(); });
}

/// On the blocking lane, as closing is, so that the handle stays while the C client is asked.
void ZkHandle::apply_servers() {
    bool started = false;
    std::vector<HostPort> servers;
    {
        const std::lock_guard lock(mutex_);
        if (life_ != Life::open || status_.state != ClientState::connecting) return;
        started = zh_ != nullptr;
        servers = servers_;
        servers_changed_ = false;
    }
    if (!started) return start_when_resolved();
    std::string problem;
    const std::vector<std::string> addresses = usable_of(resolve_servers(servers, problem));
    if (!problem.empty()) logger_->debug("ZooKeeper servers that cannot be looked up: {}", problem);
    if (needs_lookup(servers)) look_up_again_later();
    zhandle_t* zh = nullptr;
    {
        const std::lock_guard lock(mutex_);
        // Not while connected: the C client would cut a connection to a server that is not in the new list, from this
        // thread and without a callback.
        if (life_ != Life::open || status_.state != ClientState::connecting) {
            servers_changed_ = true;
            return;
        }
        if (addresses.empty() || addresses == addresses_) return;
        addresses_ = addresses;
        if (relay_) return relay_->set_servers(addresses);
        zh = zh_;
    }
    change_servers_of_client(zh, list_of(addresses));
    // The I/O thread may be waiting for a server that is silent, for a third of the timeout, and the C client does not
    // wake it for the new list; but it does for a request.
    zoo_aexists(
        zh, "/", 0, [](int, const Stat*, const void*) {}, nullptr);
}

// ---- closing ------------------------------------------------------------------------------------------------------

void ZkHandle::close(std::function<void()> done) {
    const std::lock_guard lock(mutex_);
    if (life_ == Life::closed) return runtime_->post(Lane::blocking, std::move(done));
    // In this order: where it throws, nothing has been begun, and the caller may try again.
    close_done_.reserve(close_done_.size() + 1);
    if (life_ == Life::open) runtime_->post(Lane::blocking, [self = shared_from_this()] { self->do_close(); });
    close_done_.push_back(std::move(done));
    if (life_ != Life::open) return;
    life_ = Life::draining;
    if (lookup_timer_ != 0) runtime_->cancel(std::exchange(lookup_timer_, 0));
    if (sasl_timer_ != 0) runtime_->cancel(std::exchange(sasl_timer_, 0));
}

void ZkHandle::abandon() {
    {
        const std::lock_guard lock(mutex_);
        if (life_ != Life::open) return;
    }
    close([] {});
}

/// zookeeper_close sends the end of the session and waits for the reply, but takes any reply for it, and then closes
/// the socket. Unread replies make that a reset, which can overtake the end of the session at the server: the session
/// and its ephemeral nodes would live on until the timeout. So the requests before it are answered first.
void ZkHandle::drain() {
    std::unique_lock lock(mutex_);
    drained_.wait_for(lock, kDrainLimit, [this] {
        return (sent_.empty() && waiting_.empty()) || status_.state != ClientState::connected;
    });
}

void ZkHandle::do_close() {
    drain();
    zhandle_t* zh = nullptr;
    std::shared_ptr<ZkRelay> relay;
    {
        const std::lock_guard lock(mutex_);
        zh = zh_;
        life_ = Life::closing;  // from now on the C client takes no request
        relay.swap(relay_);
    }
    if (relay) relay->close_soon();  // the C client may be waiting in a TLS handshake
    // Without a lock: it joins the handle's threads, which may be on their way into one of our functions. It takes a
    // few seconds when the server does not answer.
    if (zh != nullptr) zookeeper_close(zh);
    relay.reset();
    ZkRequest::List left;
    std::vector<std::function<void()>> done;
    {
        std::unique_lock lock(mutex_);
        drained_.wait(lock, [this] { return !ending_; });  // by the timer of SASL
        zh_ = nullptr;
        life_ = Life::closed;
        if (final_rc_ == Rc::ok) final_rc_ = Rc::closed;
        if (status_.state == ClientState::connected || status_.state == ClientState::connecting) {
            status_.state = ClientState::dead;
        }
        status_.server.clear();
        // The C client has dropped many of these without a word.
        for (ZkRequest::List* list : {&sent_, &waiting_, &refused_}) left.splice(left.end(), *list);
        answered_.clear();
        done.swap(close_done_);
    }
    for (ZkRequest& request : left) {
        answer([&] { request.fail(request.fate == Rc::ok ? Rc::closed : request.fate); });
    }
    std::shared_ptr<ClientEvents> events;
    {
        const std::lock_guard lock(delivery_);
        events.swap(events_);
    }
    for (const auto& action : done) action();
}

ZkHandle::~ZkHandle() {
    // Open only when the runtime was stopped before the handle was closed: the close was dropped with it.
    if (relay_) relay_->close_soon();
    if (zh_ != nullptr) zookeeper_close(zh_);
}

}  // namespace zkrecipes::internal
