#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <zkrecipes/testenv/raw_client.hpp>

#include "net.hpp"
#include "wire.hpp"

namespace zkrecipes::testenv {

using internal::Clock;
using internal::UniqueFd;
using std::chrono::milliseconds;

namespace {

std::vector<Endpoint> parse_connect_string(const std::string& text) {
    std::vector<Endpoint> endpoints;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        endpoints.push_back(internal::parse_endpoint(part));
    }
    if (endpoints.empty()) {
        throw Error("no server in the connect string \"" + text + "\"");
    }
    return endpoints;
}

RawError lost(const std::string& what) { return {zk_error::connection_loss, "connection lost during " + what}; }

}  // namespace

struct RawClient::State {
    struct Pending {
        Opcode opcode{};
        std::promise<Reply> promise;
    };

    State(const std::string& connect_string, RawClientOptions wanted)
        : endpoints(parse_connect_string(connect_string)),
          options(std::move(wanted)),
          wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        session = options.session_id;
        password = options.password.empty() ? std::string(16, '\0') : options.password;
    }
    ~State() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
            drop_connection();
        }
        poke();
        if (reader.joinable()) {
            reader.join();
        }
    }

    void poke() const {
        const std::uint64_t one = 1;
        (void)!::write(wake.get(), &one, sizeof one);
    }
    void connect(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool try_server(const Endpoint& endpoint, Clock::time_point deadline);
    void drop_connection();  // with the mutex
    void run();
    void take(std::string_view bytes);       // with the mutex
    void take_frame(std::string_view body);  // with the mutex
    std::future<Reply> send(Opcode opcode, const std::string& body, bool may_reconnect);

    const std::vector<Endpoint> endpoints;
    const RawClientOptions options;
    const UniqueFd wake;

    std::mutex connecting;  // one new connection at a time; taken before `mutex`
    std::mutex mutex;
    std::condition_variable changed;
    UniqueFd socket;
    wire::FrameSplitter splitter;
    std::size_t next_endpoint = 0;
    std::int64_t session = 0;
    std::string password;
    milliseconds timeout{0};
    std::int64_t last_zxid = 0;
    std::int32_t next_xid = 1;
    std::multimap<std::int32_t, Pending> pending;
    std::deque<WatchEvent> events;
    Clock::time_point last_sent;
    Clock::time_point last_heard;
    bool stopping = false;
    bool closed = false;
    std::thread reader;
};

// One attempt at one server. Resumes the session, or begins one if there is none.
bool RawClient::State::try_server(const Endpoint& endpoint, Clock::time_point deadline) {
    UniqueFd fd = internal::connect_before(endpoint, deadline);
    const auto hello = wire::connect_request(
        {last_zxid, static_cast<std::int32_t>(options.session_timeout.count()), session, password});
    char length[4];
    if (!fd || !internal::write_all(fd.get(), hello.data(), hello.size(), deadline) ||
        !internal::read_all(fd.get(), length, sizeof length, deadline)) {
        return false;
    }
    const auto size = wire::Reader(std::string_view(length, 4)).int32().value_or(-1);
    if (size < 0 || size > 4096) {
        return false;
    }
    std::string body(static_cast<std::size_t>(size), '\0');
    if (!internal::read_all(fd.get(), body.data(), body.size(), deadline)) {
        return false;
    }
    const auto response = wire::parse_connect_response(body);
    if (!response) {
        return false;
    }
    if (response->timeout_ms <= 0) {
        throw RawError(zk_error::session_expired, "the session is over");
    }
    const std::lock_guard lock(mutex);
    session = response->session_id;
    password = response->password;
    timeout = milliseconds(response->timeout_ms);
    socket = std::move(fd);
    splitter = {};
    last_sent = last_heard = Clock::now();
    return true;
}

void RawClient::State::connect(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    {
        const std::lock_guard one_at_a_time(connecting);
        const auto deadline = Clock::now() + options.connect_within;
        const auto is_connected = [&] {
            const std::lock_guard guard(mutex);
            return static_cast<bool>(socket);
        };
        while (!is_connected()) {
            const Endpoint& endpoint = endpoints[next_endpoint++ % endpoints.size()];
            // A server that accepts but never answers must not use up the time of the others.
            const auto share = options.connect_within / static_cast<int>(endpoints.size() + 1);
            if (try_server(endpoint, std::min(deadline, Clock::now() + share))) {
                break;
            }
            if (Clock::now() >= deadline) {
                throw RawError(zk_error::connection_loss, "no server answers");
            }
            std::this_thread::sleep_for(milliseconds(10));
        }
    }
    poke();
    lock.lock();
}

void RawClient::State::drop_connection() {
    if (!socket) {
        return;
    }
    // Not closed while the reader may wait on it; the reader sees the end and closes it.
    ::shutdown(socket.get(), SHUT_RDWR);
    socket.reset();
    auto failed = std::exchange(pending, {});
    for (auto& [xid, request] : failed) {
        request.promise.set_value({zk_error::connection_loss, 0, ""});
    }
    changed.notify_all();
}

