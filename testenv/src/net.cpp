#include "net.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <zkrecipes/testenv/error.hpp>

namespace zkrecipes::testenv::internal {

namespace {

void no_delay(int fd) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool wait_for(int fd, short events, Clock::time_point deadline) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) {
            return false;
        }
        pollfd watched{fd, events, 0};
        const int ready = ::poll(&watched, 1, static_cast<int>(std::min<long>(left, 1'000'000)));
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            return false;
        }
    }
}

}  // namespace

sockaddr_in socket_address(const Endpoint& endpoint) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    if (::inet_pton(AF_INET, endpoint.address.c_str(), &address.sin_addr) != 1) {
        throw Error("not an IPv4 address: " + endpoint.address);
    }
    return address;
}

Endpoint parse_endpoint(const std::string& text) {
    const auto colon = text.rfind(':');
    Endpoint endpoint;
    if (colon == std::string::npos) {
        throw Error("not host:port: " + text);
    }
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    if (error != std::errc{} || rest != end || endpoint.port == 0) {
        throw Error("not host:port: " + text);
    }
    const std::string host = text.substr(0, colon);
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0 || found == nullptr) {
        throw Error("no such host: " + host);
    }
    char name[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr, name, sizeof name);
    ::freeaddrinfo(found);
    endpoint.address = name;
    return endpoint;
}

UniqueFd try_listen(const Endpoint& endpoint) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const auto address = socket_address(endpoint);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), 1024) != 0) {
        if (errno == EADDRINUSE) {
            return {};
        }
        throw Error("cannot listen on " + endpoint.str() + ": " + std::strerror(errno));
    }
    return fd;
}

UniqueFd start_connect(const Endpoint& endpoint) {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const auto address = socket_address(endpoint);
    if (!fd || (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
                errno != EINPROGRESS)) {
        return {};
    }
    no_delay(fd.get());
    return fd;
}

UniqueFd connect_before(const Endpoint& endpoint, Clock::time_point deadline) {
    UniqueFd fd = start_connect(endpoint);
    if (!fd || !wait_for(fd.get(), POLLOUT, deadline)) {
        return {};
    }
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        return {};
    }
    return fd;
}

bool write_all(int fd, const void* data, std::size_t size, Clock::time_point deadline) {
    const char* next = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t written = ::send(fd, next, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written > 0) {
            next += written;
            size -= static_cast<std::size_t>(written);
        } else if (!(written < 0 && (errno == EAGAIN || errno == EINTR)) || !wait_for(fd, POLLOUT, deadline)) {
            return false;
        }
    }
    return true;
}

bool read_all(int fd, void* data, std::size_t size, Clock::time_point deadline) {
    char* next = static_cast<char*>(data);
    while (size > 0) {
        const ssize_t got = ::recv(fd, next, size, MSG_DONTWAIT);
        if (got > 0) {
            next += got;
            size -= static_cast<std::size_t>(got);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLIN, deadline)) {
            return false;
        }
    }
    return true;
}

std::optional<std::string> four_letter_word(const Endpoint& endpoint, const std::string& word,
                                            Clock::time_point deadline) {
    const UniqueFd fd = connect_before(endpoint, deadline);
    if (!fd || !write_all(fd.get(), word.data(), word.size(), deadline)) {
        return std::nullopt;
    }
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
        if (got > 0) {
            text.append(buffer, static_cast<std::size_t>(got));
        } else if (got == 0) {
            return text;
        } else if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd.get(), POLLIN, deadline)) {
            return std::nullopt;
        }
    }
}

}  // namespace zkrecipes::testenv::internal
