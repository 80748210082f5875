// What a server says about itself, and what a session makes of it. Fake servers on loopback, real sockets.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "session/connection/server_probe.hpp"
#include "session/connection/settings_check.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kVersion = "Zookeeper version: 3.8.0-1, built on 2023-02-22\n";
const std::string kCounts = "Latency min/avg/max: 0/0.0/0\nConnections: 1\nZxid: 0x1\n";

/// Says its words to the first one who asks, piece by piece, and then either hangs up or stays silent.
class FakeServer {
public:
    explicit FakeServer(std::vector<std::string> pieces, bool hangs_up = true)
        : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(where);
        if (::bind(listener_, reinterpret_cast<const sockaddr*>(&where), size) != 0 || ::listen(listener_, 4) != 0 ||
            ::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size) != 0)
            throw std::runtime_error("no socket on loopback");
        port_ = ntohs(where.sin_port);
        thread_ = std::thread([this, pieces = std::move(pieces), hangs_up] {
            const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (client < 0) return;
            std::array<char, 16> asked{};
            if (::recv(client, asked.data(), 4, MSG_WAITALL) == 4) {
                for (const auto& piece : pieces) ::send(client, piece.data(), piece.size(), MSG_NOSIGNAL);
            }
            // Until the one who asked has had enough.
            if (!hangs_up) (void)::recv(client, asked.data(), 1, 0);
            ::close(client);
        });
    }
    ~FakeServer() {
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }
    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;
    std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

private:
    const int listener_;
    int port_ = 0;
    std::thread thread_;
};

/// What it says when it is asked for its settings.
class SettingsProbeTest : public ::testing::Test {
protected:
    ~SettingsProbeTest() override { runtime->stop(); }
    std::string ask(const std::string& server, std::chrono::milliseconds limit = 10s) {
        std::promise<std::string> out;
        prober->ask(server, limit, [&](std::string said) { out.set_value(std::move(said)); });
        return out.get_future().get();
    }
    const std::shared_ptr<internal::Runtime> runtime = internal::make_thread_runtime();
    const std::shared_ptr<internal::SettingsProbe> prober = internal::make_settings_probe(runtime);
};

TEST_F(SettingsProbeTest, TheWholeAnswerIsReadInWhicheverPiecesItComes) {
    const FakeServer server({"clientPort=2181\ntick", "Time=2000\n", "peerType=0\n"});
    EXPECT_EQ(ask(server.host()), "clientPort=2181\ntickTime=2000\npeerType=0\n");
}

TEST_F(SettingsProbeTest, AServerThatIsSilentOrGoneCostsNoMoreThanTheLimit) {
    const FakeServer silent({"tickTime=20"}, false);
    EXPECT_EQ(ask(silent.host(), 50ms), "tickTime=20");
    std::string gone;
    {
        const FakeServer server({});
        gone = server.host();
        EXPECT_EQ(ask(gone), "");
    }
    EXPECT_EQ(ask(gone), "");
}

class ServerProbeTest : public ::testing::Test {
protected:
    ~ServerProbeTest() override { runtime->stop(); }
    std::vector<std::string> probe(std::vector<std::string> hosts, std::chrono::milliseconds limit = 10s) {
        std::promise<std::vector<std::string>> out;
        prober->probe(std::move(hosts), limit,
                      [&](std::vector<std::string> found) { out.set_value(std::move(found)); });
        return out.get_future().get();
    }
    const std::shared_ptr<internal::Runtime> runtime = internal::make_thread_runtime();
    const std::shared_ptr<internal::ServerProbe> prober = internal::make_server_probe(runtime);
};

TEST_F(ServerProbeTest, EveryModeInWhichAServerTakesWritesServes) {
    for (const char* mode : {"standalone", "leader", "follower", "observer"}) {
        const FakeServer server({kVersion, kCounts, std::string("Mode: ") + mode + "\nNode count: 5\n"}, false);
        const FakeServer silent({}, false);
        EXPECT_THAT(probe({silent.host(), server.host()}, 300ms), ElementsAre(server.host())) << mode;
    }
}

TEST_F(ServerProbeTest, AReadOnlyServerIsNotPreferredToOneThatIsSlow) {
    const FakeServer read_only({kVersion + kCounts + "Mode: read-only\nNode count: 5\n"});
    const FakeServer slow({}, false);
    EXPECT_THAT(probe({read_only.host(), slow.host()}, 300ms), ElementsAre(slow.host()));
}

TEST_F(ServerProbeTest, WhereAllSayThatTheyDoNotServeNoneIsPreferred) {
    const FakeServer read_only({kVersion + kCounts, "Mode: read-only\n"});
    const FakeServer cut_off({"This ZooKeeper instance is not currently serving requests\n"});
    EXPECT_THAT(probe({read_only.host(), cut_off.host()}), IsEmpty());
}

TEST_F(ServerProbeTest, HalfAnAnswerIsNoSignOfServing) {
    for (const std::string& half : {kVersion, kVersion + kCounts, kVersion + kCounts + "Mode: read"}) {
        const FakeServer server({kVersion + kCounts + "Mode: foll", "ower\nNode count: 5\n"});
        const FakeServer stuck({half}, false);
        EXPECT_THAT(probe({stuck.host(), server.host()}, 300ms), ElementsAre(server.host())) << half;
    }
}

TEST_F(ServerProbeTest, AServerThatMayNotSayItsModeIsPreferredWhereNobodyElseServes) {
    for (const bool with_another : {false, true}) {
        const FakeServer unknown({"srvr is not executed because it is not in the whitelist.\n"});
        const FakeServer cut_off({"This ZooKeeper instance is not currently serving requests\n"});
        const FakeServer follower({kVersion + kCounts + "Mode: follower\n"});
        std::vector<std::string> hosts{cut_off.host(), unknown.host()};
        if (with_another) hosts.push_back(follower.host());
        EXPECT_THAT(probe(hosts), ElementsAre(with_another ? follower.host() : unknown.host()));
    }
}

}  // namespace
}  // namespace zkrecipes::testing
