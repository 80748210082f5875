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

enum class Direction { to_server, to_client, both };
enum class Side { client, server };

/// Which request a fault is for. Match::create().path("lock-").nth(2)
class Match {
public:
    static Match any() { return {}; }
    /// Exactly this opcode. Clients have several for one purpose: the C client's zoo_create2 sends create2, not create.
    static Match op(Opcode opcode);
    /// Any request that creates a node: create, create2, create_container, create_ttl, or a multi with one of them.
    static Match create();
    Match& path(std::string part);            ///< The path (or that of a part of a multi) contains this.
    Match& path_is(std::string whole);        ///< The path (or that of a part of a multi) is this.
    Match& session(std::int64_t session_id);  ///< Of this session only.
    Match& nth(int n);                        ///< The n-th request that fits all else, from now; default: the first.
    /// Called on the gate's thread: it must not block, throw, or call the gate.
    Match& where(std::function<bool(const Record&)> predicate);

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

/// A fault that was set up for one request. Copies are the same fault; it stays set up when all copies are gone.
class Fault {
public:
    /// The request came and the fault took effect: the connection is cut, or the reply is being held.
    [[nodiscard]] bool reached() const;
    [[nodiscard]] bool wait_reached(std::chrono::milliseconds within = std::chrono::milliseconds(30'000)) const;
    /// Lets a held reply, and what waits behind it, go on.
    void release() const;
    /// Drops a held reply and closes its connection.
    void drop() const;
    /// Takes back a fault that has not been reached.
    void cancel() const;
    /// The request that it hit.
    [[nodiscard]] Record request() const;

private:
    friend class internal::GateCore;
    friend class Gate;
    explicit Fault(std::shared_ptr<internal::FaultState> state) : state_(std::move(state)) {}
    std::shared_ptr<internal::FaultState> state_;
};

struct GateOptions {
    std::string address;     ///< loopback address; empty: a free one
    std::uint16_t port = 0;  ///< 0: the target's
    bool raw = false;        ///< not ZooKeeper's client protocol: nothing is read, counted or matched
};

/// A TCP proxy in front of one server, in this process, that can behave like a bad network and knows ZooKeeper's
/// protocol. Clients are given its address in place of the server's. All members may be called from any thread.
///
/// All gates of a process share one thread. What cannot be imitated in user space: a connection attempt into a black
/// hole is answered by the kernel, so it succeeds and then hears nothing, while on a real network it would hang.
class Gate {
public:
    explicit Gate(const Endpoint& target, const GateOptions& options = {});
    Gate(Gate&&) noexcept;
    Gate& operator=(Gate&&) noexcept;
    ~Gate();

    [[nodiscard]] const Endpoint& endpoint() const;
    [[nodiscard]] std::string connect_string() const { return endpoint().str(); }

    /// The network is well again: no black hole, no refusal, no delay. What was on its way arrives now, also the ends
    /// of connections, as after a short interruption on a real network. Faults that were not reached stay set up.
    void pass();
    /// Nothing arrives in this direction any more, not even that a connection was closed.
    void blackhole(Direction direction = Direction::both);
    /// Resets all connections, on both sides. New ones are welcome.
    void reset_all();
    /// New connections are refused, existing ones stay.
    void refuse();
    /// Everything in this direction takes this much longer. What is on its way already keeps its delay.
    void delay(Direction direction, std::chrono::milliseconds time);
    /// All connections end for this side (a reset), while the other side is told nothing and hears nothing.
    void half_open(Side told);
    /// Where new connections go.
    void set_target(const Endpoint& target);

    /// The connection is closed before the request is forwarded: it is not executed. Requests before it are.
    Fault cut_before(const Match& match);
    /// The request is forwarded and executed; its reply is dropped and the connection closed. Replies before it arrive.
    Fault cut_after(const Match& match);
    /// The reply is held back, and all replies and events behind it, since their order is part of the protocol. Answers
    /// to pings are not, so that the client believes that all is well.
    Fault hold_reply(const Match& match);

    [[nodiscard]] Counts counts() const;
    [[nodiscard]] Counts counts(std::int64_t session_id) const;
    /// What passed so far, in order.
    [[nodiscard]] std::vector<Record> trace() const;
    [[nodiscard]] std::vector<Record> trace(std::int64_t session_id) const;
    /// Forgets the trace and the counts.
    void reset_trace();
    /// The trace keeps at most this many records (the newest); counts go on. Default 200,000.
    void limit_trace(std::size_t records);

    [[nodiscard]] int connection_count() const;
    /// Sessions that were opened through this gate, the latest last.
    [[nodiscard]] std::vector<std::int64_t> sessions() const;
    [[nodiscard]] std::string password(std::int64_t session_id) const;  ///< Throws Error for one it has not seen.
    /// Ends a session that was opened through this gate, at once: expire_session() at the gate's target. Who connects
    /// meanwhile waits until it is over. False: it was over already.
    bool expire(std::int64_t session_id) const;

private:
    std::shared_ptr<internal::GateCore> core_;
};

}  // namespace zkrecipes::testenv
