#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/grant.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

/// The library zkrecipes::testing: for unit tests of code that uses zkrecipes. docs/unit_testing.md shows how. The
/// namespace has another name than GoogleTest's, so that `using namespace zkrecipes` does not make `testing` ambiguous.
namespace zkrecipes::testkit {

namespace internal {
struct FaultState;
}

/// The clock of a FakeServer and of its sessions.
enum class Time {
    real,   ///< the clock of this machine
    manual  ///< a clock that stands still until FakeServer::advance()
};

/// Selects the request of a session for a fault: Match::create().path("lock-").nth(2)
class ZKRECIPES_API Match {
public:
    static Match any();                 ///< Any request, but the heartbeats and pings that a session sends by itself.
    static Match create();              ///< Any request that makes a node.
    static Match remove();              ///< Any request that deletes a node.
    static Match set();                 ///< Any request that writes the data of a node.
    static Match read();                ///< Of the data or the children of a node, or whether it exists.
    Match& path(std::string part);      ///< The node's path contains this. In a transaction: that of some part.
    Match& path_is(std::string whole);  ///< The node's path is this. In a transaction: that of some part.
    Match& session(const Session& session);  ///< Only requests of this session. It must not have been moved from.
    Match& nth(int n);                       ///< The n-th request from now that matches the rest. Default: the first.

private:
    friend struct internal::FaultState;
    unsigned kinds_ = 0;
    std::string part_, whole_;
    const void* session_ = nullptr;
    int nth_ = 1;
};

/// What ZooKeeper can answer to a request that it refuses. The values are ZooKeeper's.
enum class Refusal : int {
    no_node = -101,         ///< there is no such node
    no_auth = -102,         ///< the access list does not allow it
    bad_version = -103,     ///< the data have another version
    node_exists = -110,     ///< there is such a node already
    not_empty = -111,       ///< the node has children
    quota_exceeded = -125,  ///< a quota of the servers does not allow it
    throttled = -127        ///< the server is overloaded
};

/// A fault for one request. Copies refer to the same fault, which stays set up after all copies are destroyed.
class ZKRECIPES_API Fault {
public:
    bool reached() const;  ///< Whether the request has come and was hit. Does not block.
    /// Blocks until the request was hit. Returns false if that takes longer, by the real clock.
    bool wait_reached(std::chrono::milliseconds within = std::chrono::milliseconds(30'000)) const;
    void cancel() const;  ///< Removes a fault that was not reached. Does not block.

private:
    friend class FakeServer;
    explicit Fault(std::shared_ptr<internal::FaultState> state) : state_(std::move(state)) {}
    std::shared_ptr<internal::FaultState> state_;
};

/// A ZooKeeper server in the memory of this process: no port, no JVM. Sessions of it are the real library.
///
/// Any thread may call any function, except from a retry policy or a log sink (std::logic_error). Each function waits
/// until the sessions have dealt with what it has done: when expire() has returned, the grants are lost and their
/// callbacks have run. A callback of yours that takes longer than a second is not waited for; nor, with real time, are
/// sessions that your threads keep busy for so long. A function that is called from a callback does not wait. Your own
/// threads, which such an event wakes, are not waited for: use await().
///
/// Destroy the sessions first. A session that is left has no server any more.
class ZKRECIPES_API FakeServer {
public:
    /// Starts one thread. Throws std::system_error if the system refuses it.
    explicit FakeServer(Time time = Time::real);
    ~FakeServer();
    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;

    /// A session with this server, connected unless the server is cut off. Of `hosts` only a path at the end counts.
    /// The server grants timeouts from 200 ms to 24 h. Throws as the constructor of Session does.
    Session session(SessionOptions options = {});

    /// Manual time: moves the clock, and runs all that becomes due until then, each at its time. Durations that you
    /// give to the library count by this clock from the call on; a Deadline that you keep does not follow it. Throws
    /// std::logic_error with real time, or if called from a callback.
    void advance(std::chrono::nanoseconds by);

    /// The server ends the session, as after a long silence. The Session object makes a new one. If the session is cut
    /// off, it learns of its end after heal(). Nothing happens if it is a session of another server.
    void expire(const Session& session);
    /// Deletes the node of the hold, as an operator would, and has the session check its holds: the hold is lost. If
    /// the session is cut off, that comes after heal(). Nothing happens if the grant is empty or of another server.
    void lose(const Grant& grant);
    /// Breaks the connections of all sessions, or of one. No session, or not this one, can connect before heal().
    void cut();
    void cut(const Session& session);
    void heal();  ///< Undoes every cut. The sessions connect again at once.

    /// The request is not executed, and its connection breaks. The session connects again at once.
    Fault cut_before(const Match& request);
    /// The request is executed, its answer is lost, and its connection breaks.
    Fault cut_after(const Match& request);
    /// The request is not executed, and is answered with this.
    Fault refuse(const Match& request, Refusal with);

    /// Whether the server demands the right READ for `exists` too, as ZooKeeper 3.8.4, 3.9.2 and later do. A new server
    /// does.
    void exists_needs_read(bool yes);

    // The nodes. Paths are those that the server sees: with SessionOptions::path_prefix. What is refused, such as
    // deleting a node with children, does nothing.
    bool exists(const std::string& path) const;                          ///< Whether there is such a node.
    std::optional<std::string> data(const std::string& path) const;      ///< Empty: there is no such node.
    std::vector<std::string> children(const std::string& path) const;    ///< Names, sorted. Empty without the node.
    void write(const std::string& path, const std::string& data) const;  ///< Makes the node and its parents if missing.
    void remove(const std::string& path) const;                          ///< Deletes the node.

    /// Blocks until `condition` is true, which it asks whenever a node has changed and every 10 ms, on this thread.
    /// Returns false if that takes longer, by the real clock.
    bool await(const std::function<bool()>& condition,
               std::chrono::milliseconds within = std::chrono::milliseconds(30'000)) const;

private:
    struct State;
    const std::unique_ptr<State> state_;
};

}  // namespace zkrecipes::testkit
