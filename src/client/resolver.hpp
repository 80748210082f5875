#pragma once

#include <string>
#include <vector>

#include "base/connect_string.hpp"

namespace zkrecipes::internal {

/// Turns the servers into "address:port" (IPv6 in brackets), without duplicates, in order. Blocks when a name must be
/// looked up. Names that cannot be resolved are left out; `problem` then says which and why.
std::vector<std::string> resolve_servers(const std::vector<HostPort>& servers, std::string& problem);

/// Throws as parse_connect_string.
std::vector<HostPort> parse_servers(const std::vector<std::string>& hosts);
bool needs_lookup(const std::vector<HostPort>& servers);
/// "a,b,c", as the C client reads it: the last colon begins the port, and IPv6 has no brackets.
std::string joined(const std::vector<std::string>& addresses);

}  // namespace zkrecipes::internal
