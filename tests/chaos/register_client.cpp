#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "chaos/register_server.hpp"

namespace zkrecipes::chaos {

RegisterClient::RegisterClient(const std::string& name) {
    descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // the first byte stays 0: an abstract name
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (descriptor_ < 0 || connect(descriptor_, reinterpret_cast<sockaddr*>(&address), size) != 0)
        throw std::system_error(errno, std::generic_category(), "the register " + name);
}

RegisterClient::~RegisterClient() { close(descriptor_); }

std::int64_t RegisterClient::read(int lock, std::int64_t token) {
    return ask("r " + std::to_string(lock) + " " + std::to_string(token) + "\n");
}

std::int64_t RegisterClient::read_shared(int lock, std::int64_t token) {
    return ask("s " + std::to_string(lock) + " " + std::to_string(token) + "\n");
}

bool RegisterClient::write(int lock, std::int64_t token, std::int64_t value) {
    return ask("w " + std::to_string(lock) + " " + std::to_string(token) + " " + std::to_string(value) + "\n") >= 0;
}

std::int64_t RegisterClient::ask(const std::string& request) {
    if (send(descriptor_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
        throw std::runtime_error("the register takes no requests");
    std::string answer;
    for (char byte = 0; byte != '\n'; answer += byte) {
        if (recv(descriptor_, &byte, 1, 0) != 1) throw std::runtime_error("the register does not answer");
    }
    return std::strtoll(answer.c_str(), nullptr, 10);
}

}  // namespace zkrecipes::chaos
