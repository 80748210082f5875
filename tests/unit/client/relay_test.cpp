#include "client/tls/zk_relay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/connect_string.hpp"
#include "client/tls/zk_relay_link.hpp"
#include "support/await.hpp"

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using test::await;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

/// A server that does what the test says.
class Listener {
public:
    explicit Listener(const std::string& host = "127.0.0.1") {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_NUMERICHOST;
        addrinfo* here = nullptr;
        EXPECT_EQ(::getaddrinfo(host.c_str(), "0", &hints, &here), 0);
        fd_ = Socket(::socket(here->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::bind(fd_.get(), here->ai_addr, here->ai_addrlen) == 0 && ::listen(fd_.get(), 16) == 0) {
            ::getsockname(fd_.get(), here->ai_addr, &here->ai_addrlen);
            const auto port = ntohs(reinterpret_cast<const sockaddr_in*>(here->ai_addr)->sin_port);
            address_ = HostPort{.host = host, .port = port}.text();
        }
        ::freeaddrinfo(here);
    }
    const std::string& address() const { return address_; }  // empty: this machine has no such address
    Socket accept() const { return Socket(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

private:
    Socket fd_;
    std::string address_;
};

Socket connect_to(const std::string& address) {
    Socket fd = start_connect(address);
    pollfd ready{fd.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&ready, 1, 10'000), 1);
    return fd;
}

void send(const Socket& fd, const std::string& text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

/// What comes until there is so much, or the end.
std::string receive(const Socket& fd, std::size_t size) {
    std::string text;
    char buffer[1024];
    while (text.size() < size) {
        pollfd ready{fd.get(), POLLIN, 0};
        if (::poll(&ready, 1, 10'000) != 1) return text + " and then nothing";
        const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
        if (got < 0) return text + " and then an error";
        if (got == 0) return text + " and then the end";
        text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
}

class RelayTest : public testing::Test {
protected:
    std::unique_ptr<ZkRelay> relay(std::vector<std::string> servers, ZkRelay::Limits limits = {500ms, 10s}) {
        return std::make_unique<ZkRelay>(std::move(servers), limits, [this](const ZkRelay::Problem& problem) {
            const std::lock_guard lock(mutex_);
            problems_.push_back(problem);
        });
    }
    std::string problem() const {
        const std::lock_guard lock(mutex_);
        return problems_.empty() ? "" : problems_.back().server + ": " + problems_.back().text;
    }

private:
    mutable std::mutex mutex_;
    std::vector<ZkRelay::Problem> problems_;
};

TEST_F(RelayTest, BytesPassBothWaysAndTheEndAfterTheLastOfThem) {
    const Listener server;
    const auto one = relay({server.address()});
    Socket client = connect_to(one->address());
    const Socket accepted = server.accept();
    EXPECT_EQ(one->established(one->newest()), server.address());
    const std::string much(300'000, 'x');
    send(accepted, "hello");
    EXPECT_EQ(receive(client, 5), "hello");
    std::string sent;
    for (std::size_t at = 0; at < much.size(); at += 1000) {
        send(client, much.substr(at, 1000));
        sent += receive(accepted, 1000);
    }
    EXPECT_EQ(sent, much);
    send(client, "the end of the session");
    client = Socket();
    EXPECT_EQ(receive(accepted, 1000), "the end of the session and then the end");
}

TEST_F(RelayTest, OnlyThisUserMayConnectInWhicheverFamilyTheAddressIsWritten) {
    const Listener server;
    const auto one = relay({server.address()});
    const std::string port = one->address().substr(one->address().rfind(':'));
    std::vector<std::string> addresses{one->address()};
    if (Socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0))) addresses.push_back("[::ffff:127.0.0.1]" + port);
    for (const std::string& address : addresses) {
        const Socket ours = connect_to(address);
        const Socket accepted = server.accept();
        send(ours, "hello");
        EXPECT_EQ(receive(accepted, 5), "hello") << address;
        if (::geteuid() != 0) continue;
        // The system call changes the user of this thread only.
        ASSERT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);
        const Socket theirs = connect_to(address);
        ASSERT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
        EXPECT_THAT(receive(theirs, 1), StartsWith(" and then ")) << address;
    }
}

TEST_F(RelayTest, WhatTheClientSentLastArrivesAlsoWhenTheRelayEnds) {
    const Listener server;
    auto one = relay({server.address()});
    Socket client = connect_to(one->address());
    const Socket accepted = server.accept();
    one->established(one->newest());
    send(client, "last");
    client = Socket();
    one.reset();
    EXPECT_EQ(receive(accepted, 1000), "last and then the end");
}

TEST_F(RelayTest, AConnectionThatBecomesNoSessionIsCutInTime) {
    const Listener silent;
    const auto one = relay({silent.address()}, {500ms, 200ms});
    const auto before = Clock::now();
    const Socket client = connect_to(one->address());
    const Socket accepted = silent.accept();
    EXPECT_EQ(receive(client, 1), " and then an error") << "by a reset";
    EXPECT_GE(Clock::now() - before, 200ms);
    EXPECT_TRUE(await([&] { return !problem().empty(); }));
    EXPECT_THAT(problem(), HasSubstr(silent.address() + ": accepts connections, but does not answer"));
}

TEST_F(RelayTest, AConnectionWithASessionStays) {
    const Listener server;
    const auto one = relay({server.address()}, {500ms, 4s});
    const Socket client = connect_to(one->address());
    const Socket accepted = server.accept();
    EXPECT_EQ(one->established(one->newest()), server.address());
    pollfd ready{client.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 4500), 0) << "nothing happens, for longer than the limit";
    one->close_soon();
    send(accepted, "x");
    EXPECT_EQ(receive(client, 1), "x");
}

TEST_F(RelayTest, AnOldNumberEstablishesNothing) {
    const Listener server;
    const auto one = relay({server.address()}, {500ms, 200ms});
    Socket first = connect_to(one->address());
    const Socket accepted = server.accept();
    const std::uint64_t number = one->newest();
    first = Socket();
    EXPECT_EQ(receive(accepted, 1), " and then the end");
    const Socket second = connect_to(one->address());
    const Socket again = server.accept();
    EXPECT_EQ(one->established(number), "");
    EXPECT_EQ(receive(second, 1), " and then an error");
}

TEST_F(RelayTest, ClosingSoonCutsWhatHasNoSessionAndAcceptsNoMore) {
    const Listener silent;
    const auto one = relay({silent.address()});
    const Socket client = connect_to(one->address());
    const Socket accepted = silent.accept();
    one->close_soon();
    EXPECT_EQ(receive(client, 1), " and then an error");
    EXPECT_TRUE(await([&] {
        const Socket late = start_connect(one->address());
        pollfd ready{late.get(), POLLOUT, 0};
        int error = 0;
        socklen_t size = sizeof error;
        return !late || (::poll(&ready, 1, 1000) == 1 &&
                         ::getsockopt(late.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0);
    }));
}

TEST_F(RelayTest, TheNextServerIsTriedAndChangedServersCount) {
    const Listener server, other;
    const auto one = relay({"127.0.0.1:1", server.address(), "127.0.0.1:1"});
    for (int i = 0; i < 3; ++i) {
        const Socket client = connect_to(one->address());
        const Socket accepted = server.accept();
        send(accepted, "s");
        EXPECT_EQ(receive(client, 1), "s");
    }
    one->set_servers({other.address()});
    const Socket client = connect_to(one->address());
    const Socket accepted = other.accept();
    send(accepted, "o");
    EXPECT_EQ(receive(client, 1), "o");
}

TEST_F(RelayTest, WhyNoServerAnswersIsTold) {
    const auto one = relay({"127.0.0.1:1"});
    const Socket client = connect_to(one->address());
    EXPECT_EQ(receive(client, 1), " and then an error");
    EXPECT_TRUE(await([&] { return problem() == ": 127.0.0.1:1: Connection refused"; })) << problem();
}

TEST_F(RelayTest, AServerMayHaveAnIpv6Address) {
    const Listener server("::1");
    if (server.address().empty()) GTEST_SKIP() << "no IPv6 here";
    const auto one = relay({server.address()});
    const Socket client = connect_to(one->address());
    const Socket accepted = server.accept();
    send(accepted, "six");
    EXPECT_EQ(receive(client, 3), "six");
    EXPECT_EQ(one->established(one->newest()), server.address());
}

TEST_F(RelayTest, AnAddressThatCannotBeReadIsAServerThatDoesNotAnswer) {
    const auto one = relay({"::1:2281"});
    const Socket client = connect_to(one->address());
    EXPECT_EQ(receive(client, 1), " and then an error");
    EXPECT_TRUE(await([&] { return problem() == ": ::1:2281: Invalid argument"; })) << problem();
}

TEST_F(RelayTest, AnExceptionEndsConnectionsAndNotTheProcess) {
    const ZkRelay one({"127.0.0.1:1"}, {500ms, 10s}, [](const ZkRelay::Problem&) { throw std::bad_alloc(); });
    for (int i = 0; i < 2; ++i) {
        const Socket client = connect_to(one.address());
        EXPECT_EQ(receive(client, 1), " and then an error");
    }
}

TEST_F(RelayTest, WithoutADescriptorItWaitsInsteadOfSpinning) {
    const auto processor_time = [] {
        timespec time{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    };
    const Listener server;
    const auto one = relay({server.address()});
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(parse_host_port(one->address()).port);
    const Socket client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit full = before;
    full.rlim_cur = static_cast<rlim_t>(Socket(::dup(client.get())).get());  // the lowest one that is free
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const auto used = processor_time();
    ::poll(nullptr, 0, 400);
    EXPECT_LT(processor_time() - used, 100ms);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    const Socket accepted = server.accept();
    send(accepted, "s");
    EXPECT_EQ(receive(client, 1), "s");
}

TEST(RelayLinkTest, AServerThatReadsNothingDoesNotKeepTheConnectionOfAClientThatHasGone) {
    const Listener server;
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    Socket client(pair[0]);
    RelayLink link(1, Socket(pair[1]), {server.address()}, {500ms, 10s});
    const Socket accepted = server.accept();
    link.established();
    const auto now = Clock::now();
    const auto step = [&](int limit) {
        std::vector<pollfd> fds;
        link.wanted(fds);
        const bool ready = ::poll(fds.data(), fds.size(), limit) > 0;
        link.go_on(fds[0], fds[1], now);
        return ready;
    };
    const std::string much(100'000, 'x');
    while (::send(client.get(), much.data(), much.size(), MSG_NOSIGNAL) > 0 || step(100)) {
    }  // until nothing fits in
    client = Socket();
    while (step(0)) {
    }
    link.on_time(now);
    EXPECT_FALSE(link.over()) << "the server may still take it";
    link.on_time(now + 2s);
    EXPECT_TRUE(link.over());
}

TEST(RelayLinkTest, WhereNothingHasComeTheConnectionGoesOn) {
    const Listener server;
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    const Socket client(pair[0]);
    RelayLink link(1, Socket(pair[1]), {server.address()}, {500ms, 10s});
    const Socket accepted = server.accept();
    const auto step = [&](short more) {
        std::vector<pollfd> fds;
        link.wanted(fds);
        ::poll(fds.data(), fds.size(), static_cast<int>(test::kMaxWait.count()));
        for (pollfd& fd : fds) fd.revents = static_cast<short>(fd.revents | more);
        link.go_on(fds[0], fds[1], Clock::now());
    };
    step(0);  // connected
    send(client, "a");
    step(POLLIN);  // as if the server had sent something, too
    EXPECT_EQ(receive(accepted, 1), "a");
    send(accepted, "b");
    step(POLLIN);
    EXPECT_EQ(receive(client, 1), "b");
    EXPECT_FALSE(link.over());
}

struct Answer {
    std::string bytes;
    const char* told;
};

TEST_F(RelayTest, WhatAServerAnswersIsRead) {
    const Answer answers[] = {
        {"", "closes the connection when the TLS handshake begins"},
        {"HTTP/1.1 400 Bad Request", "answers without TLS"},
        {std::string("\x15\x03\x03\x00\x02\x02\x46", 7), "the alert 70 (protocol_version)"},
        {std::string("\x15\x03\x03\x00\x02\x02\x7f", 7), "the alert 127"},
        {std::string("\x16\x03\x03\x00\x7a\x02", 6), "ends the connection before there is a session"},
    };
    for (const Answer& answer : answers) {
        const Listener server;
        const auto one = relay({server.address()});
        const Socket client = connect_to(one->address());
        {
            const Socket accepted = server.accept();
            if (!answer.bytes.empty()) send(accepted, answer.bytes);
        }
        EXPECT_EQ(receive(client, 1000), answer.bytes + " and then the end");
        EXPECT_TRUE(await([&] { return problem().find(answer.told) != std::string::npos; })) << problem();
        EXPECT_THAT(problem(), HasSubstr(server.address()));
    }
}

/// A link whose client is the test.
class RelayedClientTest : public testing::Test {
protected:
    RelayedClientTest() {
        int pair[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        client = Socket(pair[0]);
        link.emplace(1, Socket(pair[1]), std::vector{server.address()}, ZkRelay::Limits{500ms, 10s});
        accepted = server.accept();
    }
    /// Whether there was something to do.
    bool step(int within_ms = 100) {
        std::vector<pollfd> fds;
        link->wanted(fds);
        const bool ready = ::poll(fds.data(), fds.size(), within_ms) > 0;
        link->go_on(fds[0], fds[1], Clock::now());
        return ready;
    }
    const Listener server;
    Socket client, accepted;
    std::optional<RelayLink> link;
};

TEST_F(RelayedClientTest, AClientThatTurnsAwayIsAProblemIfTheServerHadAnswered) {
    step();  // connected
    send(accepted, "\x16");
    step();
    EXPECT_EQ(receive(client, 1), "\x16");
    client = Socket();
    ASSERT_TRUE(await([&] { return step(), link->over(); }));
    EXPECT_THAT(link->problem().text, HasSubstr("the server gives no session"));
    EXPECT_TRUE(link->problem().in_handshake);
}

TEST_F(RelayedClientTest, AClientThatTurnsAwayFromASilentServerIsNone) {
    step();
    client = Socket();
    ASSERT_TRUE(await([&] { return step(), link->over(); }));
    EXPECT_THAT(link->problem().text, testing::Not(HasSubstr("the server gives no session")));
}

TEST_F(RelayedClientTest, WhatTheClientSentBeforeItWentReachesAServerThatReadsLate) {
    link->established();
    const std::string much(100'000, 'x');
    std::size_t sent = 0, got = 0;
    while (true) {
        const ssize_t put = ::send(client.get(), much.data(), much.size(), MSG_NOSIGNAL);
        if (put > 0) {
            sent += static_cast<std::size_t>(put);
        } else if (!step()) {
            break;  // nothing fits in any more
        }
    }
    client = Socket();
    char buffer[65536];
    EXPECT_TRUE(await([&] {
        step(0);
        pollfd ready{accepted.get(), POLLIN, 0};
        if (::poll(&ready, 1, 10) != 1) return false;
        const ssize_t bytes = ::recv(accepted.get(), buffer, sizeof buffer, 0);
        if (bytes > 0) got += static_cast<std::size_t>(bytes);
        return bytes <= 0;
    })) << "nobody calls on_time()";
    EXPECT_EQ(got, sent);
}

TEST_F(RelayTest, EachConnectionBeginsWithAnotherServer) {
    const Listener a, b;
    const auto one = relay({a.address(), b.address()});
    std::set<std::string> servers;
    for (std::uint64_t number = 1; number <= 2; ++number) {
        const Socket client = connect_to(one->address());
        std::string server;
        ASSERT_TRUE(await([&] { return !(server = one->established(number)).empty(); }));
        servers.insert(server);
    }
    EXPECT_EQ(servers.size(), 2u);
}

}  // namespace
}  // namespace zkrecipes::internal
