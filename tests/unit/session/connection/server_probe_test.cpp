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
#include "support/host_names.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using test::host_names;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kVersion = "Zookeeper version: 3.8.0-1, built on 2023-02-22\n";
const std::string kCounts = "Latency min/avg/max: 0/0.0/0\nConnections: 1\nZxid: 0x1\n";

/// Says its words to the first one who asks, piece by piece, and then either hangs up or stays silent.
class FakeServer {
public:
    explicit FakeServer(std::vector<std::string> pieces, bool hangs_up = true, const std::string& address = "127.0.0.1",
                        int port = 0)
        : address_(address), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_port = htons(static_cast<std::uint16_t>(port));
        ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
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
    std::string host() const { return address_ + ":" + std::to_string(port_); }
    int port() const { return port_; }

private:
    const std::string address_;
    const int listener_;
    int port_ = 0;
    std::thread thread_;
};

/// With a silent server a question lasts for its whole limit: short at first, longer where the machine is slow.
template <class Attempt>
bool in_some_time(Attempt attempt) {
    for (const std::chrono::milliseconds limit : {300ms, 3000ms, 20'000ms}) {
        if (attempt(limit)) return true;
    }
    return false;
}

/// What it says when it is asked for its settings.
class SettingsProbeTest : public ::testing::Test {
protected:
    ~SettingsProbeTest() override { runtime->stop(); }
    std::string ask(const std::string& server, std::chrono::milliseconds limit = 60s) {
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
    EXPECT_TRUE(in_some_time([&](auto limit) {
        const FakeServer silent({"tickTime=20"}, false);
        return ask(silent.host(), limit) == "tickTime=20";
    }));
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
    std::vector<std::string> probe(std::vector<std::string> hosts, std::chrono::milliseconds limit = 60s) {
        std::promise<std::vector<std::string>> out;
        prober->probe(std::move(hosts), limit, [&](const internal::ServerProbe::Found& found) {
            all_cut = found.all_cut;
            leaderless = found.leaderless;
            awake = found.awake;
            out.set_value(found.best);
        });
        return out.get_future().get();
    }
    bool all_cut = false, leaderless = false;
    std::vector<std::string> awake;
    const std::shared_ptr<internal::Runtime> runtime = internal::make_thread_runtime();
    const std::shared_ptr<internal::ServerProbe> prober = internal::make_server_probe(runtime);
};

TEST_F(ServerProbeTest, EveryModeInWhichAServerTakesWritesServes) {
    for (const char* mode : {"standalone", "leader", "follower", "observer"}) {
        EXPECT_TRUE(in_some_time([&](auto limit) {
            const FakeServer server({kVersion, kCounts, std::string("Mode: ") + mode + "\nNode count: 5\n"}, false);
            const FakeServer silent({}, false);
            return probe({silent.host(), server.host()}, limit) == std::vector{server.host()};
        })) << mode;
    }
}

TEST_F(ServerProbeTest, DuringAnElectionTheServersThatTakePartArePreferredToOneThatIsFrozen) {
    EXPECT_TRUE(in_some_time([&](auto limit) {
        const std::string no = "This ZooKeeper instance is not currently serving requests\n";
        const FakeServer first({no}), frozen({}, false);
        const FakeServer second({kVersion + kCounts + "Mode: read-only\nNode count: 5\n"});
        const std::vector awake_ones{first.host(), second.host()};
        return probe({first.host(), frozen.host(), second.host()}, limit) == awake_ones && leaderless &&
               awake == awake_ones;
    }));
    const FakeServer follower({kVersion + kCounts + "Mode: follower\n"});
    EXPECT_THAT(probe({follower.host(), "127.0.0.3:1"}), ElementsAre(follower.host()));
    EXPECT_FALSE(leaderless);
}

TEST_F(ServerProbeTest, ThatAllCutTheConnectionAtOnceIsTold) {
    const FakeServer first({}), second({});
    EXPECT_THAT(probe({first.host(), "127.0.0.3:1", second.host()}), ElementsAre(first.host(), second.host()));
    EXPECT_TRUE(all_cut) << "one that refuses connections says nothing about it";
    const FakeServer cuts({}), says_no({"This ZooKeeper instance is not currently serving requests\n"});
    probe({cuts.host(), says_no.host()});
    EXPECT_FALSE(all_cut);
    probe({"127.0.0.3:1"});
    EXPECT_FALSE(all_cut);
}

TEST_F(ServerProbeTest, HalfAnAnswerIsNoSignOfServing) {
    for (const std::string& half : {kVersion, kVersion + kCounts, kVersion + kCounts + "Mode: read"}) {
        EXPECT_TRUE(in_some_time([&](auto limit) {
            const FakeServer server({kVersion + kCounts + "Mode: foll", "ower\nNode count: 5\n"});
            const FakeServer stuck({half}, false);
            return probe({stuck.host(), server.host()}, limit) == std::vector{server.host()};
        })) << half;
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

TEST_F(ServerProbeTest, AServerThatMayNotSayItsModeIsPreferredToOneThatIsFrozen) {
    EXPECT_TRUE(in_some_time([&](auto limit) {
        const FakeServer unknown({"srvr is not executed because it is not in the whitelist.\n"});
        const FakeServer frozen({}, false);
        return probe({frozen.host(), unknown.host()}, limit) == std::vector{unknown.host()};
    }));
}

const std::string kServes = kVersion + kCounts + "Mode: follower\n";

TEST_F(ServerProbeTest, NothingIsWaitedForBehindAWholeAnswer) {
    for (const std::string& whole : {kServes, std::string(4096, 'x')}) {
        const FakeServer server({whole}, false);
        EXPECT_THAT(probe({server.host()}, 1h), ElementsAre(server.host()));
    }
}

TEST_F(ServerProbeTest, OfAServerNameWithSeveralAddressesThoseThatServeAreThePreferred) {
    host_names().set("several.test", {"127.0.0.3", "127.0.0.2", "127.0.0.1", "127.0.0.4"});
    EXPECT_TRUE(in_some_time([&](auto limit) {
        const FakeServer first({kServes}), frozen({}, false, "127.0.0.2", first.port());
        const FakeServer third({kServes}, true, "127.0.0.3", first.port());
        const std::string host = "several.test:" + std::to_string(first.port());
        return probe({host}, limit) == std::vector{first.host(), third.host()};
    }));
}

TEST_F(ServerProbeTest, WhereAllAddressesServeTheAnswerIsTheNames) {
    const FakeServer first({kServes}), second({kServes}, true, "127.0.0.2", first.port());
    host_names().set("both.test", {"127.0.0.1", "127.0.0.2"});
    const std::string host = "both.test:" + std::to_string(first.port());
    // The literal is one of the addresses of the name: it is asked once.
    EXPECT_THAT(probe({host, first.host()}), ElementsAre(host, first.host()));
}

TEST_F(ServerProbeTest, ANameWithoutAnAddressCountsAsOneThatDoesNotAnswer) {
    const FakeServer server({kServes});
    host_names().set("unknown.test", {});
    EXPECT_THAT(probe({server.host(), "unknown.test:1"}), ElementsAre(server.host()));
}

TEST_F(ServerProbeTest, WhatALookUpLeftInErrnoDoesNotHideAnAnswer) {
    const FakeServer says_no({"This ZooKeeper instance is not currently serving requests\n"});
    const FakeServer server({kServes});
    host_names().set("last.test", {});
    EXPECT_THAT(probe({says_no.host(), server.host(), "last.test:1"}, 20s), ElementsAre(server.host()));
}

TEST_F(ServerProbeTest, TheLastAddressesCountWhileTheNameServiceIsDown) {
    const FakeServer before({kServes});
    host_names().set("moving.test", {"127.0.0.1"});
    const std::string host = "moving.test:" + std::to_string(before.port());
    EXPECT_THAT(probe({host}), ElementsAre(host));
    host_names().set("moving.test", {"127.0.0.2"});
    const FakeServer after({kServes}, true, "127.0.0.2", before.port());
    EXPECT_THAT(probe({host, "127.0.0.3:1"}), ElementsAre(after.host()));
    host_names().set("moving.test", {});
    EXPECT_THAT(probe({host, "127.0.0.3:1"}, 300ms), ElementsAre(after.host())) << "it accepts, and says nothing";
}

}  // namespace
}  // namespace zkrecipes::testing
