// A machine that has addresses of one family only: this program runs in a network of its own, whose only interface is
// the loopback interface. It has no other address at first, and gets one of the family that the test wants.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>
#include <zkrecipes/session.hpp>

#include "base/socket.hpp"
#include "client/resolver.hpp"
#include "support/host_names.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

bool write_file(const char* name, const std::string& text) {
    const internal::Socket file(::open(name, O_WRONLY | O_CLOEXEC));
    return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Works only in a process without a second thread, and holds for all its later threads and child processes.
bool enter_network_of_its_own() {
    if (::unshare(CLONE_NEWNET) == 0) return true;
    const std::string user = std::to_string(::geteuid()), group = std::to_string(::getegid());
    return ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", user + " " + user + " 1") &&
           write_file("/proc/self/gid_map", group + " " + group + " 1");
}

bool set_flags(const char* interface, int flags) {
    const internal::Socket fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
    request.ifr_flags = static_cast<short>(flags);
    return ::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

/// Gives the loopback interface a further address for as long as it lives.
class Ipv4Address {
public:
    Ipv4Address() {
        const internal::Socket fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ifreq request{};
        std::strncpy(request.ifr_name, kAlias, IFNAMSIZ - 1);
        auto& address = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
        address.sin_family = AF_INET;
        ::inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
        EXPECT_EQ(::ioctl(fd.get(), SIOCSIFADDR, &request), 0);
    }
    ~Ipv4Address() { EXPECT_TRUE(set_flags(kAlias, 0)); }
    Ipv4Address(const Ipv4Address&) = delete;
    Ipv4Address& operator=(const Ipv4Address&) = delete;

private:
    static constexpr const char* kAlias = "lo:1";
};

class Ipv6Address {
public:
    Ipv6Address() {
        ::inet_pton(AF_INET6, "2001:db8::1", &request_.address);
        request_.interface = static_cast<int>(::if_nametoindex("lo"));
        works_ = ::ioctl(fd_.get(), SIOCSIFADDR, &request_) == 0;
    }
    ~Ipv6Address() { ::ioctl(fd_.get(), SIOCDIFADDR, &request_); }
    Ipv6Address(const Ipv6Address&) = delete;
    Ipv6Address& operator=(const Ipv6Address&) = delete;
    bool works() const { return works_; }

private:
    struct {  // in6_ifreq, whose header contradicts those of the C library
        in6_addr address;
        std::uint32_t prefix = 128;
        int interface = 0;
    } request_{};
    const internal::Socket fd_{::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    bool works_ = false;
};

class AddressFamiliesServerTest : public ZkServerTest {
protected:
    static void SetUpTestSuite() {
        network_ = !uses_outside_ensemble() && enter_network_of_its_own() && set_flags("lo", IFF_UP | IFF_LOOPBACK);
    }
    void SetUp() override {
        if (!network_) GTEST_SKIP() << "needs the right to make a network namespace (unshare), and a server of its own";
        ZkServerTest::SetUp();
    }
    std::string port() const { return ":" + std::to_string(server().endpoint().port); }
    /// Also that a session names the server as the user does.
    void expect_session(const std::string& hosts) {
        SessionOptions options;
        options.hosts = hosts;
        options.server_tick = server().options().tick_time;
        Session session(options);
        EXPECT_TRUE(session.wait_connected(Deadline(kMaxWait))) << hosts << ": " << session.info().problem;
        EXPECT_EQ(session.info().server, connect_string());
    }

private:
    inline static bool network_ = false;
};

TEST_F(AddressFamiliesServerTest, WhereOnlyIpv6IsConfiguredIpv4LoopbackAddressesWork) {
    const Ipv6Address only;
    if (!only.works()) GTEST_SKIP() << "this machine has no IPv6";
    host_names().set("loopback.test", {server().endpoint().address});
    host_names().set("dual.test", {"::1", server().endpoint().address});
    expect_session(connect_string());
    expect_session("loopback.test" + port());
    expect_session("dual.test" + port());
    expect_session("[::1]" + port() + "," + connect_string());
    // The relay of a session with TLS listens on this address.
    EXPECT_THAT(internal::for_c_client({"127.0.0.1:7", "[::1]:7"}), ElementsAre("[::ffff:127.0.0.1]:7", "[::1]:7"));
}

TEST_F(AddressFamiliesServerTest, WhereOnlyIpv4IsConfiguredTheOtherAddressesOfAListWork) {
    const Ipv4Address only;
    host_names().set("dual.test", {"::1", server().endpoint().address});
    expect_session(connect_string());
    expect_session("dual.test" + port());
    expect_session("[::1]" + port() + "," + connect_string());
    EXPECT_THAT(internal::for_c_client({"127.0.0.1:7", "[::1]:7"}), ElementsAre("127.0.0.1:7"));
}

TEST_F(AddressFamiliesServerTest, WhereOnlyIpv4IsConfiguredASessionSaysWhyItUsesNoIpv6Address) {
    const Ipv4Address only;
    host_names().set("ipv6.test", {"::1"});
    for (const std::string host : {"[::1]:7", "ipv6.test:7"}) {
        SessionOptions options;
        options.hosts = host;
        Session session(options);
        EXPECT_TRUE(await([&] { return !session.info().problem.empty(); })) << host;
        EXPECT_THAT(session.info().problem, AllOf(StartsWith("[::1]:7: "), HasSubstr("IPv6"), HasSubstr("IPv4")));
    }
}

TEST_F(AddressFamiliesServerTest, ASessionConnectsOnceItsNameHasAnAddressThatTheMachineCanUse) {
    host_names().set("later.test", {"::1"});
    SessionOptions options;
    options.hosts = "later.test" + port();
    options.server_tick = server().options().tick_time;
    const Ipv4Address only;
    Session session(options);
    ASSERT_TRUE(await([&] { return !session.info().problem.empty(); }));
    host_names().set("later.test", {server().endpoint().address});
    EXPECT_TRUE(session.wait_connected(Deadline(kMaxWait)));
    EXPECT_THAT(session.info().problem, IsEmpty());
}

}  // namespace
}  // namespace zkrecipes::test
