#pragma once

#include <chrono>
#include <cstdint>

namespace zkrecipes::internal {

/// One life of the ZooKeeper session: from the first connect of a handle to its expiry or close.
struct Incarnation {
    std::uint64_t number = 0;  // 1 for the first; 0: none yet
    std::int64_t session_id = 0;
    std::chrono::milliseconds timeout{0};  // as negotiated by the latest connect
};

/// Session ids are written as the servers write them: unsigned, by {:#x}.
inline std::uint64_t printable(std::int64_t session_id) { return static_cast<std::uint64_t>(session_id); }

/// ZooKeeper puts the number of the server that made the session, 1 to 255, into the first byte of its id. ClickHouse
/// Keeper counts its sessions from 1. Where false, the library takes no shortcut that rests on more than the protocol
/// says (docs/guarantees.md#clickhouse-keeper). A ZooKeeper server with the number 0 loses nothing but the shortcuts.
inline bool made_by_zookeeper(std::int64_t session_id) { return printable(session_id) >> 56U != 0; }

}  // namespace zkrecipes::internal
