#include "session/connection/session_fsm.hpp"

#include <algorithm>
#include <utility>

namespace zkrecipes::internal {
namespace {

using Kind = SessionAction::Kind;
using namespace std::chrono_literals;

constexpr Nanoseconds kShortLife = 1s;  // a handle that ends sooner counts as failed: the next one waits
constexpr Nanoseconds kFirstReopenDelay = 50ms;
constexpr Nanoseconds kLongestReopenDelay = 5s;
// How many timeouts after the loss a session is still asked for. Servers that have lost their data, or an older copy of
// it, refuse a client that has seen more than they know, and never say that its session is over.
constexpr int kGivenUpAfter = 3;

SessionAction action(Kind kind, std::uint64_t handle = 0) {
    SessionAction out;
    out.kind = kind;
    out.handle = handle;
    return out;
}

}  // namespace

SessionActions SessionFsm::start() {
    SessionActions out;
    open_next(out);
    return out;
}

void SessionFsm::open_next(SessionActions& out) {
    ++handle_;
    handle_open_ = true;
    link_up_ = usable_ = was_usable_ = false;
    auth_open_ = 0;
    auth_again_ = false;
    up_since_ = Instant::min();
    reopen_at_ = auth_deadline_ = lost_at_ = give_up_at_ = Instant::max();
    out.push_back(action(Kind::open_handle, handle_));
    if (config_.credentials > 0) {
        // Before the connect, so that they are the first thing that the server hears.
        auth_open_ = config_.credentials;
        out.push_back(action(Kind::add_auth, handle_));
    }
}

void SessionFsm::become(SessionState state, SessionActions& out) {
    if (state_ == state || state_ == SessionState::closed) return;
    state_ = state;
    SessionAction change = action(Kind::state_changed);
    change.state = state;
    out.push_back(std::move(change));
}

SessionActions SessionFsm::on_status(std::uint64_t handle, const ClientStatus& status, Instant now) {
    SessionActions out;
    if (handle != handle_ || !handle_open_ || finished_) return out;
    switch (status.state) {
        case ClientState::connecting: link_down(now, out); break;
        case ClientState::connected: link_up(status, now, out); break;
        case ClientState::auth_failed:
            refused(now, "the servers refused the credentials; check SessionOptions::auth and sasl", out);
            break;
        case ClientState::expired: handle_ended(now, out); break;
        case ClientState::dead: handle_ended(now, out, "the client handle broke down"); break;
    }
    return out;
}

void SessionFsm::link_down(Instant now, SessionActions& out) {
    if (!link_up_) return;
    link_up_ = false;
    auth_deadline_ = Instant::max();
    server_.clear();
    if (!usable_) {
        if (session_alive_ && state_ == SessionState::lost) give_up_at_ = now + kGivenUpAfter * incarnation_.timeout;
        return;
    }
    usable_ = false;
    if (closing_) return;
    // The C client pings after T/3 and gives up after 2T/3 of silence: the servers have certainly heard from us no
    // later than now, and we from them no earlier than 2T/3 ago.
    const Nanoseconds timeout = incarnation_.timeout;
    lost_at_ = std::max(last_answer_, now - timeout * 2 / 3) + timeout;
    become(SessionState::suspended, out);
    out.push_back(action(Kind::suspended));
}

void SessionFsm::link_up(const ClientStatus& status, Instant now, SessionActions& out) {
    if (link_up_) link_down(now, out);  // it changed servers without saying so
    // The C client never changes the id of a living handle without an expiry; if one did, what we held would be gone.
    if (session_alive_ && status.session_id != incarnation_.session_id) return handle_ended(now, out);
    link_up_ = true;
    give_up_at_ = Instant::max();
    pending_ = status;
    if (up_since_ == Instant::min()) up_since_ = now;
    last_answer_ = std::max(last_answer_, now);  // the connect response is a sign of life
    if (auth_again_) {
        auth_again_ = false;
        auth_open_ = config_.credentials;
        out.push_back(action(Kind::add_auth, handle_));
    }
    if (auth_open_ == 0) return become_usable(out);
    auth_deadline_ = now + config_.auth_timeout;
}

void SessionFsm::become_usable(SessionActions& out) {
    const bool same = session_alive_;
    usable_ = was_usable_ = true;
    lost_at_ = give_up_at_ = auth_deadline_ = Instant::max();
    server_ = pending_.server;
    if (!same) {
        session_alive_ = true;
        ++incarnation_.number;
        incarnation_.session_id = pending_.session_id;
        incarnation_.by_zookeeper = pending_.by_zookeeper;
    }
    incarnation_.timeout = pending_.timeout;
    if (closing_) {
        out.push_back(action(Kind::link_up));
        return;
    }
    become(SessionState::connected, out);
    SessionAction connected = action(Kind::connected, handle_);
    connected.same_session = same;
    out.push_back(std::move(connected));
}

SessionActions SessionFsm::on_auth(std::uint64_t handle, Rc rc, Instant now) {
    SessionActions out;
    if (handle != handle_ || !handle_open_ || finished_ || auth_open_ == 0) return out;
    if (rc == Rc::auth_failed || meaning(rc) == Meaning::failed) {
        refused(now,
                std::string("the servers refused the credentials (") + to_string(rc) + "); check SessionOptions::auth",
                out);
        return out;
    }
    --auth_open_;
    if (rc != Rc::ok) auth_again_ = true;
    if (auth_open_ == 0 && !auth_again_ && link_up_ && !usable_) become_usable(out);
    return out;
}

SessionActions SessionFsm::on_credentials_demanded(std::uint64_t handle) {
    SessionActions out;
    if (handle != handle_ || !handle_open_ || finished_) return out;
    fail_auth(
        "the servers demand credentials, and accept none of this session; set SessionOptions::auth or sasl as the "
        "servers' enforce.auth.schemes or sessionRequireClientSASLAuth asks",
        out);
    return out;
}

SessionActions SessionFsm::on_open_failed(std::uint64_t handle, Instant now) {
    SessionActions out;
    if (handle != handle_ || !handle_open_ || finished_) return out;
    handle_open_ = false;
    const int step = std::min(short_lives_++, 10);
    reopen_at_ = now + std::min(kFirstReopenDelay * (1 << step), kLongestReopenDelay);
    if (closing_) {
        auto rest = finish_close();
        out.insert(out.end(), rest.begin(), rest.end());
    }
    return out;
}

void SessionFsm::handle_ended(Instant now, SessionActions& out, std::string trouble) {
    const bool short_life = up_since_ == Instant::min() || now - up_since_ < kShortLife;
    link_up_ = usable_ = false;
    server_.clear();
    if (closing_) {
        auto rest = finish_close();
        out.insert(out.end(), rest.begin(), rest.end());
        return;
    }
    const bool had_session = std::exchange(session_alive_, false);
    if (had_session) {
        out.push_back(action(Kind::session_over));
        become(SessionState::lost, out);
    }
    out.push_back(action(Kind::close_handle, handle_));
    out.back().detail = std::move(trouble);
    handle_open_ = false;
    lost_at_ = give_up_at_ = auth_deadline_ = Instant::max();
    if (!short_life) short_lives_ = 0;
    // After one expiry the next session is asked for at once. Handles that end one after the other are a disturbance
    // that must not be fed.
    if (short_lives_ == 0 && had_session) {
        short_lives_ = short_life ? 1 : 0;
        open_next(out);
        return;
    }
    const int step = std::min(short_lives_++, 10);
    reopen_at_ = now + std::min(kFirstReopenDelay * (1 << step), kLongestReopenDelay);
}

/// Final only before the handle was usable. Later, the C client may say the same though nobody refused anything: when
/// its counter of requests reaches the number that it reserves for credentials, it takes an answer for a refusal. If
/// the servers do refuse, they refuse those of the next handle, too.
void SessionFsm::refused(Instant now, std::string detail, SessionActions& out) {
    if (!was_usable_ || closing_) return fail_auth(std::move(detail), out);
    handle_ended(now, out, "the client takes credentials that the servers had accepted for refused");
}

void SessionFsm::fail_auth(std::string detail, SessionActions& out) {
    if (!closing_) {
        auto rest = close(Errc::auth_failed, std::move(detail));
        out.insert(out.end(), rest.begin(), rest.end());
    }
    auto rest = finish_close();
    out.insert(out.end(), rest.begin(), rest.end());
}

void SessionFsm::on_answer(std::uint64_t handle, Instant now) noexcept {
    if (handle == handle_ && now > last_answer_) last_answer_ = now;
}

SessionActions SessionFsm::on_time(Instant now) {
    SessionActions out;
    if (finished_) return out;
    if (now >= lost_at_) {
        // By our own clock the servers may have ended the session. The handle goes on: if it was not ended, the same
        // session comes back.
        lost_at_ = Instant::max();
        give_up_at_ = link_up_ ? Instant::max() : now + kGivenUpAfter * incarnation_.timeout;
        become(SessionState::lost, out);
    }
    if (now >= give_up_at_) {
        handle_ended(now, out, "no server has taken the session back for long");
        return out;
    }
    if (now >= auth_deadline_) {
        // Silence is no refusal. The next handle tries another server, as the client tries them in random order.
        handle_ended(now, out,
                     pending_.server + " did not check the credentials within SessionOptions::auth_timeout (" +
                         std::to_string(config_.auth_timeout.count()) + " ms)");
        return out;
    }
    if (now >= reopen_at_) open_next(out);
    return out;
}

SessionActions SessionFsm::close(Errc errc, std::string detail) {
    SessionActions out;
    if (closing_) return out;
    closing_ = true;
    lost_at_ = give_up_at_ = reopen_at_ = auth_deadline_ = Instant::max();
    become(SessionState::closed, out);
    SessionAction closed = action(Kind::closed);
    closed.errc = errc;
    closed.detail = std::move(detail);
    out.push_back(std::move(closed));
    return out;
}

SessionActions SessionFsm::finish_close() {
    SessionActions out;
    if (finished_) return out;
    finished_ = true;
    link_up_ = usable_ = false;
    lost_at_ = give_up_at_ = reopen_at_ = auth_deadline_ = Instant::max();
    if (std::exchange(session_alive_, false)) out.push_back(action(Kind::session_over));
    if (std::exchange(handle_open_, false)) out.push_back(action(Kind::close_handle, handle_));
    return out;
}

Instant SessionFsm::wake_at() const noexcept { return std::min({lost_at_, give_up_at_, auth_deadline_, reopen_at_}); }

}  // namespace zkrecipes::internal
