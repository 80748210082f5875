#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

#include "client/client.hpp"
#include "session/common/incarnation.hpp"
#include "session/common/session_lock.hpp"
#include "session/connection/session_fsm.hpp"

namespace zkrecipes::internal {

/// The client handle of a session, which state the session is in, and why it is closed.
///
/// What the handle says goes to the state machine; what that wants done goes to `Port`, which knows the other parts of
/// the session, too.
class Connection {
public:
    /// Called under the session lock.
    class Port {
    public:
        virtual ~Port() = default;
        virtual void on_status(const SessionActions& actions) = 0;
        virtual void on_auth(const SessionActions& actions) = 0;
        virtual void on_watch(WatchEventType type, const std::string& path) = 0;  // of the present handle
        virtual void on_last_handle_closed() = 0;
    };
    Connection(SessionLock& lock, Port& port, SessionOptions options, std::vector<std::string> hosts,
               std::shared_ptr<ClientFactory> clients);

    // ---- anywhere --------------------------------------------------------------------------------------------------
    const SessionOptions& options() const noexcept { return options_; }
    SessionState state() const noexcept;  // lock-free
    SessionInfo info() const;
    void throw_if_closed(const char* operation, const std::string& user_path);

    // ---- lock held -------------------------------------------------------------------------------------------------
    bool connected() const { return fsm_.usable() && client_ != nullptr; }
    const Incarnation& incarnation() const { return fsm_.incarnation(); }
    const Error* closed_because() const { return closed_because_ ? &*closed_because_ : nullptr; }  // null: not closed
    /// What a call that comes too late is told: auth_failed where that closed the session. Empty: it is not closed.
    std::optional<Error> closed_error(const char* operation, const std::string& user_path) const;

    // ---- lock held, for the other parts of the session ------------------------------------------------------------
    SessionFsm& fsm() { return fsm_; }
    const SessionFsm& fsm() const { return fsm_; }
    Client* client() const { return client_.get(); }  // null: none
    const std::vector<std::string>& hosts() const { return hosts_; }
    /// Session ids are written by {:#x}.
    std::uint64_t printable_id() const { return printable(fsm_.incarnation().session_id); }
    void open_handle(std::uint64_t handle);
    void close_handle(const std::string& why);
    bool last_handle_closing() const { return last_handle_closing_; }
    void add_auth();
    void came_up() { replaced_handles_ = 0; }
    /// Why no server is connected: see SessionInfo::problem.
    void note_problem(const std::string& text);
    /// What info() answers from now on.
    void update_info();
    void show(SessionState state) { state_.store(state, std::memory_order_release); }
    /// Nobody is served any more. False: that was so before.
    bool stop_serving() noexcept { return !std::exchange(closing_, true); }
    bool closing() const noexcept { return closing_; }
    /// Once.
    void close_because(Error&& why) { closed_because_.emplace(std::move(why)); }

private:
    class Link;

    SessionLock& lock_;
    Port& port_;
    const SessionOptions options_;
    const std::vector<std::string> hosts_;
    const std::shared_ptr<ClientFactory> clients_;
    SessionFsm fsm_;
    std::shared_ptr<Client> client_;
    std::atomic<SessionState> state_{SessionState::connecting};
    mutable std::mutex info_mutex_;  // guards info_
    SessionInfo info_;
    std::optional<Error> closed_because_;  // set once
    bool closing_ = false;
    bool last_handle_closing_ = false;
    std::uint64_t replaced_handles_ = 0;  // since the last connect
};

}  // namespace zkrecipes::internal
