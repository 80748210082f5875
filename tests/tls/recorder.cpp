#include "tls/recorder.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace zkrecipes::test {
namespace {

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
    return address;
}

}  // namespace

Recorder::Recorder(testenv::Endpoint target) : target_(std::move(target)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sockaddr_in here = address_of("127.0.0.1", 0);
    socklen_t size = sizeof here;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&here), size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size) != 0) {
        throw std::runtime_error("no port for the recorder");
    }
    port_ = ntohs(here.sin_port);
    thread_ = std::thread([this] { run(); });
}

Recorder::~Recorder() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    ::eventfd_write(wake_, 1);
    thread_.join();
    for (const Connection& connection : connections_) {
        if (connection.client >= 0) ::close(connection.client);
        if (connection.server >= 0) ::close(connection.server);
    }
    ::close(listener_);
    ::close(wake_);
}

std::vector<Recorder::Streams> Recorder::streams() const {
    const std::lock_guard lock(mutex_);
    std::vector<Streams> all;
    for (const Connection& connection : connections_) all.push_back(connection.streams);
    return all;
}

std::size_t Recorder::open_connections() const {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Connection& connection : connections_) count += connection.client >= 0 ? 1 : 0;
    return count;
}

void Recorder::cut() {
    {
        const std::lock_guard lock(mutex_);
        cut_ = true;
    }
    ::eventfd_write(wake_, 1);
}

void Recorder::accept() {
    Connection connection;
    connection.client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (!target_.address.empty()) {
        connection.server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in address = address_of(target_.address, target_.port);
        if (::connect(connection.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            ::close(connection.client);
            ::close(connection.server);
            return;
        }
    }
    connections_.push_back(std::move(connection));
}

/// False: the end.
bool Recorder::forward(int from, int to, std::string& kept) {
    std::array<char, 16384> buffer;
    const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
    if (got <= 0) return false;
    kept.append(buffer.data(), static_cast<std::size_t>(got));
    return to < 0 || ::send(to, buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
}

void Recorder::run() {
    while (true) {
        std::vector<pollfd> fds{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
        for (const Connection& connection : connections_) {
            fds.push_back({connection.client, POLLIN, 0});
            fds.push_back({connection.server, POLLIN, 0});
        }
        ::poll(fds.data(), fds.size(), -1);
        const std::lock_guard lock(mutex_);
        if (stop_) return;
        eventfd_t count = 0;
        if (fds[0].revents != 0) ::eventfd_read(wake_, &count);
        std::size_t at = 2;
        for (Connection& one : connections_) {
            const bool client = fds[at].revents != 0, server = fds[at + 1].revents != 0;
            at += 2;
            bool over = cut_ && one.client >= 0;
            if (client && !over) over = !forward(one.client, one.server, one.streams.to_server);
            if (server && !over) over = !forward(one.server, one.client, one.streams.to_client);
            if (!over) continue;
            ::close(one.client);
            if (one.server >= 0) ::close(one.server);
            one.client = one.server = -1;
        }
        cut_ = false;
        if (fds[1].revents != 0) accept();
    }
}

std::string why_not_tls(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
        // change_cipher_spec, alert, handshake, application data; the version 3.1 to 3.4
        if (byte(0) < 20 || byte(0) > 23) return "no TLS record at byte " + std::to_string(at);
        if (at + 5 > bytes.size()) return {};
        if (byte(1) != 3 || byte(2) < 1 || byte(2) > 4) return "no version of TLS at byte " + std::to_string(at);
        const std::size_t length = (static_cast<std::size_t>(byte(3)) << 8) + byte(4);
        if (length > 16384 + 256) return "too long a record at byte " + std::to_string(at);
        at += 5 + length;
    }
    return {};
}

}  // namespace zkrecipes::test
