#pragma once

#include <chrono>
#include <cstdint>

namespace zkrecipes::internal {

/// One life of the ZooKeeper session: from the first connect of a handle to its expiry or close.
struct Incarnation {
    std::uint64_t number = 0;  // 1 for the first; 0: none yet
    std::int64_t session_id = 0;
    std::chrono::milliseconds timeout{0};  // as negotiated by the latest connect
    bool by_zookeeper = true;              // made_by_zookeeper()
};

/// Session ids are written as the servers write them: unsigned, by {:#x}.
inline std::uint64_t printable(std::int64_t session_id) { return static_cast<std::uint64_t>(session_id); }

}  // namespace zkrecipes::internal
