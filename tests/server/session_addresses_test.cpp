// One server name with several addresses. Each address is a gate in front of the same real server.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/gate.hpp>

#include "base/socket.hpp"
#include "support/host_names.hpp"
#include "support/whole.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;

constexpr int kAddresses = 5;

/// Accepts no connection, and refuses none: the kernel drops the requests for further ones.
class BlackHole {
public:
    /// Empty address: this machine has no such address.
    explicit BlackHole(std::uint16_t port) {
        listener_ = internal::Socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1;
        ::setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        sockaddr_in6 here{};
        here.sin6_family = AF_INET6;
        here.sin6_addr = IN6ADDR_LOOPBACK_INIT;
        here.sin6_port = htons(port);
        works_ = ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
                 ::listen(listener_.get(), 0) == 0;
        for (int i = 0; works_ && i < 4; ++i) {
            waiting_.push_back(internal::start_connect("[::1]:" + std::to_string(port)));
        }
    }
    bool works() const { return works_; }

private:
    internal::Socket listener_;
    std::vector<internal::Socket> waiting_;
    bool works_ = false;
};

class SessionAddressesServerTest : public ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        testenv::GateOptions raw;
        raw.raw = true;
        std::vector<std::string> addresses;
        for (int i = 0; i < kAddresses; ++i) {
            raw.port = server().endpoint().port;
            gates_.emplace_back(server().endpoint(), raw);
            addresses.push_back(gates_.back().endpoint().address);
        }
        host_names().set("all.test", addresses);
        options_.hosts = "all.test:" + std::to_string(server().endpoint().port);
        // The C client by itself waits two thirds of this for each silent address.
        options_.timeout = 60s * 10;
        options_.server_tick = server().options().tick_time;
    }
    testenv::Gate& gate(int i) { return gates_.at(static_cast<std::size_t>(i)); }
    /// The address to which the session is connected.
    int used(const Session& session) {
        for (int i = 0; i < kAddresses; ++i) {
            if (gate(i).connect_string() == session.info().server) return i;
        }
        ADD_FAILURE() << "not an address of the server: " << session.info().server;
        return 0;
    }

    SessionOptions options_;
    std::vector<testenv::Gate> gates_;
};

TEST_F(SessionAddressesServerTest, ASessionBeginsAtTheOnlyAddressOfANameThatAnswers) {
    for (int i = 1; i < kAddresses; ++i) gate(i).blackhole();
    for (int i = 0; i < share_of(20, 4); ++i) {
        Session session(options_);
        EXPECT_TRUE(session.wait_connected(Deadline(kMaxWait)));
        EXPECT_EQ(used(session), 0);
    }
}

TEST_F(SessionAddressesServerTest, AHolderKeepsItsLockWhenItsAddressDiesAndOneOfTheOthersAnswers) {
    Session session(options_);
    ASSERT_TRUE(session.wait_connected(Deadline(kMaxWait)));
    ExclusiveMutex mutex(session, path("lock"));
    const Grant grant = mutex.try_acquire_for(kMaxWait);
    ASSERT_TRUE(grant);
    for (int i = 0; i < share_of(20, 4); ++i) {
        const int before = used(session), after = (before + 1) % kAddresses;
        for (int other = 0; other < kAddresses; ++other) {
            if (other == after) {
                gate(other).pass();
            } else if (other != before) {
                gate(other).blackhole();
            }
        }
        gate(before).refuse();
        gate(before).reset_all();
        EXPECT_TRUE(await([&] { return session.info().server == gate(after).connect_string(); }));
        EXPECT_TRUE(grant.held());
        if (HasFailure()) return;
    }
    EXPECT_EQ(session.info().incarnation, 1U);
}

TEST_F(SessionAddressesServerTest, AnIpv6AddressThatIsABlackHoleKeepsNobodyFromTheIpv4Address) {
    std::optional<BlackHole> hole;
    testenv::GateOptions options;
    options.raw = true;
    // The port must be free on ::1, too.
    for (std::uint16_t port = 20'000; port < 20'050 && !(hole && hole->works()); ++port) {
        hole.emplace(port);
        options.port = port;
    }
    if (!hole->works()) GTEST_SKIP() << "this machine has no IPv6";
    const testenv::Gate gate(server().endpoint(), options);
    host_names().set("dual.test", {"::1", gate.endpoint().address});
    options_.hosts = "dual.test:" + std::to_string(options.port);
    for (int i = 0; i < share_of(20, 4); ++i) {
        Session session(options_);
        EXPECT_TRUE(session.wait_connected(Deadline(kMaxWait)));
    }
}

}  // namespace
}  // namespace zkrecipes::test
