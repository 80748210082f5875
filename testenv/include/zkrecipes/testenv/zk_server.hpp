#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <zkrecipes/testenv/endpoint.hpp>
#include <zkrecipes/testenv/error.hpp>

namespace zkrecipes::testenv {

/// The configuration of a server. By default it reacts quickly: tick 100 ms, session timeouts from 200 ms to 60 s.
struct ServerOptions {
    std::string name = "server";  ///< of its directory and in messages
    /// ZooKeeper's settings of these names.
    std::chrono::milliseconds tick_time{100};
    std::chrono::milliseconds min_session_timeout{200};
    std::chrono::milliseconds max_session_timeout{60'000};
    int init_limit = 100;  ///< ticks; ensembles only
    int sync_limit = 20;   ///< ticks; ensembles only

    std::map<std::string, std::string> java_properties;  ///< -Dname=value, for example znode.container.checkIntervalMs
    std::vector<std::string> java_flags;                 ///< further JVM flags
    std::vector<std::string> config_lines;               ///< further lines of zoo.cfg
    std::vector<std::string> launcher;     ///< prefix of the java command, for example {"faketime", "-f", "+1h"}
    std::vector<std::string> environment;  ///< "NAME=value"

    std::string address;         ///< loopback address; empty: a free one
    std::uint16_t port = 0;      ///< client port; 0: 2181, or another if a process has taken it on all addresses
    std::uint16_t tls_port = 0;  ///< a port for TLS on the same address; 0: none. The certificates: config_lines
    std::chrono::milliseconds ready_within{120'000};  ///< else the constructor throws

    int id = 0;                             ///< the number of this member of an ensemble
    std::vector<std::string> quorum_lines;  ///< the server.N lines of an ensemble
    bool deferred = false;                  ///< the constructor does not start it
};

/// A real ZooKeeper server in its own process, on its own loopback address, with its data in memory.
///
/// The constructor returns when the server answers. It throws MissingDependency if Java or ZooKeeper is missing, and
/// Error with the end of the server's log if the server does not start. The server never outlives this process, even if
/// the process is killed; its files and its address disappear with it. Not thread-safe, but four_letter() and the
/// getters may be called from any thread.
class ZkServer {
public:
    /// Starts the server, and returns when it serves. Throws Error.
    explicit ZkServer(ServerOptions options = {});
    ZkServer(ZkServer&&) noexcept;
    ZkServer& operator=(ZkServer&&) noexcept;
    ~ZkServer();

    /// Starts the stopped or killed server with the same data and address and waits until it answers. No effect if it
    /// runs.
    void start();
    /// Starts the process without waiting.
    void launch();
    /// Waits until it serves clients.
    void wait_ready();

    void stop();     ///< SIGTERM; the process has ended on return.
    void kill();     ///< SIGKILL; the process has ended on return.
    void freeze();   ///< SIGSTOP; all its threads are stopped on return. Its connections stay open.
    void thaw();     ///< SIGCONT
    void restart();  ///< kill(), then start().
    /// Grants no longer session timeout from the next start on.
    void set_max_session_timeout(std::chrono::milliseconds timeout);
    /// Deletes all nodes and sessions. The server must not be running.
    void wipe_data();

    /// Whether its process exists.
    [[nodiscard]] bool running() const;
    /// Whether it answers clients now. A member of an ensemble then also believes that it belongs to a quorum.
    [[nodiscard]] bool serving() const;
    [[nodiscard]] int pid() const;
    [[nodiscard]] const Endpoint& endpoint() const;
    [[nodiscard]] std::string connect_string() const { return endpoint().str(); }
    [[nodiscard]] const ServerOptions& options() const;

    /// Its answer to "srvr", "wchs", "wchp", "cons", "mntr", "dump" … Throws Error if it does not answer within the
    /// limit.
    [[nodiscard]] std::string four_letter(const std::string& word,
                                          std::chrono::milliseconds within = std::chrono::milliseconds(5000)) const;
    /// "standalone", "leader" or "follower"; empty if it does not serve.
    [[nodiscard]] std::string mode() const;
    /// The number of watches that its clients have set.
    [[nodiscard]] std::int64_t watch_count() const;
    /// The number of client connections with a session.
    [[nodiscard]] int connection_count() const;

    /// Ends a session immediately: a second handle with its id and password (16 bytes) closes it. Its ephemeral nodes
    /// are deleted on return.
    void expire_session(std::int64_t session_id, const std::string& password) const;

    /// Standard output and error of all its runs so far.
    [[nodiscard]] std::string log() const;
    [[nodiscard]] std::string log_tail(int lines = 40) const;
    [[nodiscard]] const std::string& directory() const;
    /// Only claims the address: the members of an ensemble need each other's addresses before any of them starts.
    void set_quorum(int id, std::vector<std::string> lines);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace zkrecipes::testenv
