#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/client.hpp"

namespace zkrecipes::internal {

/// The largest request that is sent. The servers' own limit is 1,048,575 bytes unless an administrator changed it.
inline constexpr std::size_t kMaxRequestBytes = 900'000;

/// What it takes on the wire, not less.
std::size_t request_wire_bytes(const std::string& path, const std::string& data, const std::vector<Acl>& acl);
std::size_t multi_wire_bytes(const std::vector<MultiOp>& ops);

}  // namespace zkrecipes::internal
