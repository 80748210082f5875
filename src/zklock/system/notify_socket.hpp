#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// The socket of a service manager that $NOTIFY_SOCKET names: see sd_notify(3).
class NotifySocket {
public:
    NotifySocket() = default;
    /// `name`: an absolute path, or "@" and an abstract name. Throws std::invalid_argument for any other name, and
    /// std::system_error.
    explicit NotifySocket(const std::string& name);

    /// Does not block. False: it could not be sent; errno says why.
    bool send(std::string_view message) const noexcept;

private:
    UniqueFd fd_;
    sockaddr_un address_{};
    socklen_t size_ = 0;
};

}  // namespace zkrecipes::zklock
