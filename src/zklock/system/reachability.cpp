#include "zklock/system/reachability.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

struct Server {
    std::string host, port;
    std::string text() const { return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port; }
};

/// "[::1]:2181", "host", "host:2181".
Server parse(const std::string& entry) {
    const std::size_t close = entry.find(']');
    const std::size_t colon = entry.find(':', close == std::string::npos ? 0 : close);
    Server server{entry.substr(0, colon), colon == std::string::npos ? "2181" : entry.substr(colon + 1)};
    if (close != std::string::npos) server.host = entry.substr(1, close - 1);
    return server;
}

std::vector<Server> servers_of(const std::string& connect) {
    const std::string list = connect.substr(0, connect.find('/'));
    std::vector<Server> servers;
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(',', begin), list.size());
        servers.push_back(parse(list.substr(begin, end - begin)));
        begin = end + 1;
    }
    return servers;
}

/// The findings so far. The threads share them with the caller, because a name lookup cannot be cancelled.
struct Findings {
    std::mutex mutex;
    std::condition_variable change;
    std::vector<std::string> texts;
    std::size_t open = 0;
    int out_of_files = 0;  // an errno

    void note_out_of_files(int error) {
        const std::lock_guard lock(mutex);
        out_of_files = error;
    }
    void note(std::size_t server, const std::string& text, bool last) {
        const std::lock_guard lock(mutex);
        texts[server] = text;
        open -= last ? 1 : 0;
        change.notify_all();
    }
};

std::string try_address(const addrinfo& address, int limit_ms, Findings& findings) {
    const UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) {
        const int error = errno;
        if (error == EMFILE || error == ENFILE) findings.note_out_of_files(error);
        return std::strerror(error);
    }
    if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return kAccepted;
    if (errno != EINPROGRESS) return std::strerror(errno);
    pollfd ready{fd.get(), POLLOUT, 0};
    if (::poll(&ready, 1, limit_ms) != 1) return "no answer to a connection";
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    // A server whose maxClientCnxns is reached cuts the connection at once.
    return error == 0 || error == EPIPE || error == ECONNRESET ? kAccepted : std::strerror(error);
}

void look(const Server& server, std::size_t index, int limit_ms, Findings& findings) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found); error != 0) {
        return findings.note(index, std::string("the name does not resolve (") + ::gai_strerror(error) + ")", true);
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    findings.note(index, "no answer to a connection", false);
    std::string text;
    for (const addrinfo* one = found; one && text != kAccepted; one = one->ai_next)
        text = try_address(*one, limit_ms, findings);
    findings.note(index, text, true);
}

}  // namespace

std::string why_no_answer(const std::string& connect, Nanoseconds limit) {
    const std::vector<Server> servers = servers_of(connect);
    const auto findings = std::make_shared<Findings>();
    findings->texts.assign(servers.size(), "the name does not resolve (no name server answers)");
    findings->open = servers.size();
    const int limit_ms = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
    for (std::size_t i = 0; i < servers.size(); ++i) {
        try {
            std::thread([=, server = servers[i]] { look(server, i, limit_ms, *findings); }).detach();
        } catch (const std::system_error& error) {
            findings->note(i, std::string("not tried: ") + error.what(), true);
        }
    }
    std::unique_lock lock(findings->mutex);
    findings->change.wait_for(lock, limit, [&] { return findings->open == 0; });
    if (findings->out_of_files != 0) throw std::system_error(findings->out_of_files, std::generic_category());
    std::string text;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        text += (i == 0 ? "" : "; ") + servers[i].text() + ": " + findings->texts[i];
    }
    return text;
}

}  // namespace zkrecipes::zklock
