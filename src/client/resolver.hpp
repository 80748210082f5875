#pragma once

#include <string>
#include <vector>

#include "base/connect_string.hpp"

namespace zkrecipes::internal {

/// Turns the servers into "address:port" (IPv6 in brackets), without duplicates, in order; the addresses of one name
/// are sorted. Blocks when a name must be looked up. Names that cannot be resolved are left out; `problem` then says
/// which and why.
std::vector<std::string> resolve_servers(const std::vector<HostPort>& servers, std::string& problem);

/// The addresses that the C client accepts on this machine. An IPv4 address that it refuses is written as an IPv6
/// address
/// (::ffff:127.0.0.1); the kernel connects to the same server. An IPv6 address that it refuses is left out.
std::vector<std::string> for_c_client(const std::vector<std::string>& addresses);

/// Throws as parse_connect_string.
std::vector<HostPort> parse_servers(const std::vector<std::string>& hosts);
bool needs_lookup(const std::vector<HostPort>& servers);
/// "a,b,c", as the C client reads it: the last colon begins the port, and IPv6 has no brackets.
std::string joined(const std::vector<std::string>& addresses);

}  // namespace zkrecipes::internal
