#include "session/connection/connection.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// What one handle says, under the number by which the state machine knows it.
class Connection::Link final : public ClientEvents {
public:
    Link(Connection& connection, std::uint64_t handle)
        : session_(connection.lock_.self()), connection_(connection), handle_(handle) {}

    void on_status(const ClientStatus& status) override {
        session_->run_internally([&] {
            connection_.port_.on_status(connection_.fsm_.on_status(handle_, status, session_->runtime().now()));
        });
    }
    void on_problem(const std::string& text) override {
        session_->run_internally([&] {
            if (handle_ == connection_.fsm_.handle()) connection_.note_problem(text);
        });
    }
    void on_watch(WatchEventType type, const std::string& path) override {
        session_->run_internally([&] {
            if (handle_ == connection_.fsm_.handle()) connection_.port_.on_watch(type, path);
        });
    }
    void on_auth(Rc rc) override {
        session_->run_internally(
            [&] { connection_.port_.on_auth(connection_.fsm_.on_auth(handle_, rc, session_->runtime().now())); });
    }

private:
    const std::shared_ptr<SessionLock> session_;
    Connection& connection_;
    const std::uint64_t handle_;
};

Connection::Connection(SessionLock& lock, Port& port, SessionOptions options, std::vector<std::string> hosts,
                       std::shared_ptr<ClientFactory> clients)
    : lock_(lock),
      port_(port),
      options_(std::move(options)),
      hosts_(std::move(hosts)),
      clients_(std::move(clients)),
      fsm_({options_.auth_timeout, static_cast<int>(options_.auth.size())}) {}

SessionState Connection::state() const noexcept {
    return lock_.inherited() ? SessionState::closed : state_.load(std::memory_order_acquire);
}

SessionInfo Connection::info() const {
    if (lock_.inherited()) {
        SessionInfo out;
        out.state = SessionState::closed;
        return out;
    }
    const std::lock_guard lock(info_mutex_);
    return info_;
}

void Connection::update_info() {
    const std::lock_guard lock(info_mutex_);
    info_.state = fsm_.state();
    info_.incarnation = fsm_.incarnation().number;
    info_.session_id = fsm_.incarnation().session_id;
    info_.timeout = fsm_.incarnation().timeout;
    info_.server = fsm_.server();
    if (fsm_.linked()) info_.problem.clear();
}

void Connection::note_problem(const std::string& text) {
    const std::lock_guard lock(info_mutex_);
    info_.problem = text;
}

std::optional<Error> Connection::closed_error(const char* operation, const std::string& user_path) const {
    const Error* why = closed_because();
    if (why == nullptr) return std::nullopt;
    const bool by_us = why->errc() == Errc::closed;
    return Error(why->errc(), operation, user_path, by_us ? "make a new Session" : why->what());
}

void Connection::throw_if_closed(const char* operation, const std::string& user_path) {
    lock_.throw_if_inherited(operation, user_path);
    if (state() != SessionState::closed) return;
    std::optional<Error> error;
    lock_.run_locked([&] { error = closed_error(operation, user_path); });
    if (error) throw *std::move(error);
}

void Connection::open_handle(std::uint64_t handle) {
    ClientOptions options;
    options.hosts = hosts_;
    options.timeout = options_.timeout;
    options.logger = lock_.shared_log();
    options.tls = options_.tls;
    options.sasl = options_.sasl;
    client_ = clients_->open(options, std::make_shared<Link>(*this, handle));
}

void Connection::close_handle(const std::string& why) {
    if (!why.empty()) note_problem(why);
    if (!why.empty() && should_log(++replaced_handles_)) {
        lock_.log().warn("session {:#x}: {}; making a new one ({} times)", printable_id(), why, replaced_handles_);
    }
    if (!client_) return;
    const bool last = fsm_.finished();
    // The client keeps itself alive through this closure, and is destroyed where that is: without the session lock.
    client_->close([this, self = lock_.self(), client = client_, last] {
        if (!last) return;
        self->run_internally([this] {
            last_handle_closing_ = false;
            port_.on_last_handle_closed();
        });
    });
    last_handle_closing_ = last;
    client_ = nullptr;  // only now: what could not be closed is closed later
}

void Connection::add_auth() {
    if (!client_) return;
    for (const auto& auth : options_.auth) client_->add_auth(auth);
}

}  // namespace zkrecipes::internal
