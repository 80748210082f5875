#pragma once

#include <cstddef>
#include <cstdint>
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
/// The C client tries every second server of its list (ZOOKEEPER-2466): with an even number, the same half again and
/// again. So here one of them, a random one, stands in the list twice. And the C client ignores a list that is as long
/// as the one before, `before`, if that has all its addresses; so then two more stand in it.
std::vector<std::string> in_odd_number(std::vector<std::string> addresses, std::size_t before, std::uint64_t random);

/// "a,b,c", as the C client reads it: the last colon begins the port, and IPv6 has no brackets.
std::string joined(const std::vector<std::string>& addresses);

}  // namespace zkrecipes::internal
