#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/session.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "session/common/incarnation.hpp"

namespace zkrecipes::internal {

/// What the driver of a SessionFsm has to do, in the order given.
struct SessionAction {
    enum class Kind {
        open_handle,    ///< open a new client handle under the number `handle`
        close_handle,   ///< close that handle, because of `detail`, if any; nothing more is expected of it
        add_auth,       ///< present all credentials on that handle (again)
        session_over,   ///< the incarnation has ended: holds, watches, reservations go with it
        state_changed,  ///< tell the listeners `state`
        connected,      ///< requests may be sent from here on; `same_session`
        suspended,      ///< requests may not be sent any more
        link_up,        ///< connected while closing: only what must be cleaned up goes on
        closed          ///< for ever, because of `errc` and `detail`
    };
    Kind kind{};
    std::uint64_t handle = 0;
    SessionState state{};
    bool same_session = false;
    Errc errc{};
    std::string detail{};

    bool operator==(const SessionAction&) const = default;
};
using SessionActions = std::vector<SessionAction>;

/// The life of a session, made again whenever it is lost. Pure: it is told what happened and when, and answers what to
/// do.
///
/// Every event names the handle that it comes from; those of a former handle are ignored, so that a late word about an
/// old session cannot disturb the new one.
class SessionFsm {
public:
    struct Config {
        std::chrono::milliseconds auth_timeout{5'000};
        int credentials = 0;  // how many on_auth answers follow an add_auth
    };

    explicit SessionFsm(Config config) : config_(config) {}

    SessionActions start();
    SessionActions on_status(std::uint64_t handle, const ClientStatus& status, Instant now);
    SessionActions on_auth(std::uint64_t handle, Rc rc, Instant now);
    /// A server refused a request because it demands credentials (Rc::credentials_demanded).
    SessionActions on_credentials_demanded(std::uint64_t handle);
    SessionActions on_open_failed(std::uint64_t handle, Instant now);
    /// A server answered a request.
    void on_answer(std::uint64_t handle, Instant now) noexcept;
    /// To be called at wake_at(), and harmless at any other time.
    SessionActions on_time(Instant now);
    /// First step of closing: no request is sent for the recipes any more, but the handle stays for what must be
    /// cleaned up.
    SessionActions close(Errc errc, std::string detail);
    /// Second step: the handle goes.
    SessionActions finish_close();

    SessionState state() const noexcept { return state_; }
    bool usable() const noexcept { return usable_; }   // requests may be sent
    bool linked() const noexcept { return link_up_; }  // a server answers, whatever it thinks of the credentials
    bool finished() const noexcept { return finished_; }
    std::uint64_t handle() const noexcept { return handle_; }
    const Incarnation& incarnation() const noexcept { return incarnation_; }
    bool has_session() const noexcept { return session_alive_; }
    const std::string& server() const noexcept { return server_; }
    Instant wake_at() const noexcept;

private:
    void open_next(SessionActions& out);
    void become(SessionState state, SessionActions& out);
    void link_down(Instant now, SessionActions& out);
    void link_up(const ClientStatus& status, Instant now, SessionActions& out);
    void become_usable(SessionActions& out);
    void handle_ended(Instant now, SessionActions& out, std::string trouble = "");
    void refused(Instant now, std::string detail, SessionActions& out);
    void fail_auth(std::string detail, SessionActions& out);

    const Config config_;
    SessionState state_ = SessionState::connecting;
    Incarnation incarnation_;
    std::uint64_t handle_ = 0;
    bool handle_open_ = false;
    bool link_up_ = false;        // the handle is connected
    bool usable_ = false;         // and the credentials were accepted
    bool was_usable_ = false;     // since the handle was opened
    bool session_alive_ = false;  // the incarnation has begun and not ended
    bool closing_ = false;
    bool finished_ = false;
    int auth_open_ = 0;        // on_auth answers still to come
    bool auth_again_ = false;  // an answer was lost with the connection: present them again after the next connect
    int short_lives_ = 0;      // handles in a row that ended within a second
    ClientStatus pending_;     // of the connect that waits for the credentials
    std::string server_;
    Instant last_answer_ = Instant::min();
    Instant up_since_ = Instant::min();
    Instant lost_at_ = Instant::max();
    Instant give_up_at_ = Instant::max();
    Instant auth_deadline_ = Instant::max();
    Instant reopen_at_ = Instant::max();
};

}  // namespace zkrecipes::internal
