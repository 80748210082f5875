#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <zkrecipes/testenv/protocol.hpp>

namespace zkrecipes::testenv {

/// A message that passed a gate, or the start or end of a connection.
struct Record {
    /// What passed, or happened to the connection.
    enum class Kind { connected, request, reply, event, disconnected };

    Kind kind = Kind::request;      ///< what it is
    Opcode opcode{};                ///< of a reply: what it answers; `connect` for the handshake
    std::string path;               ///< of a reply: its request's; of a multi: its first part's
    std::vector<SubRequest> parts;  ///< of a multi
    std::int32_t flags = 0;         ///< of a create: its flags; of an event: its type
    std::int64_t session = 0;       ///< 0 before the handshake was answered
    std::uint64_t connection = 0;   ///< counted from 1
    std::int32_t xid = 0;           ///< of a request, and of its reply
    std::int64_t zxid = 0;          ///< of a reply
    int error = 0;                  ///< of a reply
    std::size_t bytes = 0;          ///< of a request after the handshake: its size on the wire
    std::size_t data_bytes = 0;     ///< of a request that creates or sets nodes: how many of `bytes` are their data
    bool forwarded = true;          ///< false: a fault kept it from its receiver
    /// For requests the time when the gate read it; for replies and events the time when the gate forwarded it.
    std::chrono::steady_clock::time_point time;
};

/// "create /a/b xid 7 session 0x1…", for test output.
[[nodiscard]] std::string to_string(const Record& record);
[[nodiscard]] std::string to_string(const std::vector<Record>& trace);

/// The number of requests at a gate, by opcode. Requests that a fault kept from the server count as well, since the
/// client sent them.
class Counts {
public:
    /// The requests of one type.
    [[nodiscard]] std::uint64_t operator[](Opcode opcode) const;
    /// All requests except pings and the handshake.
    [[nodiscard]] std::uint64_t total() const;
    /// Requests that change the tree.
    [[nodiscard]] std::uint64_t writes() const;
    /// All requests that change nothing, except pings and the handshake.
    [[nodiscard]] std::uint64_t reads() const { return total() - writes(); }
    [[nodiscard]] std::uint64_t pings() const { return (*this)[Opcode::ping]; }
    void add(Opcode opcode) { ++by_opcode_[opcode]; }
    [[nodiscard]] const std::map<Opcode, std::uint64_t>& by_opcode() const { return by_opcode_; }

private:
    std::map<Opcode, std::uint64_t> by_opcode_;
};
/// "create 1, get_children2 1".
[[nodiscard]] std::string to_string(const Counts& counts);

/// The requests of a trace.
[[nodiscard]] Counts count(const std::vector<Record>& trace);

/// The number of round trips of a session, that is how often it waited for an answer before it sent more. A request
/// belongs to the round trip after the latest one whose reply or event was forwarded before the request arrived. Pings,
/// reads of the root and the handshake do not count. First set a delay towards the client: otherwise a quick reply can
/// arrive before the second of two requests that were sent back to back, which would then look like two round trips.
[[nodiscard]] int round_trips(const std::vector<Record>& trace, std::int64_t session);

}  // namespace zkrecipes::testenv
