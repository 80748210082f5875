#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace zkrecipes::internal {

/// A descriptor that another program started by the host does not inherit: the caller makes it so.
class Descriptor {
public:
    /// Throws std::system_error if `fd` is -1, as errno says.
    explicit Descriptor(int fd) : fd_(fd) {
        if (fd_ < 0) throw std::system_error(errno, std::system_category(), "zkrecipes: timer or event descriptor");
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const noexcept { return fd_; }
    /// For an eventfd or a timerfd.
    void drain() const noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto ignored = ::read(fd_, &count, sizeof(count));
    }
    void signal() const noexcept {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto ignored = ::write(fd_, &one, sizeof(one));
    }

private:
    const int fd_;
};

}  // namespace zkrecipes::internal
