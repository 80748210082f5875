#include "base/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <memory>

#include "base/connect_string.hpp"

namespace zkrecipes::internal {

Socket& Socket::operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

Socket::~Socket() {
    if (fd_ >= 0) ::close(fd_);
}

Socket start_connect(const std::string& server) noexcept {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    try {
        const HostPort parsed = parse_host_port(server);
        ::getaddrinfo(parsed.host.c_str(), std::to_string(parsed.port).c_str(), &hints, &found);
    } catch (const std::exception&) {
    }
    if (found == nullptr) {
        errno = EINVAL;
        return Socket();
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    Socket fd(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) return fd;
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS) return fd;
    return Socket();
}

}  // namespace zkrecipes::internal
