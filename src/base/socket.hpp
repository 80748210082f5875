#pragma once

#include <string>
#include <utility>

namespace zkrecipes::internal {

/// Owns a descriptor.
class Socket {
public:
    explicit Socket(int fd = -1) noexcept : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept;
    ~Socket();
    int get() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_;
};

/// Starts a non-blocking connect to "address:port" (IPv6 in brackets). If it fails at once, the result is empty, and
/// errno says why.
Socket start_connect(const std::string& server) noexcept;

}  // namespace zkrecipes::internal
