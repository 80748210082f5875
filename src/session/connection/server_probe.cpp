#include "session/connection/server_probe.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include "base/socket.hpp"
#include "client/resolver.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kLongestAnswer = 4096;  // an answer has less than 300 bytes

/// One address while it is being asked.
struct Attempt {
    std::string address;
    Socket socket;
    bool connected = false;
    bool cut = false;
    std::string answer{};

    bool over() const noexcept { return !socket; }
    void finish() noexcept { socket = Socket(); }
    void finish_cut() noexcept {
        cut = answer.empty();
        finish();
    }
};

class SocketProbe final : public ServerProbe, public std::enable_shared_from_this<SocketProbe> {
public:
    explicit SocketProbe(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

    void probe(std::vector<std::string> hosts, std::chrono::milliseconds limit, Done done) override {
        const auto runtime = runtime_.lock();
        if (!runtime) return;
        runtime->post(Lane::blocking,
                      [self = shared_from_this(), runtime, hosts = std::move(hosts), limit, done = std::move(done)] {
                          const std::vector<Attempt> attempts = self->ask(*runtime, hosts, limit);
                          Found found = best_of(attempts);
                          found.all_cut = !found.best.empty() && all_cut(attempts);
                          for (auto* list : {&found.best, &found.awake}) {
                              if (list->size() == attempts.size() && self->all_known(hosts)) *list = hosts;
                          }
                          runtime->post(Lane::protocol, [done, found = std::move(found)] { done(found); });
                      });
    }

private:
    std::vector<Attempt> ask(Runtime& runtime, const std::vector<std::string>& hosts, std::chrono::milliseconds limit) {
        std::vector<Attempt> attempts = start(hosts);
        const Instant until = runtime.now() + limit;
        while (true) {
            std::vector<pollfd> fds;
            std::vector<Attempt*> waiting;
            for (auto& attempt : attempts) {
                if (attempt.over()) continue;
                fds.push_back({attempt.socket.get(), static_cast<short>(attempt.connected ? POLLIN : POLLOUT), 0});
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
        return attempts;
    }

    /// Names are resolved anew each time, because addresses change; while that fails, the last answer counts.
    std::vector<Attempt> start(const std::vector<std::string>& hosts) {
        std::vector<Attempt> attempts;
        for (const std::string& host : hosts) {
            std::string problem;
            std::vector<std::string>& addresses = last_addresses_[host];
            auto found = resolve_servers({parse_host_port(host)}, problem);
            if (!found.empty()) addresses = std::move(found);
            for (const std::string& address : addresses) {
                const auto same = [&](const Attempt& attempt) { return attempt.address == address; };
                if (std::none_of(attempts.begin(), attempts.end(), same)) {
                    attempts.push_back({address, start_connect(address)});
                }
            }
        }
        return attempts;
    }

    bool all_known(const std::vector<std::string>& hosts) const {
        return std::none_of(hosts.begin(), hosts.end(),
                            [this](const std::string& host) { return last_addresses_.at(host).empty(); });
    }

    static void advance(Attempt& attempt) {
        const int fd = attempt.socket.get();
        if (!attempt.connected) {
            int error = 0;
            socklen_t size = sizeof(error);
            if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return attempt.finish();
            attempt.connected = error == 0 || error == ECONNRESET || error == EPIPE;
            if (error != 0) return attempt.connected ? attempt.finish_cut() : attempt.finish();
            if (::send(fd, "srvr", 4, MSG_NOSIGNAL) != 4) attempt.finish_cut();
            return;
        }
        std::array<char, 512> buffer{};
        const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return attempt.finish_cut();
        attempt.answer.append(buffer.data(), static_cast<std::size_t>(got));
        if (attempt.answer.size() >= kLongestAnswer || !mode_of(attempt.answer).empty()) attempt.finish();
    }

    enum class Verdict { silent, accepts, leaderless, answers, serves };  // the later counts more

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
        if (!attempt.connected) return Verdict::silent;
        const std::string_view mode = mode_of(attempt.answer);
        // A read-only server has no leader, either, and refuses clients that also want to write.
        if (!mode.empty()) return mode == "read-only" ? Verdict::leaderless : Verdict::serves;
        // It is not frozen, and serves as soon as there is a leader.
        if (attempt.answer.find("not currently serving") != std::string::npos) return Verdict::leaderless;
        // It may serve, and is not frozen.
        if (attempt.answer.find("not in the whitelist") != std::string::npos) return Verdict::answers;
        return Verdict::accepts;  // frozen, or slow, or cut off in the middle: it may serve
    }

    static bool all_cut(const std::vector<Attempt>& attempts) {
        return std::all_of(attempts.begin(), attempts.end(),
                           [](const Attempt& attempt) { return !attempt.connected || attempt.cut; });
    }

    static Found best_of(const std::vector<Attempt>& attempts) {
        Found out;
        for (const Verdict which : {Verdict::serves, Verdict::answers, Verdict::leaderless, Verdict::accepts}) {
            for (const auto& attempt : attempts) {
                if (verdict(attempt) == which) out.best.push_back(attempt.address);
            }
            out.leaderless = !out.best.empty() && which == Verdict::leaderless;
            if (!out.best.empty()) break;
        }
        for (const auto& attempt : attempts) {
            if (attempt.cut || !attempt.answer.empty()) out.awake.push_back(attempt.address);
        }
        return out;
    }

    // Weak: the runtime's own queue may hold the last reference to this object.
    const std::weak_ptr<Runtime> runtime_;
    std::map<std::string, std::vector<std::string>> last_addresses_;  // on the blocking lane only
};

}  // namespace

std::shared_ptr<ServerProbe> make_server_probe(std::shared_ptr<Runtime> runtime) {
    return std::make_shared<SocketProbe>(std::move(runtime));
}

}  // namespace zkrecipes::internal
