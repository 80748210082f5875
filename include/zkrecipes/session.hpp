#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

namespace internal {
class SessionCore;
struct SessionAccess;
}  // namespace internal

/// What is known of the session.
enum class SessionState {
    connecting,  ///< no session yet
    connected,   ///< a server answers
    suspended,   ///< no server answers; the session may still be alive
    lost,        ///< the session is over, or by our own clock may be; a new one is being made
    closed       ///< for ever: by close(), or because the servers refused the credentials
};

ZKRECIPES_API const char* to_string(SessionState state) noexcept;

struct SessionInfo {
    SessionState state = SessionState::connecting;
    std::int64_t session_id = 0;           ///< 0: none yet
    std::chrono::milliseconds timeout{0};  ///< as negotiated; 0: none yet
    std::string server;                    ///< address of the server, if connected
    std::uint64_t incarnation = 0;         ///< counts the sessions that this object has had
};

/// Ends a subscription when destroyed. After the destructor returns the callback is not running and will not run,
/// unless the destructor runs inside that callback.
class ZKRECIPES_API Subscription {
public:
    Subscription() noexcept = default;
    explicit Subscription(std::function<void()> cancel) noexcept : cancel_(std::move(cancel)) {}
    Subscription(Subscription&& other) noexcept : cancel_(std::exchange(other.cancel_, nullptr)) {}
    Subscription& operator=(Subscription&& other) noexcept {
        if (this != &other) {
            reset();
            cancel_ = std::exchange(other.cancel_, nullptr);
        }
        return *this;
    }
    ~Subscription() { reset(); }
    void reset() noexcept {
        if (auto cancel = std::exchange(cancel_, nullptr)) cancel();
    }

private:
    std::function<void()> cancel_;
};

/// A ZooKeeper session that is made again when it is lost, shared by any number of recipes.
///
/// Safe for concurrent use. The constructor returns at once and connects behind; recipes may be used at once, they
/// wait for the connection within their own deadlines. Recipes and grants keep what they need alive: they may
/// outlive the Session object and then behave as on a closed session.
///
/// A child made by fork() cannot use the sessions of its parent, nor anything that was made with them: each call throws
/// Error closed, nothing is held there, and destructors do nothing. The parent does not notice. The child makes a
/// Session of its own. An object that was moved from answers in the same way, whatever its class.
class ZKRECIPES_API Session {
public:
    /// Throws Error: bad_connect_string, bad_option or bad_path for options that cannot work; out_of_resources when the
    /// system refuses the threads or descriptors of a session. Nothing is left behind then. Does not block.
    explicit Session(SessionOptions options);
    explicit Session(std::string hosts);
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    /// close(). Ends the session's threads, too, unless a recipe or grant still needs them; when a callback of the user
    /// is running, or a name being looked up, it waits up to one second for that, beyond close_timeout.
    ~Session();

    /// Blocks the fiber or thread until connected. False: the deadline passed, or a stop was requested.
    /// Throws Error: `closed`, or `auth_failed` with the reason.
    bool wait_connected(Deadline deadline = Deadline::never(), std::stop_token stop = {});

    SessionState state() const noexcept;  ///< Does not block.
    SessionInfo info() const;             ///< Does not block.

    /// Calls `listener` on the notifier thread with the present state and then with each change. A listener that
    /// is slow sees the latest state, but a `lost` is never left out.
    [[nodiscard]] Subscription watch_state(std::function<void(SessionState)> listener);

    /// Ends the session: every hold is lost, every waiting call fails with `closed`, our nodes are deleted. Blocks
    /// at most SessionOptions::close_timeout. Idempotent.
    void close() noexcept;

private:
    friend struct internal::SessionAccess;
    explicit Session(std::shared_ptr<internal::SessionCore> core) noexcept : core_(std::move(core)) {}
    std::shared_ptr<internal::SessionCore> core_;
};

}  // namespace zkrecipes