void RawClient::State::run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
        const int fd = socket.get();
        const auto ping_at = last_sent + timeout / 3;
        const auto give_up_at = last_heard + timeout * 2 / 3;
        int wait_ms = -1;
        if (fd >= 0) {
            const auto left = std::chrono::ceil<milliseconds>(std::min(ping_at, give_up_at) - Clock::now()).count();
            wait_ms = static_cast<int>(std::max<long>(left, 0));
        }
        // A private copy: the socket may be closed, and its number used again, while we wait.
        UniqueFd copy(fd >= 0 ? ::fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1);
        lock.unlock();
        pollfd watched[] = {{wake.get(), POLLIN, 0}, {copy.get(), POLLIN, 0}};
        ::poll(watched, copy ? 2 : 1, wait_ms);
        lock.lock();
        if (watched[0].revents != 0) {
            std::uint64_t ignored = 0;
            (void)!::read(wake.get(), &ignored, sizeof ignored);
        }
        if (!socket || socket.get() != fd) {
            continue;
        }
        if (watched[1].revents != 0) {
            char buffer[16 * 1024];
            const ssize_t got = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (got > 0) {
                take(std::string_view(buffer, static_cast<std::size_t>(got)));
            } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
                drop_connection();
                continue;
            }
        }
        const auto now = Clock::now();
        if (now >= last_heard + timeout * 2 / 3) {
            drop_connection();
        } else if (now >= last_sent + timeout / 3) {
            const auto frame = wire::request(wire::xid_ping, Opcode::ping);
            last_sent = now;
            if (!internal::write_all(fd, frame.data(), frame.size(), now + timeout / 3)) {
                drop_connection();
            }
        }
    }
}

void RawClient::State::take(std::string_view bytes) {
    last_heard = Clock::now();
    splitter.feed(bytes);
    while (const auto frame = splitter.next()) {
        take_frame(wire::body(*frame));
    }
    if (splitter.broken()) {
        drop_connection();
    }
}

void RawClient::State::take_frame(std::string_view body) {
    const auto head = wire::parse_reply(body);
    if (!head || head->xid == wire::xid_ping) {
        return;
    }
    if (head->xid == wire::xid_event) {
        if (auto event = wire::parse_event(body)) {
            events.push_back({event->type, std::move(event->path)});
            changed.notify_all();
        }
        return;
    }
    last_zxid = std::max(last_zxid, head->zxid);
    const auto asked = pending.find(head->xid);
    if (asked != pending.end()) {
        asked->second.promise.set_value({head->error, head->zxid, std::string(body.substr(16))});
        pending.erase(asked);
    }
}

std::future<RawClient::Reply> RawClient::State::send(Opcode opcode, const std::string& body, bool may_reconnect) {
    std::unique_lock lock(mutex);
    if (closed) {
        throw RawError(zk_error::session_expired, "the client is closed");
    }
    if (!socket && may_reconnect) {
        connect(lock);
    }
    if (!socket) {
        throw lost(to_string(opcode));
    }
    const std::int32_t xid = next_xid++;
    const auto frame = wire::request(xid, opcode, body);
    Pending entry{opcode, {}};
    auto future = entry.promise.get_future();
    pending.emplace(xid, std::move(entry));
    last_sent = Clock::now();
    if (!internal::write_all(socket.get(), frame.data(), frame.size(), Clock::now() + options.answer_within)) {
        drop_connection();
    }
    return future;
}

