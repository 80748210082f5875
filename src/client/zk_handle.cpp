#include "client/zk_handle.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
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

/// How many packets are read before others have their turn.
constexpr int kPacketsAtOnce = 64;

}  // namespace

// ---- what the C client tells ---------------------------------------------------------------------------------------

void ZkHandle::arrived(ZkRequest& request) noexcept {
    if (!request.keep) --in_books_;
    news_.emplace_back(&request);
}

void ZkHandle::on_session_event(zhandle_t* zh, int state) noexcept {
    SessionNews news{state, {}};
    if (state == ZOO_CONNECTED_STATE) {
        const clientid_t session = *zoo_client_id(zh);
        news.status.session_id = session.client_id;
        news.status.by_zookeeper = made_by_zookeeper(session.client_id, {session.passwd, sizeof(session.passwd)});
        news.status.timeout = std::chrono::milliseconds(zoo_recv_timeout(zh));
        news.status.server = peer_of(zh);
    }
    news_.emplace_back(std::move(news));
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
    news_.emplace_back(NodeNews{event, path == nullptr ? "" : path});
}

void ZkHandle::on_auth_reply(std::size_t index, Rc rc) noexcept { news_.emplace_back(AuthNews{index, rc}); }

// ---- the driver ----------------------------------------------------------------------------------------------------

void ZkHandle::look() {
    const std::lock_guard lock(mutex_);
    if (driver_) driver_->look();
}

bool ZkHandle::is_connected() const { return zh_ != nullptr && zoo_state(zh_) == ZOO_CONNECTED_STATE; }

ZkDriver::Wait ZkHandle::drive(short ready) {
    ZkDriver::Wait wait;
    std::vector<News> news;
    {
        const std::lock_guard client(client_mutex_);
        if (zh_ == nullptr) return {};
        wait = turn(ready);
        news.swap(news_);
    }
    for (News& each : news) {
        pass_on(each);
        // There may be credentials to send.
        if (std::holds_alternative<SessionNews>(each) || std::holds_alternative<AuthNews>(each)) wait.time = {};
    }
    send_waiting();
    return wait;
}

/// client_mutex_ is held.
ZkDriver::Wait ZkHandle::turn(short ready) {
    const bool lost = in_books_ > 0 && zoo_state(zh_) == ZOO_NOTCONNECTED_STATE;
    // First what is there: to the C client, which looks at the clock, it may be too late for an answer that has come.
    const bool more = !lost && process(ready);
    if (is_unrecoverable(zh_) != ZOK) {
        // Of a failed SASL the C client tells nobody.
        if (sasl_ && sasl_has_failed(zh_)) news_.emplace_back(SessionNews{ZOO_AUTH_FAILED_STATE, {}});
        return {};
    }
    int socket = -1, interest = 0;
    timeval limit{};
    const auto ask = [&] { return zookeeper_interest(zh_, &socket, &interest, &limit) == ZOK; };
    if (lost) {
        socket_ = -1;
        answer_what_is_lost();
        return {.time = Nanoseconds(0)};
    }
    bool sound = ask();
    const bool may_authenticate = sound && is_connected() && (interest & ZOOKEEPER_WRITE) == 0;
    if (may_authenticate && send_auth()) sound = ask();
    const bool is_new = socket != std::exchange(socket_, sound ? socket : -1);
    if (is_new) ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    ZkDriver::Wait wait{socket, is_new, 0,
                        std::chrono::seconds(limit.tv_sec) + std::chrono::microseconds(limit.tv_usec)};
    if ((interest & ZOOKEEPER_READ) != 0) wait.events |= POLLIN;
    if ((interest & ZOOKEEPER_WRITE) != 0) wait.events |= POLLOUT;
    if (more || !sound) wait.time = {};
    return wait;
}

/// True: there may be more.
bool ZkHandle::process(short ready) {
    int events = 0;
    if ((ready & ~POLLOUT) != 0) events |= ZOOKEEPER_READ;
    if ((ready & ~POLLIN) != 0) events |= ZOOKEEPER_WRITE;
    if (events == 0) return false;
    int rc = zookeeper_process(zh_, events);
    for (int packets = 1; rc == ZOK && packets < kPacketsAtOnce; ++packets) rc = zookeeper_process(zh_, ZOOKEEPER_READ);
    if (rc != ZOK && rc != ZNOTHING) socket_ = -1;
    return rc == ZOK;
}

