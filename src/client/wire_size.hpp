#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/client.hpp"

namespace zkrecipes::internal {

/// The largest request that is sent. The servers' own limit is 1,048,575 bytes unless an administrator changed it.
inline constexpr std::size_t kMaxRequestBytes = 900'000;

inline constexpr std::size_t kHeaderBytes = 64;  // of a request, and of each part of a multi

/// What it takes on the wire, not less.
inline std::size_t request_wire_bytes(const std::string& path, const std::string& data, const std::vector<Acl>& acl) {
    std::size_t bytes = kHeaderBytes + path.size() + data.size();
    for (const Acl& entry : acl) bytes += 12 + entry.scheme.size() + entry.id.size();
    return bytes;
}
inline std::size_t multi_wire_bytes(const std::vector<MultiOp>& ops) {
    std::size_t bytes = kHeaderBytes;
    for (const MultiOp& op : ops) bytes += request_wire_bytes(op.path, op.data, op.acl);
    return bytes;
}

}  // namespace zkrecipes::internal
