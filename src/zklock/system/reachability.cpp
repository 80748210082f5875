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
#include <utility>
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

struct Attempt {
    std::string address;
    UniqueFd fd{};
    std::string finding{};  // empty: not known yet

    void start(const addrinfo& to, Findings& findings) {
        fd = UniqueFd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const int error = fd && ::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
        if (!fd && (error == EMFILE || error == ENFILE)) findings.note_out_of_files(error);
        if (error != EINPROGRESS) finish(error);
    }
    void finish(int error) {
        // A server whose maxClientCnxns is reached cuts the connection at once.
        const bool accepted = error == 0 || error == EPIPE || error == ECONNRESET;
        finding = accepted ? kAccepted : std::strerror(error);
        fd.reset();
    }
};

/// "Connection refused"; where the addresses of one name differ, "Connection refused (10.0.0.1, 10.0.0.2), no answer to
/// a connection (10.0.0.3)".
std::string text_of(const std::vector<Attempt>& attempts) {
    std::vector<std::pair<std::string, std::string>> groups;
    for (const Attempt& attempt : attempts) {
        const std::string finding = attempt.finding.empty() ? "no answer to a connection" : attempt.finding;
        const auto group =
            std::find_if(groups.begin(), groups.end(), [&](const auto& known) { return known.first == finding; });
        if (group == groups.end()) {
            groups.emplace_back(finding, attempt.address);
        } else {
            group->second += ", " + attempt.address;
        }
    }
    if (groups.size() == 1) return groups.front().first;
    std::string text;
    for (const auto& [finding, addresses] : groups) {
        text += (text.empty() ? "" : ", ") + finding + " (" + addresses + ")";
    }
    return text;
}

/// Tries all addresses at once.
void look(const Server& server, std::size_t index, Instant until, Findings& findings) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found); error != 0) {
        return findings.note(index, std::string("the name does not resolve (") + ::gai_strerror(error) + ")", true);
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
    std::vector<Attempt> attempts;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        char address[NI_MAXHOST] = "";
        ::getnameinfo(one->ai_addr, one->ai_addrlen, address, sizeof address, nullptr, 0, NI_NUMERICHOST);
        attempts.push_back({address});
        attempts.back().start(*one, findings);
    }
    for (;;) {
        findings.note(index, text_of(attempts), false);
        std::vector<pollfd> fds;
        for (const Attempt& attempt : attempts) fds.push_back({attempt.fd.get(), POLLOUT, 0});
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - BootClock::now()).count();
        const bool open = std::any_of(attempts.begin(), attempts.end(),
                                      [](const Attempt& attempt) { return attempt.finding.empty(); });
        if (!open || left <= 0 || ::poll(fds.data(), fds.size(), static_cast<int>(left)) <= 0) break;
        for (std::size_t i = 0; i < fds.size(); ++i) {
            if (fds[i].revents == 0) continue;
            int error = 0;
            socklen_t size = sizeof error;
            ::getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
            attempts[i].finish(error);
        }
    }
    findings.note(index, text_of(attempts), true);
}

}  // namespace

std::string why_no_answer(const std::string& connect, Nanoseconds limit) {
    const std::vector<Server> servers = servers_of(connect);
    const auto findings = std::make_shared<Findings>();
    findings->texts.assign(servers.size(), "the name does not resolve (no name server answers)");
    findings->open = servers.size();
    const Instant until = BootClock::now() + limit;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        try {
            std::thread([=, server = servers[i]] { look(server, i, until, *findings); }).detach();
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
