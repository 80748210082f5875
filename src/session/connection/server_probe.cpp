#include "session/connection/server_probe.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/connect_string.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kLongestAnswer = 4096;  // an answer has less than 300 bytes

/// One address of one server while it is being asked.
struct Attempt {
    std::size_t host = 0;
    int fd = -1;
    bool connected = false;
    bool accepted = false;
    bool over = false;
    std::string answer;

    explicit Attempt(std::size_t index) : host(index) {}
    Attempt(Attempt&& other) noexcept
        : host(other.host),
          fd(std::exchange(other.fd, -1)),
          connected(other.connected),
          accepted(other.accepted),
          over(other.over),
          answer(std::move(other.answer)) {}
    Attempt& operator=(Attempt&&) = delete;
    ~Attempt() { finish(); }
    void finish() noexcept {
        over = true;
        if (fd >= 0) ::close(std::exchange(fd, -1));
    }
};

struct Address {
    sockaddr_storage storage{};
    socklen_t size = 0;
};

std::vector<Address> resolve(const HostPort& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (host.is_address ? AI_NUMERICHOST : AI_ADDRCONFIG);
    addrinfo* found = nullptr;
    std::vector<Address> out;
    if (::getaddrinfo(host.host.c_str(), std::to_string(host.port).c_str(), &hints, &found) != 0) return out;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
    for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
        Address address;
        std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
        address.size = entry->ai_addrlen;
        out.push_back(address);
    }
    return out;
}

class SocketProbe final : public ServerProbe, public std::enable_shared_from_this<SocketProbe> {
public:
    explicit SocketProbe(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

    void probe(std::vector<std::string> hosts, std::chrono::milliseconds limit,
               std::function<void(std::vector<std::string>)> done) override {
        const auto runtime = runtime_.lock();
        if (!runtime) return;
        runtime->post(Lane::blocking,
                      [self = shared_from_this(), runtime, hosts = std::move(hosts), limit, done = std::move(done)] {
                          auto answering = self->ask(*runtime, hosts, limit);
                          runtime->post(Lane::protocol, [done, answering = std::move(answering)] { done(answering); });
                      });
    }

private:
    std::vector<std::string> ask(Runtime& runtime, const std::vector<std::string>& hosts,
                                 std::chrono::milliseconds limit) {
        std::vector<Attempt> attempts;
        for (std::size_t i = 0; i < hosts.size(); ++i) {
            for (const Address& address : addresses(hosts[i])) start(attempts, i, address);
        }
        const Instant until = runtime.now() + limit;
        while (true) {
            std::vector<pollfd> fds;
            std::vector<Attempt*> waiting;
            for (auto& attempt : attempts) {
                if (attempt.over) continue;
                fds.push_back({attempt.fd, static_cast<short>(attempt.connected ? POLLIN : POLLOUT), 0});
                waiting.push_back(&attempt);
            }
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - runtime.now());
            if (fds.empty() || left.count() <= 0) break;
            const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(left.count()));
            if (ready < 0) break;  // no signal comes to this thread
            for (std::size_t i = 0; ready > 0 && i < fds.size(); ++i) {
                if (fds[i].revents != 0) advance(*waiting[i]);
            }
        }
        return sorted(attempts, hosts);
    }

    /// Names are resolved anew each time, because addresses change; while that fails, the last answer counts.
    std::vector<Address> addresses(const std::string& host) {
        auto found = resolve(parse_host_port(host));
        if (found.empty()) return last_addresses_[host];
        return last_addresses_[host] = std::move(found);
    }

    static void start(std::vector<Attempt>& attempts, std::size_t host, const Address& address) {
        Attempt attempt(host);
        attempt.fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (attempt.fd < 0) return;
        const auto* where = reinterpret_cast<const sockaddr*>(&address.storage);
        if (::connect(attempt.fd, where, address.size) != 0 && errno != EINPROGRESS) return;
        attempts.push_back(std::move(attempt));
    }

    static void advance(Attempt& attempt) {
        if (!attempt.connected) {
            int error = 0;
            socklen_t size = sizeof(error);
            if (::getsockopt(attempt.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
                return attempt.finish();
            attempt.connected = attempt.accepted = true;
            if (::send(attempt.fd, "srvr", 4, MSG_NOSIGNAL) != 4) attempt.finish();
            return;
        }
        std::array<char, 512> buffer{};
        const ssize_t got = ::recv(attempt.fd, buffer.data(), buffer.size(), 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return attempt.finish();
        attempt.answer.append(buffer.data(), static_cast<std::size_t>(got));
        if (attempt.answer.size() >= kLongestAnswer || !mode_of(attempt.answer).empty()) attempt.finish();
    }

    enum class Verdict { silent, says_no, accepts, serves };  // the later counts more

    /// Servers tell their mode in one of the last lines of their answer.
    static std::string_view mode_of(std::string_view answer) {
        constexpr std::string_view kMode = "\nMode: ";
        const std::size_t found = answer.find(kMode);
        if (found == std::string_view::npos) return {};
        const std::string_view rest = answer.substr(found + kMode.size());
        const std::size_t end = rest.find('\n');
        return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
    }

    static Verdict verdict(const Attempt& attempt) {
        if (!attempt.accepted) return Verdict::silent;
        const std::string_view mode = mode_of(attempt.answer);
        // A read-only server has lost the others, and refuses clients that also want to write.
        if (!mode.empty()) return mode == "read-only" ? Verdict::says_no : Verdict::serves;
        if (attempt.answer.find("not currently serving") != std::string::npos) return Verdict::says_no;
        // Slow, cut off in the middle, or srvr is "not in the whitelist": it may serve.
        return Verdict::accepts;
    }

    static std::vector<std::string> sorted(const std::vector<Attempt>& attempts,
                                           const std::vector<std::string>& hosts) {
        std::vector<Verdict> best(hosts.size(), Verdict::silent);  // of the addresses of each
        for (const auto& attempt : attempts) best[attempt.host] = std::max(best[attempt.host], verdict(attempt));
        std::vector<std::string> out;
        for (const Verdict which : {Verdict::serves, Verdict::accepts}) {
            for (std::size_t i = 0; i < hosts.size(); ++i) {
                if (best[i] == which) out.push_back(hosts[i]);
            }
            if (!out.empty()) break;
        }
        return out;
    }

    // Weak: the runtime's own queue may hold the last reference to this object.
    const std::weak_ptr<Runtime> runtime_;
    std::map<std::string, std::vector<Address>> last_addresses_;  // on the blocking lane only
};

}  // namespace

std::shared_ptr<ServerProbe> make_server_probe(std::shared_ptr<Runtime> runtime) {
    return std::make_shared<SocketProbe>(std::move(runtime));
}

}  // namespace zkrecipes::internal
