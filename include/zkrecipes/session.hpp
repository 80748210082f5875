#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/session_options.hpp>
#include <zkrecipes/session_stats.hpp>

namespace zkrecipes {

namespace internal {
class SessionCore;
struct SessionAccess;
}  // namespace internal

/// The state of a session, as far as this process knows.
enum class SessionState {
    connecting,  ///< no session yet
    connected,   ///< a server answers
    suspended,   ///< no server answers; the session may still be alive
    lost,        ///< the session is over, or may be over by this machine's clock; a new one is being made
    closed       ///< final: by close(), refused credentials, or an internal error (docs/session.md)
};

/// "connecting", "connected", "suspended", "lost", "closed"
ZKRECIPES_API const char* to_string(SessionState state) noexcept;

/// What a session knows of itself. See Session::info().
struct SessionInfo {
    /// The present state.
    SessionState state = SessionState::connecting;
    std::int64_t session_id = 0;           ///< 0: none yet
    std::chrono::milliseconds timeout{0};  ///< the one that the servers granted; 0: none yet
    std::string server;                    ///< address of the connected server, or empty
    std::uint64_t incarnation = 0;         ///< how many sessions this object has made so far
    std::string problem{};                 ///< not connected: why the last attempt failed, if that is known; or empty
};

/// Ends a subscription when destroyed. When the destructor has returned, the callback is not running and will not run
/// again. The only exception: if the destructor runs inside that callback, the callback runs to its end.
class ZKRECIPES_API Subscription {
public:
    Subscription() noexcept = default;  ///< of nothing
    /// For the library: `cancel` ends the subscription.
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
    /// Ends the subscription as the destructor does.
    void reset() noexcept {
        if (auto cancel = std::exchange(cancel_, nullptr)) cancel();
    }

private:
    std::function<void()> cancel_;
};

/// A ZooKeeper session. If it is lost, the object makes a new one. Any number of recipes may share it.
///
///     zkrecipes::Session session("zk1:2181,zk2:2181,zk3:2181");
///     zkrecipes::Session other({.hosts = "zk1:2181", .timeout = 15s});
///
/// Safe for concurrent use. The constructor does not wait for the connection. Recipes may be used immediately: their
/// calls wait for the connection, within their own deadlines. Recipes and grants may outlive the Session object; they
/// then behave as on a closed session.
///
/// A child made by fork() cannot use the sessions of its parent, nor objects that were made with them: each call throws
/// Error closed, held() is false, and destructors do nothing. The parent is not affected. The child must make a Session
/// of its own. Objects of the library that were moved from behave in the same way.
class ZKRECIPES_API Session {
public:
    /// Does not block. Throws Error: bad_connect_string, bad_option or bad_path for options that cannot work;
    /// unsupported if the ZooKeeper C client lacks what they need; out_of_resources if the system refuses the threads
    /// or descriptors of a session. If it throws, no thread or descriptor is left behind.
    explicit Session(SessionOptions options);
    template <std::convertible_to<std::string> Hosts>  // no std::string: GCC would take {.hosts = …} for one
    explicit Session(Hosts&& hosts) : Session(SessionOptions{.hosts = std::forward<Hosts>(hosts)}) {}
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    /// Calls close(). The last one ends the library's threads, unless a recipe or grant still needs them. If one of
    /// your callbacks or a name lookup is running, waits for it up to one second, in addition to close_timeout.
    ~Session();

    /// Blocks until connected. Returns false if the deadline passes or a stop is requested before. Throws Error:
    /// `closed`, or `auth_failed` with the reason.
    bool wait_connected(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    /// The same without blocking: `done` is called exactly once, on the notifier thread. If the call cannot be started,
    /// throws immediately: closed; bad_option for an empty callback. An exception thrown by the callback is logged.
    void wait_connected_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done);

    SessionState state() const noexcept;  ///< Does not block.
    SessionInfo info() const;             ///< Does not block.

    /// What happened in this session so far, in numbers. Does not block, and may be called anywhere. Zeros for an
    /// object that was moved from.
    SessionStats stats() const;
    /// What is held now, the longest first; a lost hold is not held. Does not wait for servers. Throws Error closed, or
    /// would_deadlock in a retry policy or a log sink.
    std::vector<HoldInfo> holds() const;
    /// The calls that wait for a lock now, the newest first. Does not block. Throws Error closed.
    std::vector<WaitInfo> waits() const;

    /// Calls `listener` on the notifier thread with the present state and then with each change. A slow listener gets
    /// the latest state, but never misses a `lost`. Does not block. Throws Error bad_option for an empty listener.
    [[nodiscard]] Subscription watch_state(std::function<void(SessionState)> listener);

    /// Ends the session: every hold is lost, every waiting call fails with `closed`, and the ephemeral nodes are
    /// deleted. Blocks at most SessionOptions::close_timeout. May be called again.
    void close() noexcept;

private:
    friend struct internal::SessionAccess;
    explicit Session(std::shared_ptr<internal::SessionCore> core) noexcept : core_(std::move(core)) {}
    std::shared_ptr<internal::SessionCore> core_;
};

}  // namespace zkrecipes
