#include "client/resolver.hpp"

#include <netdb.h>

#include <algorithm>
#include <memory>

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
            std::string address = std::string(text) + ":" + std::to_string(server.port);
            if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
                addresses.push_back(std::move(address));
            }
        }
    }
    return addresses;
}

}  // namespace zkrecipes::internal
