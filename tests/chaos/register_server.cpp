#include "chaos/register_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <system_error>
#include <vector>

namespace zkrecipes::chaos {

namespace {

void check(bool good, const char* what) {
    if (!good) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

RegisterServer::RegisterServer() {
    static int number = 0;
    name_ = "zkrecipes-register-" + std::to_string(getpid()) + "-" + std::to_string(++number);
    check(pipe2(wake_, O_CLOEXEC) == 0, "pipe");
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());  // the first byte stays 0: an abstract name
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    check(listener_ >= 0 && bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind of the register");
    check(listen(listener_, 128) == 0, "listen");
    thread_ = std::jthread([this] { serve(); });
}

RegisterServer::~RegisterServer() {
    close(wake_[1]);
    thread_.join();
    close(wake_[0]);
    close(listener_);
}

std::map<int, RegisterServer::Account> RegisterServer::accounts() const {
    const std::lock_guard lock(mutex_);
    return accounts_;
}

void RegisterServer::serve() {
    std::map<int, std::string> clients;  // by descriptor, with what came of the next request
    for (;;) {
        std::vector<pollfd> ready{{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
        for (const auto& [descriptor, unread] : clients) ready.push_back({descriptor, POLLIN, 0});
        if (poll(ready.data(), ready.size(), -1) < 0 || ready[0].revents != 0) break;
        if (ready[1].revents != 0) {
            const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (descriptor >= 0) clients[descriptor];
        }
        for (std::size_t i = 2; i < ready.size(); ++i) {
            if (ready[i].revents == 0) continue;
            char bytes[512];
            const ssize_t got = recv(ready[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
            if (got <= 0) {
                close(ready[i].fd);
                clients.erase(ready[i].fd);
                continue;
            }
            clients[ready[i].fd].append(bytes, static_cast<std::size_t>(got));
            hear(ready[i].fd, clients[ready[i].fd]);
        }
    }
    for (const auto& [descriptor, unread] : clients) close(descriptor);
}

void RegisterServer::hear(int descriptor, std::string& unread) {
    for (auto end = unread.find('\n'); end != std::string::npos; end = unread.find('\n')) {
        const std::string reply = answer(unread.substr(0, end)) + "\n";
        unread.erase(0, end + 1);
        // It asks one thing at a time, so this never blocks. Who does not hear it any more has been killed.
        [[maybe_unused]] const auto sent = send(descriptor, reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

std::string RegisterServer::answer(const std::string& request) {
    std::istringstream text(request);
    std::string word;
    std::string lock;
    std::int64_t token = 0;
    std::int64_t value = 0;
    text >> word >> lock >> token >> value;
    const std::lock_guard guard(mutex_);
    auto& account = accounts_[std::stoi(lock)];
    if (word == "w") {
        const bool written = fences_.run_exclusive(lock, token, [&] {
            account.value = value;
            ++account.accepted[token];
        });
        return written ? "1" : "-1";
    }
    const bool let_in = word == "s" ? fences_.admit_shared(lock, token) : fences_.admit_exclusive(lock, token);
    return std::to_string(let_in ? account.value : -1);
}

}  // namespace zkrecipes::chaos
