#include "client/resolver.hpp"

#include <netdb.h>

#include <algorithm>
#include <memory>

#include <zkrecipes/error.hpp>

namespace zkrecipes::internal {

std::vector<std::string> resolve_servers(const std::vector<HostPort>& servers, std::string& problem) {
    std::vector<std::string> addresses;
    for (const HostPort& server : servers) {
        addrinfo hints{};
        hints.ai_family = AF_UNSPEC;
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = server.is_address ? AI_NUMERICHOST : AI_ADDRCONFIG;
        addrinfo* found = nullptr;
        const int rc = ::getaddrinfo(server.host.c_str(), nullptr, &hints, &found);
        if (rc != 0) {
            problem.append(problem.empty() ? "" : "; ").append(server.host).append(": ").append(::gai_strerror(rc));
            continue;
        }
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
        for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
            char text[NI_MAXHOST];
            if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
                continue;
            }
            std::string address = HostPort{.host = text, .port = server.port}.text();
            if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
                addresses.push_back(std::move(address));
            }
        }
    }
    return addresses;
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

std::string joined(const std::vector<std::string>& addresses) {
    std::string text;
    for (const std::string& address : addresses) text.append(text.empty() ? "" : ",").append(address);
    std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
    return text;
}

}  // namespace zkrecipes::internal
