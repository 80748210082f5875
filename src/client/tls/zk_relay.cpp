#include "client/tls/zk_relay.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <list>
#include <mutex>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/signal_mask.hpp"
#include "client/tls/zk_relay_link.hpp"

namespace zkrecipes::internal {
namespace {

/// How long the last bytes of a handle that was closed may take to a server.
constexpr auto kLongestFinish = std::chrono::milliseconds(1500);
/// How long no connection is accepted after that has failed, for example because there are too many open files.
constexpr auto kPauseAfterFailure = std::chrono::milliseconds(100);

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// As /proc/net/tcp writes it, and at the end of ::ffff:127.0.0.1 also /proc/net/tcp6.
std::string in_proc(const sockaddr_in& address) {
    char text[32];
    std::snprintf(text, sizeof text, "%08X:%04X", address.sin_addr.s_addr, ntohs(address.sin_port));
    return text;
}

/// Whether the socket at the other end of this connection is one of this user. What cannot be found out counts as yes:
/// others gain nothing but a connection to a server, in which they have to use TLS with a certificate of their own.
bool is_of_this_user(const sockaddr_in& peer, const sockaddr_in& here) {
    const std::string from = in_proc(peer), to = in_proc(here);
    for (const char* name : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
        std::ifstream table(name);
        for (std::string line; std::getline(table, line);) {
            std::istringstream words(line);
            std::string slot, local, remote, state, queues, timer, retransmits;
            unsigned uid = 0;
            if (!(words >> slot >> local >> remote) || !local.ends_with(from) || !remote.ends_with(to)) continue;
            if (words >> state >> queues >> timer >> retransmits >> uid) return uid == ::geteuid() || uid == ::getuid();
        }
    }
    return true;
}

}  // namespace

class ZkRelay::Worker {
public:
    using Clock = RelayLink::Clock;
    Worker(std::vector<std::string> servers, Limits limits, std::function<void(const Problem&)> on_problem)
        : limits_(limits),
          on_problem_(std::move(on_problem)),
          wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
          listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
          servers_(std::move(servers)),
          turn_(std::random_device()()) {
        if (!wake_ || !listener_) fail("a socket for TLS");
        here_.sin_family = AF_INET;
        here_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof here_;
        auto* const where = reinterpret_cast<sockaddr*>(&here_);
        if (::bind(listener_.get(), where, size) != 0 || ::listen(listener_.get(), 16) != 0 ||
            ::getsockname(listener_.get(), where, &size) != 0) {
            fail("a socket for TLS on 127.0.0.1");
        }
        address_ = "127.0.0.1:" + std::to_string(ntohs(here_.sin_port));
        const SignalMaskForNewThreads mask;
        thread_ = std::thread([this] { run(); });
    }
    ~Worker() {
        end(State::finishing);
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    const std::string& address() const { return address_; }
    void set_servers(std::vector<std::string> servers) {
        const std::lock_guard lock(mutex_);
        servers_ = std::move(servers);
    }
    std::uint64_t newest() const {
        const std::lock_guard lock(mutex_);
        return newest_;
    }
    std::string established(std::uint64_t connection) {
        const std::lock_guard lock(mutex_);
        for (RelayLink& link : links_) {
            if (link.number() != connection) continue;
            link.established();
            return link.server();
        }
        return {};
    }
    enum class State { open, closing, finishing };
    void end(State how) {
        {
            const std::lock_guard lock(mutex_);
            state_ = std::max(state_, how);
            if (how == State::finishing) finish_until_ = Clock::now() + kLongestFinish;
        }
        const std::uint64_t one = 1;
        static_cast<void>(!::write(wake_.get(), &one, sizeof one));
    }

private:
    void run() {
        pthread_setname_np(pthread_self(), "zkr-tls");
        std::vector<pollfd> fds;
        while (true) {
            try {
                const int limit = prepare(fds);
                if (limit == kStop) return;
                ::poll(fds.data(), fds.size(), limit);
                turn(fds);
            } catch (const std::exception&) {  // no memory: the C client has to connect once more
                const std::lock_guard lock(mutex_);
                for (RelayLink& link : links_) link.cut();
                links_.clear();
            }
        }
    }

    static constexpr int kStop = -2;
    int prepare(std::vector<pollfd>& fds) {
        const std::lock_guard lock(mutex_);
        Clock::time_point next = Clock::time_point::max();
        if (state_ == State::finishing) {
            next = finish_until_;
            if (links_.empty() || Clock::now() >= next) return kStop;
        }
        fds.clear();
        fds.push_back({wake_.get(), POLLIN, 0});
        const bool pausing = Clock::now() < accept_from_;
        if (pausing) next = std::min(next, accept_from_);
        fds.push_back({state_ == State::open && !pausing ? listener_.get() : -1, POLLIN, 0});
        for (const RelayLink& link : links_) {
            link.wanted(fds);
            next = std::min(next, link.wake_at());
        }
        if (next == Clock::time_point::max()) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
        return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    }

    void turn(const std::vector<pollfd>& fds) {
        std::vector<Problem> problems;
        {
            const std::lock_guard lock(mutex_);
            std::uint64_t count = 0;
            if (fds[0].revents != 0) static_cast<void>(!::read(wake_.get(), &count, sizeof count));
            const auto now = Clock::now();
            std::size_t at = 2;
            for (RelayLink& link : links_) {
                link.go_on(fds[at], fds[at + 1], now);
                link.on_time(now);
                at += 2;
            }
            if (state_ != State::open) {
                listener_ = Socket();
                for (RelayLink& link : links_) link.is_established() ? void() : link.cut();
            } else if (fds[1].revents != 0) {
                accept();
            }
            for (const RelayLink& link : links_) {
                const Problem& problem = link.problem();
                if (link.over() && !link.is_established() && !problem.text.empty() && state_ == State::open) {
                    problems.push_back(problem);
                }
            }
            links_.remove_if([](const RelayLink& link) { return link.over(); });
        }
        for (const Problem& problem : problems) on_problem_(problem);
    }

    void accept() {
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        Socket client(
            ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!client) accept_from_ = Clock::now() + kPauseAfterFailure;
        if (!client || !is_of_this_user(peer, here_)) return;
        const int on = 1;
        ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        std::vector<std::string> servers = servers_;
        if (!servers.empty()) {
            std::rotate(servers.begin(), servers.begin() + static_cast<std::ptrdiff_t>(turn_++ % servers.size()),
                        servers.end());
        }
        links_.emplace_back(++newest_, std::move(client), std::move(servers), limits_);
    }

    const Limits limits_;
    const std::function<void(const Problem&)> on_problem_;
    const Socket wake_;
    Socket listener_;  // the thread's own, as the next
    Clock::time_point accept_from_;
    sockaddr_in here_{};
    std::string address_;

    mutable std::mutex mutex_;  // guards what follows; never held while on_problem_ runs
    State state_ = State::open;
    Clock::time_point finish_until_;
    std::vector<std::string> servers_;
    unsigned turn_;
    std::uint64_t newest_ = 0;
    std::list<RelayLink> links_;
    std::thread thread_;
};

ZkRelay::ZkRelay(std::vector<std::string> servers, Limits limits, std::function<void(const Problem&)> on_problem)
    : worker_(std::make_shared<Worker>(std::move(servers), limits, std::move(on_problem))) {}
ZkRelay::~ZkRelay() = default;
const std::string& ZkRelay::address() const { return worker_->address(); }
void ZkRelay::set_servers(std::vector<std::string> servers) { worker_->set_servers(std::move(servers)); }
std::uint64_t ZkRelay::newest() const { return worker_->newest(); }
std::string ZkRelay::established(std::uint64_t connection) { return worker_->established(connection); }
void ZkRelay::close_soon() { worker_->end(Worker::State::closing); }

}  // namespace zkrecipes::internal
