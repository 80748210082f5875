#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include <zkrecipes/testenv/endpoint.hpp>
#include <zkrecipes/testenv/error.hpp>
#include <zkrecipes/testenv/trace.hpp>

namespace zkrecipes::testenv {

/// Which of the two streams of a connection.
enum class Direction { to_server, to_client, both };
/// Which end of a connection.
enum class Side { client, server };

/// Selects the request for a fault: Match::create().path("lock-").nth(2)
class Match {
public:
    static Match any() { return {}; }  ///< Any request.
    /// Exactly this opcode. There may be several for one purpose: the C client's zoo_create2 sends create2, not create.
    static Match op(Opcode opcode);
    /// Any request that creates a node: create, create2, create_container, create_ttl, or a multi with one of them.
    static Match create();
    Match& path(std::string part);            ///< The path (or that of a part of a multi) contains this.
    Match& path_is(std::string whole);        ///< The path (or that of a part of a multi) is this.
    Match& session(std::int64_t session_id);  ///< Of this session only.
    Match& nth(int n);                        ///< The n-th request from now that matches the rest; default: the first.
    /// Called on the gate's thread: it must not block, throw, or call the gate.
    Match& where(std::function<bool(const Record&)> predicate);

    /// For the gate: whether a request has all properties, and the number of nth().
    [[nodiscard]] bool fits(const Record& request) const;
    [[nodiscard]] int nth() const { return nth_; }

private:
    std::vector<std::function<bool(const Record&)>> conditions_;
    int nth_ = 1;
};

namespace internal {
class GateCore;
struct FaultState;
}  // namespace internal

/// A fault for one request. Copies refer to the same fault, which stays set up after all copies are destroyed.
class Fault {
public:
    /// Whether the fault has taken effect: the connection is cut, or the reply is held.
    [[nodiscard]] bool reached() const;
    [[nodiscard]] bool wait_reached(std::chrono::milliseconds within = std::chrono::milliseconds(30'000)) const;
    /// Releases a held reply and everything behind it.
    void release() const;
    /// Drops a held reply and closes its connection.
    void drop() const;
    /// Removes a fault that has not taken effect.
    void cancel() const;
    /// The request that the fault hit.
    [[nodiscard]] Record request() const;

private:
    friend class internal::GateCore;
    friend class Gate;
    explicit Fault(std::shared_ptr<internal::FaultState> state) : state_(std::move(state)) {}
    std::shared_ptr<internal::FaultState> state_;
};

/// Options of a Gate.
struct GateOptions {
    std::string address;     ///< loopback address; empty: a free one
    std::uint16_t port = 0;  ///< 0: the target's
    bool raw = false;        ///< another protocol than ZooKeeper's: nothing is parsed, counted or matched
};

/// A TCP proxy in this process in front of one server. It can behave like a bad network and knows ZooKeeper's protocol.
/// Clients connect to its address instead of the server's. All members may be called from any thread.
///
/// All gates of a process share one thread. One limit: the kernel answers a connection attempt into a black hole, so
/// the attempt succeeds and then gets no data. On a real network it would hang.
class Gate {
public:
    /// Listens, and forwards each connection to `target`. Throws Error.
    explicit Gate(const Endpoint& target, const GateOptions& options = {});
    Gate(Gate&&) noexcept;
    Gate& operator=(Gate&&) noexcept;
    ~Gate();

    /// Where clients connect to.
    [[nodiscard]] const Endpoint& endpoint() const;
    [[nodiscard]] std::string connect_string() const { return endpoint().str(); }

    /// Ends black holes, refusals and delays. Held data arrives now, also the ends of connections, as after a short
    /// interruption on a real network. Faults that have not taken effect stay set up.
    void pass();
    /// Nothing arrives in this direction any more, not even the end of a connection.
    void blackhole(Direction direction = Direction::both);
    /// Resets all connections on both sides. New ones are accepted.
    void reset_all();
    /// Refuses new connections; existing ones stay.
    void refuse();
    /// Delays everything in this direction. Data that is already on its way keeps its delay.
    void delay(Direction direction, std::chrono::milliseconds time);
    /// Resets all connections on this side. The other side gets no notice and no data.
    void half_open(Side told);
    /// The target of new connections.
    void set_target(const Endpoint& target);

    /// The connection is closed before the request is forwarded: it is not executed. Requests before it are.
    Fault cut_before(const Match& match);
    /// The request is forwarded and executed; its reply is dropped and the connection closed. Replies before it arrive.
    Fault cut_after(const Match& match);
    /// Holds the reply and all later replies and events, since their order is part of the protocol. Answers to pings
    /// still pass, so that the client sees a healthy connection.
    Fault hold_reply(const Match& match);

    /// The requests so far: all of them, or those of one session.
    [[nodiscard]] Counts counts() const;
    [[nodiscard]] Counts counts(std::int64_t session_id) const;
    /// The messages that passed so far, in order.
    [[nodiscard]] std::vector<Record> trace() const;
    [[nodiscard]] std::vector<Record> trace(std::int64_t session_id) const;
    /// Clears the trace and the counts.
    void reset_trace();
    /// The trace keeps at most this many records (the newest ones); counts continue. Default: 200,000.
    void limit_trace(std::size_t records);

    /// How many connections are open now.
    [[nodiscard]] int connection_count() const;
    /// Sessions that were opened through this gate, the latest last.
    [[nodiscard]] std::vector<std::int64_t> sessions() const;
    [[nodiscard]] std::string password(std::int64_t session_id) const;  ///< Throws Error for one it has not seen.
    /// Immediately ends a session that was opened through this gate, by expire_session() at the gate's target. Clients
    /// that connect meanwhile wait until it has ended. False: it had already ended.
    bool expire(std::int64_t session_id) const;

private:
    std::shared_ptr<internal::GateCore> core_;
};

}  // namespace zkrecipes::testenv
