#include <zkrecipes/session.hpp>

#include <utility>

#include "session/session_core.hpp"

namespace zkrecipes {

const char* to_string(SessionState state) noexcept {
    switch (state) {
        case SessionState::connecting: return "connecting";
        case SessionState::connected: return "connected";
        case SessionState::suspended: return "suspended";
        case SessionState::lost: return "lost";
        case SessionState::closed: return "closed";
    }
    return "unknown";
}

const char* to_string(LogLevel level) noexcept {
    switch (level) {
        case LogLevel::trace: return "trace";
        case LogLevel::debug: return "debug";
        case LogLevel::info: return "info";
        case LogLevel::warning: return "warning";
        case LogLevel::error: return "error";
    }
    return "unknown";
}

std::vector<Acl> Acl::open() { return {Acl{}}; }
std::vector<Acl> Acl::creator_all() { return {Acl{all, "auth", ""}}; }

Session::Session(SessionOptions options)
    : core_(internal::SessionCore::open(std::move(options), internal::SessionCore::real_environment())) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
    if (this != &other) {
        close();
        core_ = std::move(other.core_);
    }
    return *this;
}
Session::~Session() { close(); }

bool Session::wait_connected(Deadline deadline, std::stop_token stop) {
    internal::check_usable(core_.get(), "Session", "wait_connected");
    const auto keep = core_;
    return keep->wait_connected(deadline, std::move(stop));
}

SessionState Session::state() const noexcept { return core_ ? core_->state() : SessionState::closed; }

SessionInfo Session::info() const {
    if (core_) return core_->info();
    SessionInfo out;
    out.state = SessionState::closed;
    return out;
}

SessionStats Session::stats() const { return core_ && !core_->inherited() ? core_->stats() : SessionStats(); }

std::vector<HoldInfo> Session::holds() const {
    internal::check_usable(core_.get(), "Session", "holds");
    return core_->holds();
}

std::vector<WaitInfo> Session::waits() const {
    internal::check_usable(core_.get(), "Session", "waits");
    return core_->waits();
}

Subscription Session::watch_state(std::function<void(SessionState)> listener) {
    internal::check_usable(core_.get(), "Session", "watch_state");
    return core_->watch_state(std::move(listener));
}

void Session::close() noexcept {
    if (const auto keep = core_) keep->close();
}

}  // namespace zkrecipes
