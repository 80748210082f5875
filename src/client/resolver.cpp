#include "client/resolver.hpp"

#include <netdb.h>

#include <algorithm>
#include <memory>
#include <set>

#include <zkrecipes/error.hpp>

namespace zkrecipes::internal {
namespace {

/// The C client looks up every address with AI_ADDRCONFIG. So it refuses the addresses of a family if the machine has
/// only loopback addresses of this family, and other addresses of the other family.
bool c_client_accepts(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_ADDRCONFIG;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
    ::freeaddrinfo(found);
    return true;
}

}  // namespace

std::vector<std::string> resolve_servers(const std::vector<HostPort>& servers, std::string& problem) {
    std::vector<std::string> addresses;
    for (const HostPort& server : servers) {
        addrinfo hints{};
        hints.ai_family = AF_UNSPEC;
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = server.is_address ? AI_NUMERICHOST : 0;
        addrinfo* found = nullptr;
        const int rc = ::getaddrinfo(server.host.c_str(), nullptr, &hints, &found);
        if (rc != 0) {
            problem.append(problem.empty() ? "" : "; ").append(server.host).append(": ").append(::gai_strerror(rc));
            continue;
        }
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
        std::set<std::string> texts;  // sorted, since name servers change the order from one answer to the next
        for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
            char text[NI_MAXHOST];
            if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0) {
                texts.insert(HostPort{.host = text, .port = server.port}.text());
            }
        }
        for (const std::string& address : texts) {
            if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) addresses.push_back(address);
        }
    }
    return addresses;
}

std::vector<std::string> for_c_client(const std::vector<std::string>& addresses) {
    std::vector<std::string> accepted;
    for (const std::string& address : addresses) {
        HostPort server = parse_host_port(address);
        if (server.host.find(':') == std::string::npos && !c_client_accepts(server.host))
            server.host.insert(0, "::ffff:");
        if (c_client_accepts(server.host)) accepted.push_back(server.text());
    }
    return accepted;
}

std::vector<HostPort> parse_servers(const std::vector<std::string>& hosts) {
    std::vector<HostPort> servers;
    for (const std::string& host : hosts) servers.push_back(parse_host_port(host));
    if (servers.empty()) throw Error(Errc::bad_connect_string, "connect", {}, "the list of servers is empty");
    return servers;
}

bool needs_lookup(const std::vector<HostPort>& servers) {
    for (const HostPort& server : servers) {
        if (!server.is_address) return true;
    }
    return false;
}

std::vector<std::string> in_odd_number(std::vector<std::string> addresses, std::size_t before, std::uint64_t random) {
    const std::size_t count = addresses.size();
    if (count == 0 || count % 2 == 1) return addresses;
    const std::size_t wanted = count + 1 == before ? count + 3 : count + 1;
    for (std::size_t i = random % count; addresses.size() < wanted; ++i) addresses.push_back(addresses[i % count]);
    return addresses;
}

std::string joined(const std::vector<std::string>& addresses) {
    std::string text;
    for (const std::string& address : addresses) text.append(text.empty() ? "" : ",").append(address);
    std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
    return text;
}

}  // namespace zkrecipes::internal