/// Where a send fails, the C client drops its connection without a word, and would go on with a new one. What it was
/// sent, and what it still has to send, must not be executed on that: the new one is broken before it is one.
void ZkHandle::answer_what_is_lost() {
    news_.emplace_back(SessionNews{ZOO_CONNECTING_STATE, {}});
    int socket = -1, interest = 0;
    timeval limit{};
    if (zookeeper_interest(zh_, &socket, &interest, &limit) != ZOK) return;  // it has answered them
    ::shutdown(socket, SHUT_RDWR);
    zookeeper_process(zh_, ZOOKEEPER_READ | ZOOKEEPER_WRITE);
}

void ZkHandle::pass_on(News& news) {
    if (auto* const request = std::get_if<ZkRequest*>(&news)) return finish(**request);
    if (auto* const session = std::get_if<SessionNews>(&news)) {
        if (session->state == ZOO_CONNECTED_STATE) return connected(std::move(session->status));
        if (session->state == ZOO_CONNECTING_STATE) return disconnected();
        if (session->state == ZOO_EXPIRED_SESSION_STATE) return ended(ClientState::expired, Rc::session_expired);
        if (session->state == ZOO_AUTH_FAILED_STATE) return ended(ClientState::auth_failed, Rc::auth_failed);
        return;
    }
    if (const auto* const node = std::get_if<NodeNews>(&news)) {
        return tell([&](ClientEvents& events) { events.on_watch(node->type, node->path); });
    }
    const auto& auth = std::get<AuthNews>(news);
    auth_answered(auth.index, auth.rc);
}

// ---- the connection ------------------------------------------------------------------------------------------------

void ZkHandle::connected(ClientStatus news) {
    std::shared_ptr<ZkRelay> relay;
    {
        const std::lock_guard lock(mutex_);
        relay = relay_;
    }
    if (trust_ && !trust_->has_checked()) {
        logger_->error("ZooKeeper over TLS: the certificate of the server was not checked; the session is not used");
        return ended(ClientState::auth_failed, Rc::auth_failed);
    }
    if (relay && !news.server.empty()) news.server = relay->established(relay->newest());
    if (status().state == ClientState::connected) disconnected();  // the C client may leave that event out
    ClientStatus status;
    {
        const std::lock_guard lock(mutex_);
        if (final_rc_ != Rc::ok) return;
        status_.state = ClientState::connected;
        if (status_.session_id == 0) {  // never changes while a handle lives
            status_.session_id = news.session_id;
            status_.by_zookeeper = news.by_zookeeper;
        }
        if (news.timeout.count() > 0) status_.timeout = news.timeout;
        status_.server = news.server;
        status = status_;
        tls_problems_ = 0;
        tls_problem_.clear();
        if (lookup_timer_ != 0) runtime_->cancel(std::exchange(lookup_timer_, 0));
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
        look_up = servers_changed_ || needs_lookup(servers_);
    }
    tell([&](ClientEvents& events) { events.on_status(status); });
    if (look_up) runtime_->post(Lane::blocking, [self = shared_from_this()] { self->apply_servers(); });
}

/// What was sent is answered by the C client, right after this.
void ZkHandle::ended(ClientState state, Rc rc) {
    ClientStatus status;
    {
        const std::lock_guard lock(mutex_);
        if (final_rc_ != Rc::ok) return;
        final_rc_ = rc;
        status_.state = state;
        status_.server.clear();
        status = status_;
        while (!waiting_.empty()) refuse_locked(waiting_.front(), waiting_, rc);
        drained_.notify_all();
    }
    tell([&](ClientEvents& events) { events.on_status(status); });
    answer_auths(rc);
}

ClientStatus ZkHandle::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

// ---- credentials --------------------------------------------------------------------------------------------------

// One at a time: the C client answers all that are on their way with the reply to the first of them.

void ZkHandle::add_auth(const Auth& auth) {
    {
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
    }
    look();
}

/// The driver is about to send credentials, which go before any request.
bool ZkHandle::auth_waits_locked() const {
    const auto next =
        std::ranges::find_if(auths_, [](const auto& auth) { return auth->state != PendingAuth::State::answered; });
    return next != auths_.end() && (*next)->state == PendingAuth::State::waiting;
}

