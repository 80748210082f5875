#include "zklock/system/notify_socket.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace zkrecipes::zklock {

NotifySocket::NotifySocket(const std::string& name) {
    if (name.size() < 2 || (name.front() != '/' && name.front() != '@')) {
        throw std::invalid_argument("it is neither an absolute path nor an abstract name (@...)");
    }
    if (name.size() >= sizeof address_.sun_path) throw std::invalid_argument("it is too long");
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path, name.data(), name.size());
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (name.front() == '@') {
        address_.sun_path[0] = '\0';  // an abstract name has no end mark: the size counts
    } else {
        ++size_;
    }
    fd_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd_) throw std::system_error(errno, std::generic_category(), "socket");
}

bool NotifySocket::send(std::string_view message) const noexcept {
    return ::sendto(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL,
                    reinterpret_cast<const sockaddr*>(&address_), size_) == static_cast<ssize_t>(message.size());
}

}  // namespace zkrecipes::zklock
