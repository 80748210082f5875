#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <zkrecipes/testenv/error.hpp>
#include <zkrecipes/testenv/protocol.hpp>

namespace zkrecipes::testenv {

/// The server answered with an error; code() is ZooKeeper's number (zk_error).
class RawError : public Error {
public:
    /// `code` is ZooKeeper's number.
    RawError(int code, const std::string& what) : Error(what), code_(code) {}
    [[nodiscard]] int code() const { return code_; }  ///< ZooKeeper's number

private:
    int code_;
};

/// Options of a RawClient.
struct RawClientOptions {
    std::chrono::milliseconds session_timeout{10'000};  ///< what it asks for
    std::chrono::milliseconds connect_within{30'000};   ///< for the constructor and for each new connection
    std::chrono::milliseconds answer_within{30'000};    ///< for each call
    /// A request on a broken connection first opens a new one for the same session. Watches are not set again.
    bool reconnect = true;
    std::int64_t session_id = 0;  ///< take over this session
    std::string password;         ///< of that session
};

/// How a node is created.
enum class CreateMode {
    persistent = 0,
    ephemeral = 1,
    persistent_sequential = 2,
    ephemeral_sequential = 3,
    container = 4
};

/// A small ZooKeeper client that shares no code with the library under test: an independent observer with its own
/// session. It implements the protocol itself. Each call waits for its answer; a background thread reads and pings.
/// Several threads may use it. An answer with an error throws RawError, except where a missing node is a valid answer.
class RawClient {
public:
    /// A node as get() finds it.
    struct Node {
        std::string data;  ///< of the node
        Stat stat;         ///< of the node
    };
    /// A node that create() has made.
    struct Created {
        std::string path;        ///< the created path, with the number of a sequential node
        std::int64_t czxid = 0;  ///< of the node
    };
    /// The answer to a request.
    struct Reply {
        int error = 0;          ///< ZooKeeper's number (zk_error)
        std::int64_t zxid = 0;  ///< from the header
        std::string body;       ///< what follows the header
    };
    /// What a watch reports.
    struct WatchEvent {
        int type = 0;      ///< 1 created, 2 deleted, 3 changed, 4 children
        std::string path;  ///< of the node
    };

    /// Connects, and waits until it has a session. Throws Error.
    explicit RawClient(const std::string& connect_string, RawClientOptions options = {});
    RawClient(RawClient&&) noexcept;
    RawClient& operator=(RawClient&&) noexcept;
    /// Closes the session if possible.
    ~RawClient();

    /// With these two, another client can take over the session.
    [[nodiscard]] std::int64_t session_id() const;
    [[nodiscard]] std::string password() const;
    [[nodiscard]] std::chrono::milliseconds session_timeout() const;  ///< as granted
    [[nodiscard]] bool connected() const;                             ///< whether the connection is open

    /// ZooKeeper's requests of these names. Empty: there is no such node.
    [[nodiscard]] std::optional<Stat> exists(const std::string& path, bool watch = false);
    [[nodiscard]] std::optional<Node> get(const std::string& path, bool watch = false);
    [[nodiscard]] std::optional<std::vector<std::string>> children(const std::string& path, bool watch = false);
    /// The parent must exist.
    Created create(const std::string& path, const std::string& data = "", CreateMode mode = CreateMode::persistent);
    /// Creates the node and its ancestors if they are missing.
    void make_path(const std::string& path);
    /// False if there is no such node.
    bool remove(const std::string& path, int version = -1);
    void remove_tree(const std::string& path);
    Stat set(const std::string& path, const std::string& data, int version = -1);
    void sync(const std::string& path);
    [[nodiscard]] std::optional<WatchEvent> next_event(
        std::chrono::milliseconds within = std::chrono::milliseconds(30'000));

    /// Sends any request, with its body as on the wire. The answer may be an error. Throws if the connection is lost
    /// (zk_error::connection_loss).
    Reply request(Opcode opcode, const std::string& body = {});
    /// The same without waiting. A lost connection is an answer with the error zk_error::connection_loss; the request
    /// may have been executed.
    [[nodiscard]] std::future<Reply> send(Opcode opcode, const std::string& body = {});
    /// Bodies of requests for request() and send().
    [[nodiscard]] static std::string create_body(const std::string& path, const std::string& data, int flags);
    [[nodiscard]] static std::string path_watch_body(const std::string& path, bool watch);

    /// Opens a new connection for the same session. Throws RawError session_expired if the session has ended.
    void reconnect();
    void close();    ///< Ends the session. No effect if it has ended or the server does not answer.
    void abandon();  ///< Drops the connection silently: the session lives until its timeout.

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace zkrecipes::testenv
