#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/encryption.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/retry_policy.hpp>

namespace spdlog {
class logger;
}

namespace zkrecipes {

class SessionEvents;

/// One entry of an access list.
struct ZKRECIPES_API Acl {
    /// ZooKeeper's rights on a node. `create` and `remove` are the rights to create and delete its children, `admin`
    /// is the right to change its access list.
    static constexpr int read = 1, write = 2, create = 4, remove = 8, admin = 16, all = 31;

    int permissions = all;         ///< the sum of the rights
    std::string scheme = "world";  ///< world, auth, digest, ip, sasl, x509, or another that the servers know
    std::string id = "anyone";     ///< for digest: user:hash

    static std::vector<Acl> open();         ///< anyone may do anything
    static std::vector<Acl> creator_all();  ///< only the authenticated user of this session

    bool operator==(const Acl&) const = default;
};

/// Credentials that the session presents whenever it connects.
struct Auth {
    std::string scheme = "digest";  ///< digest, or another one that the servers know
    std::string credential;         ///< for digest: user:password (sent unencrypted)
};

/// How important a line of the log is.
enum class LogLevel { trace, debug, info, warning, error };
ZKRECIPES_API const char* to_string(LogLevel level) noexcept;

/// Options of a Session.
struct SessionOptions {
    /// The servers: "host:port,host:port". IPv6 addresses stand in brackets; the default port is 2181. A path may
    /// follow the last server, as in "a:2181,b:2181/app"; it is put before every path. A path after another
    /// server is refused with Error bad_connect_string. If the path contains a comma, semicolon, colon, | or blank, use
    /// `path_prefix`.
    std::string hosts{};
    /// From 100 ms to 24 h. The servers may choose another value; see Session::info().
    std::chrono::milliseconds timeout{10'000};
    /// Put before every path, behind that of `hosts`; the node is made if it is missing. Empty, or an absolute path.
    std::string path_prefix{};
    RetryPolicy retry{};
    /// For every node that the session makes, parents included.
    std::vector<Acl> acl = Acl::open();
    std::vector<Auth> auth{};
    /// How long a server may take to accept `auth`. If it is silent for longer, the session tries another server.
    std::chrono::milliseconds auth_timeout{5'000};
    /// If set, all connections of the session use TLS. See TlsOptions.
    std::optional<TlsOptions> tls{};
    /// If set, the session authenticates by SASL. See SaslOptions.
    std::optional<SaslOptions> sasl{};
    /// The servers' tickTime; twice that, if the client may connect to an observer with observerMasterPort. The
    /// negotiated timeout must be at least two ticks, or four with such an observer. If it is shorter, choose a longer
    /// timeout, or state the tick here. Zero means unknown: the library then assumes half of the negotiated timeout,
    /// or a longer tick that a server tells (docs/session.md). The true value makes leases a little longer, and may
    /// halve the number of heartbeats. A longer value than needed is safe, but shortens the lease; from 1.15 times the
    /// timeout on, almost no hold can begin. If the value is too small, held() may be true although another client
    /// holds the lock.
    std::chrono::milliseconds server_tick{0};
    /// How long close() may take. The destructor may take up to one second more.
    std::chrono::milliseconds close_timeout{3'000};
    /// Where log lines go. Null: the logger registered with spdlog as "zkrecipes", or standard error if there is none.
    /// Most lines are written while a mutex of the session is locked. So a sink must not call the library. A sink that
    /// blocks delays the heartbeats; if it blocks for too long, holds are lost. If it throws, only the line is lost.
    std::shared_ptr<spdlog::logger> logger{};
    /// Gets the log lines of all levels in place of `logger`, one at a time, for programs without spdlog. The rules
    /// for a sink of `logger` apply to it, too. Not together with `logger`.
    std::function<void(LogLevel level, const std::string& line)> log{};
    /// Its functions are called when something happens in the session. May be null.
    std::shared_ptr<SessionEvents> events{};
    /// The name under which Session::stats() counts a lock with this path, for example the path without the parts that
    /// differ from lock to lock. Called when a recipe object is made, on the caller's thread; if it throws, the
    /// constructor of the recipe throws the same exception. Empty: all locks of a recipe are counted together. See
    /// LockStats.
    std::function<std::string(const std::string& path)> name_of_path{};
};

}  // namespace zkrecipes
