#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <zkrecipes/testenv/protocol.hpp>

namespace zkrecipes::testenv {

/// One message that a gate saw, or a connection that came or went.
struct Record {
    enum class Kind { connected, request, reply, event, disconnected };

    Kind kind = Kind::request;
    Opcode opcode{};                ///< of a reply: what it answers; `connect` for the handshake
    std::string path;               ///< of a reply: its request's; of a multi: its first part's
    std::vector<SubRequest> parts;  ///< of a multi
    std::int32_t flags = 0;         ///< of a create: its flags; of an event: its type
    std::int64_t session = 0;       ///< 0 before the handshake was answered
    std::uint64_t connection = 0;   ///< counted from 1
    std::int32_t xid = 0;
    std::int64_t zxid = 0;  ///< of a reply
    int error = 0;          ///< of a reply
    bool forwarded = true;  ///< false: a fault kept it from its receiver
    /// Requests: when the gate read it. Replies and events: when the gate handed them on.
    std::chrono::steady_clock::time_point time;
};

/// "create /a/b xid 7 session 0x1…", for test output.
[[nodiscard]] std::string to_string(const Record& record);
[[nodiscard]] std::string to_string(const std::vector<Record>& trace);

/// How many requests a gate saw, by opcode. Requests that a fault kept from the server count as well: the client sent
/// them.
class Counts {
public:
    [[nodiscard]] std::uint64_t operator[](Opcode opcode) const;
    /// All requests but pings and the handshake.
    [[nodiscard]] std::uint64_t total() const;
    /// Requests that change the tree.
    [[nodiscard]] std::uint64_t writes() const;
    /// All requests that change nothing, but pings and the handshake.
    [[nodiscard]] std::uint64_t reads() const { return total() - writes(); }
    [[nodiscard]] std::uint64_t pings() const { return (*this)[Opcode::ping]; }
    void add(Opcode opcode) { ++by_opcode_[opcode]; }
    [[nodiscard]] const std::map<Opcode, std::uint64_t>& by_opcode() const { return by_opcode_; }

private:
    std::map<Opcode, std::uint64_t> by_opcode_;
};
/// "create 1, get_children2 1".
[[nodiscard]] std::string to_string(const Counts& counts);

[[nodiscard]] Counts count(const std::vector<Record>& trace);

/// How often a session waited for an answer before it sent more: a request belongs to the round trip after the latest
/// one whose reply (or whose event) had been handed on before the request was seen. Pings, reads of the root and the
/// handshake do not count. Give the gate a delay towards the client first: without one, a quick server's reply can
/// overtake the second of two requests that were sent back to back, which would then look like two round trips.
[[nodiscard]] int round_trips(const std::vector<Record>& trace, std::int64_t session);

}  // namespace zkrecipes::testenv
