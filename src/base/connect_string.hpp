#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zkrecipes::internal {

struct HostPort {
    std::string host;  // a name or an address; IPv6 without brackets
    std::uint16_t port = 2181;
    bool is_address = false;  // numeric: needs no name resolution

    /// `host:port`, IPv6 in brackets.
    std::string text() const;
    bool operator==(const HostPort&) const = default;
};

struct ConnectString {
    std::vector<HostPort> servers;
    std::string chroot;  // a valid path, or empty; never "/"

    std::vector<std::string> hosts() const;
};

/// Reads "host:port,host:port/chroot"; the chroot has no comma, semicolon, colon, | or blank. Throws Error
/// bad_connect_string, or bad_path for the chroot, saying which entry is wrong and how to write it.
ConnectString parse_connect_string(std::string_view text);
/// Reads one "host:port". Throws as parse_connect_string.
HostPort parse_host_port(std::string_view entry);

}  // namespace zkrecipes::internal