/// On the driver, while the C client has nothing to send: it would put credentials into the middle of that. True: it
/// has now.
bool ZkHandle::send_auth() {
    using State = PendingAuth::State;
    const std::lock_guard lock(mutex_);
    if (life_ != Life::open || status_.state != ClientState::connected) return false;
    for (const auto& auth : auths_) {
        if (auth->state == State::sent) return false;
        if (auth->state == State::answered) continue;
        const auto reply = [](int rc, const void* data) {
            const auto* const pending = static_cast<const PendingAuth*>(data);
            pending->handle->on_auth_reply(pending->index, static_cast<Rc>(rc));
        };
        const int rc = zoo_add_auth(zh_, auth->auth.scheme.c_str(), auth->auth.credential.data(),
                                    static_cast<int>(auth->auth.credential.size()), reply, auth.get());
        if (rc == ZOK) auth->state = State::sent;
        return rc == ZOK;
    }
    return false;
}

void ZkHandle::auth_answered(std::size_t index, Rc rc) {
    using State = PendingAuth::State;
    {
        const std::lock_guard lock(mutex_);
        PendingAuth& auth = *auths_[index];
        if (auth.state != State::sent || life_ != Life::open) return;
        const bool once_more = rc != Rc::ok && rc != Rc::auth_failed && final_rc_ == Rc::ok;
        auth.state = once_more ? State::waiting : State::answered;  // the connection broke first: on the next one
        if (once_more) return;
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
        started = started_;
        servers = servers_;
        servers_changed_ = false;
    }
    if (!started) return start_when_resolved();
    std::string problem;
    const std::vector<std::string> addresses = usable_of(resolve_servers(servers, problem));
    if (!problem.empty()) logger_->debug("ZooKeeper servers that cannot be looked up: {}", problem);
    if (needs_lookup(servers)) look_up_again_later();
    use_servers(addresses);
    look();  // also for whoever wanted to send meanwhile
}

void ZkHandle::use_servers(const std::vector<std::string>& addresses) {
    const std::lock_guard client(client_mutex_);
    const std::lock_guard lock(mutex_);
    // Not while connected, also if that is not told yet: the C client would cut a connection to a server that is not in
    // the new list, without a callback.
    if (life_ != Life::open || status_.state != ClientState::connecting || is_connected()) {
        servers_changed_ = true;
        return;
    }
    if (addresses.empty() || addresses == addresses_) return;
    addresses_ = addresses;
    if (relay_) return relay_->set_servers(addresses);
    if (zh_ == nullptr) return;
    set_servers_of(zh_, list_of(addresses));
    socket_ = -1;  // it was closed; the next one may have the same number
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
        life_ = Life::closing;  // from now on the C client takes no request
        relay.swap(relay_);
    }
    if (relay) relay->close_soon();  // the C client may be waiting in a TLS handshake
    std::unique_ptr<ZkDriver> driver;
    std::vector<News> news;
    {
        const std::lock_guard client(client_mutex_);
        zh = std::exchange(zh_, nullptr);
        const std::lock_guard lock(mutex_);
        driver = std::move(driver_);
    }
    driver.reset();  // waits for it, which may be on its way into one of our functions
    // It takes a few seconds when the server does not answer. Nobody else uses the handle, or news_, any more.
    if (zh != nullptr) zookeeper_close(zh);
    news.swap(news_);
    for (News& each : news) {
        if (std::holds_alternative<ZkRequest*>(each)) pass_on(each);
    }
    relay.reset();
    ZkRequest::List left;
    std::vector<std::function<void()>> done;
    {
        const std::lock_guard lock(mutex_);
        life_ = Life::closed;
        if (final_rc_ == Rc::ok) final_rc_ = Rc::closed;
        if (status_.state == ClientState::connected || status_.state == ClientState::connecting) {
            status_.state = ClientState::dead;
        }
        status_.server.clear();
        // The C client has dropped many of these without a word.
        for (ZkRequest::List* list : {&sent_, &waiting_, &refused_}) left.splice(left.end(), *list);
        kept_.clear();
        done.swap(close_done_);
    }
    for (ZkRequest& request : left) {
        answer([&] { request.fail(request.fate == Rc::ok ? Rc::closed : request.fate); });
    }
    std::shared_ptr<ClientEvents> events;
    {
        const UserCodeLock lock(delivery_);
        events.swap(events_);
    }
    for (const auto& action : done) action();
}

ZkHandle::~ZkHandle() {
    // Open only when the runtime was stopped before the handle was closed: the close was dropped with it.
    if (relay_) relay_->close_soon();
    driver_.reset();
    if (zh_ != nullptr) zookeeper_close(zh_);
}

}  // namespace zkrecipes::internal