RawClient::RawClient(const std::string& connect_string, RawClientOptions options)
    : state_(std::make_shared<State>(connect_string, std::move(options))) {
    std::unique_lock lock(state_->mutex);
    state_->connect(lock);
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    state_->reader = std::thread([state = state_.get()] { state->run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RawClient::RawClient(RawClient&&) noexcept = default;

RawClient& RawClient::operator=(RawClient&& other) noexcept {
    if (this != &other) {
        if (state_) {
            close();
        }
        state_ = std::move(other.state_);
    }
    return *this;
}

RawClient::~RawClient() {
    if (state_) {
        close();
    }
}

std::int64_t RawClient::session_id() const {
    const std::lock_guard lock(state_->mutex);
    return state_->session;
}

std::string RawClient::password() const {
    const std::lock_guard lock(state_->mutex);
    return state_->password;
}

milliseconds RawClient::session_timeout() const {
    const std::lock_guard lock(state_->mutex);
    return state_->timeout;
}

bool RawClient::connected() const {
    const std::lock_guard lock(state_->mutex);
    return static_cast<bool>(state_->socket);
}

std::future<RawClient::Reply> RawClient::send(Opcode opcode, const std::string& body) {
    return state_->send(opcode, body, state_->options.reconnect);
}

RawClient::Reply RawClient::request(Opcode opcode, const std::string& body) {
    auto future = send(opcode, body);
    if (future.wait_for(state_->options.answer_within) != std::future_status::ready) {
        throw Error("no answer to " + to_string(opcode) + " in time");
    }
    auto reply = future.get();
    if (reply.error == zk_error::connection_loss) {
        throw lost(to_string(opcode));
    }
    return reply;
}

std::string RawClient::create_body(const std::string& path, const std::string& data, int flags) {
    // One entry: all rights for everyone.
    return wire::Writer().text(path).text(data).int32(1).int32(31).text("world").text("anyone").int32(flags).bytes();
}

std::string RawClient::path_watch_body(const std::string& path, bool watch) {
    return wire::Writer().text(path).byte(watch ? 1 : 0).bytes();
}

namespace {

// The body of the answer, or empty if there is no such node.
std::optional<std::string> body_of(const RawClient::Reply& reply, Opcode opcode, const std::string& path) {
    if (reply.error == zk_error::no_node) {
        return std::nullopt;
    }
    if (reply.error != zk_error::ok) {
        throw RawError(reply.error, to_string(opcode) + " " + path + ": error " + std::to_string(reply.error));
    }
    return reply.body;
}

std::string must(const RawClient::Reply& reply, Opcode opcode, const std::string& path) {
    auto body = body_of(reply, opcode, path);
    if (!body) {
        throw RawError(reply.error, to_string(opcode) + " " + path + ": no such node");
    }
    return *std::move(body);
}

}  // namespace

std::optional<Stat> RawClient::exists(const std::string& path, bool watch) {
    const auto body = body_of(request(Opcode::exists, path_watch_body(path, watch)), Opcode::exists, path);
    if (!body) {
        return std::nullopt;
    }
    wire::Reader reader(*body);
    return wire::read_stat(reader);
}

std::optional<RawClient::Node> RawClient::get(const std::string& path, bool watch) {
    const auto body = body_of(request(Opcode::get_data, path_watch_body(path, watch)), Opcode::get_data, path);
    if (!body) {
        return std::nullopt;
    }
    wire::Reader reader(*body);
    Node node;
    node.data = reader.text().value_or("");
    node.stat = wire::read_stat(reader).value_or(Stat{});
    return node;
}

std::optional<std::vector<std::string>> RawClient::children(const std::string& path, bool watch) {
    const auto body = body_of(request(Opcode::get_children, path_watch_body(path, watch)), Opcode::get_children, path);
    if (!body) {
        return std::nullopt;
    }
    wire::Reader reader(*body);
    std::vector<std::string> names;
    const auto count = reader.int32().value_or(0);
    for (std::int32_t i = 0; i < count && !reader.failed(); ++i) {
        names.push_back(reader.text().value_or(""));
    }
    std::sort(names.begin(), names.end());
    return names;
}

RawClient::Created RawClient::create(const std::string& path, const std::string& data, CreateMode mode) {
    const Opcode opcode = mode == CreateMode::container ? Opcode::create_container : Opcode::create;
    const auto reply = request(opcode, create_body(path, data, static_cast<int>(mode)));
    const std::string body = must(reply, opcode, path);
    return {wire::Reader(body).text().value_or(""), reply.zxid};
}

void RawClient::make_path(const std::string& path) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        try {
            create(path.substr(0, end));
        } catch (const RawError& error) {
            if (error.code() != zk_error::node_exists) {
                throw;
            }
        }
        if (end == std::string::npos) {
            return;
        }
    }
}

bool RawClient::remove(const std::string& path, int version) {
    const auto body = wire::Writer().text(path).int32(version).bytes();
    return body_of(request(Opcode::remove, body), Opcode::remove, path).has_value();
}

void RawClient::remove_tree(const std::string& path) {
    for (const auto& name : children(path).value_or(std::vector<std::string>{})) {
        remove_tree(path + "/" + name);
    }
    (void)remove(path);
}

Stat RawClient::set(const std::string& path, const std::string& data, int version) {
    const auto body = wire::Writer().text(path).text(data).int32(version).bytes();
    const std::string answer = must(request(Opcode::set_data, body), Opcode::set_data, path);
    wire::Reader reader(answer);
    return wire::read_stat(reader).value_or(Stat{});
}

void RawClient::sync(const std::string& path) {
    must(request(Opcode::sync, wire::Writer().text(path).bytes()), Opcode::sync, path);
}

std::optional<RawClient::WatchEvent> RawClient::next_event(milliseconds within) {
    std::unique_lock lock(state_->mutex);
    if (!state_->changed.wait_for(lock, within, [&] { return !state_->events.empty(); })) {
        return std::nullopt;
    }
    auto event = std::move(state_->events.front());
    state_->events.pop_front();
    return event;
}

void RawClient::reconnect() {
    std::unique_lock lock(state_->mutex);
    state_->drop_connection();
    state_->connect(lock);
}

void RawClient::close() {
    try {
        auto answer = state_->send(Opcode::close_session, "", false);
        (void)answer.wait_for(milliseconds(5000));
    } catch (const Error&) {
        // Not connected: the session lives until its timeout, as after a crash.
    }
    abandon();
}

void RawClient::abandon() {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    state_->drop_connection();
}

}  // namespace zkrecipes::testenv
