#include <zkrecipes/testenv/zk_ensemble.hpp>

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <sstream>
#include <string>
#include <zkrecipes/testenv/raw_client.hpp>

#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using testenv::CreateMode;
using testenv::EnsembleOptions;
using testenv::Opcode;
using testenv::RawClient;
using testenv::RawClientOptions;
using testenv::ZkEnsemble;

class EnsembleTest : public testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }

    static EnsembleOptions gated(EnsembleOptions options = {}) {
        options.gated_links = true;
        return options;
    }
    static RawClient connect(const ZkEnsemble& ensemble, int member) {
        RawClientOptions options;
        options.session_timeout = 20s;
        return RawClient(ensemble.connect_string(member), options);
    }
};

TEST_F(EnsembleTest, AllMembersServeWhenTheConstructorReturns) {
    ZkEnsemble ensemble(3);
    ASSERT_TRUE(ensemble.leader());
    EXPECT_EQ(ensemble.member(*ensemble.leader()).mode(), "leader");
    EXPECT_EQ(ensemble.member(ensemble.follower()).mode(), "follower");
    connect(ensemble, 0).create("/a");
    auto other = connect(ensemble, 2);
    other.sync("/a");
    EXPECT_TRUE(other.exists("/a"));
}

TEST_F(EnsembleTest, OneServerIsTheLeaderOfItself) {
    EnsembleOptions options;
    options.servers = 1;
    ZkEnsemble ensemble(gated(options));
    EXPECT_EQ(ensemble.wait_quorum(), 0);
    EXPECT_THROW((void)ensemble.follower(), testenv::Error);
    ensemble.isolate(0);  // there is nobody to cut it off from
    connect(ensemble, 0).create("/a");
    EXPECT_TRUE(connect(ensemble, 0).exists("/a"));
}

TEST_F(EnsembleTest, NoServersAreRefusedAtOnce) {
    for (const int servers : {0, -1}) {
        EXPECT_THAT([&] { ZkEnsemble ensemble(servers); },
                    testing::ThrowsMessage<testenv::Error>(testing::HasSubstr("at least one server")))
            << servers;
    }
}

TEST_F(EnsembleTest, SurvivesTheDeathOfItsLeaderAndTakesItBack) {
    ZkEnsemble ensemble(3);
    const int old_leader = ensemble.wait_quorum();
    connect(ensemble, old_leader).create("/a");
    ensemble.kill(old_leader);
    const int new_leader = ensemble.wait_quorum();
    EXPECT_NE(new_leader, old_leader);
    EXPECT_TRUE(connect(ensemble, new_leader).exists("/a"));
    ensemble.restart(old_leader);
    EXPECT_EQ(ensemble.wait_quorum(), new_leader);
    auto client = connect(ensemble, old_leader);
    client.sync("/a");
    EXPECT_TRUE(client.exists("/a"));
}

TEST_F(EnsembleTest, GoesOnWithoutAFrozenLeader) {
    ZkEnsemble ensemble(3);
    const int old_leader = ensemble.wait_quorum();
    ensemble.freeze(old_leader);
    const int new_leader = ensemble.wait_quorum();
    EXPECT_NE(new_leader, old_leader);
    ensemble.thaw(old_leader);
    EXPECT_EQ(ensemble.wait_quorum(), new_leader);
}

TEST_F(EnsembleTest, EndsASessionAtOnceWhicheverMemberItIsAt) {
    ZkEnsemble ensemble(3);
    auto client = connect(ensemble, ensemble.follower());
    client.create("/mine", "", CreateMode::ephemeral);
    ensemble.expire_session(client.session_id(), client.password());
    auto observer = connect(ensemble, ensemble.follower());
    observer.sync("/");
    EXPECT_FALSE(observer.exists("/mine"));
}

// The case in which a lock that trusts its last answer goes wrong: the server still answers, from a past that is over.
TEST_F(EnsembleTest, FollowerCutOffFromItsPeersStillAnswersItsClientsWithStockLimits) {
    ZkEnsemble ensemble(gated(EnsembleOptions::stock()));
    const int follower = ensemble.follower();
    auto client = connect(ensemble, follower);
    EXPECT_FALSE(client.exists("/later"));
    ensemble.isolate(follower);
    connect(ensemble, ensemble.wait_quorum()).create("/later");
    for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(client.exists("/later"));
    }
    EXPECT_EQ(ensemble.member(follower).mode(), "follower");
    auto write = client.send(Opcode::create, RawClient::create_body("/never", "", 0));
    EXPECT_EQ(write.wait_for(0s), std::future_status::timeout);
    // It notices after sync limit times tick, and serves nobody until it is back.
    EXPECT_TRUE(await([&] { return !ensemble.member(follower).serving(); }, kMaxWait));
    ensemble.heal(follower);
    ensemble.wait_quorum();
    auto again = connect(ensemble, follower);
    again.sync("/later");
    EXPECT_TRUE(again.exists("/later"));
}

TEST_F(EnsembleTest, LeaderCutOffIsReplacedAndComesBackAsAFollower) {
    ZkEnsemble ensemble(gated());
    const int old_leader = ensemble.wait_quorum();
    ensemble.isolate(old_leader);
    const int new_leader = ensemble.wait_quorum();
    EXPECT_NE(new_leader, old_leader);
    connect(ensemble, new_leader).create("/a");
    ensemble.heal();
    EXPECT_EQ(ensemble.wait_quorum(), new_leader);
    EXPECT_EQ(ensemble.member(old_leader).mode(), "follower");
}

/// "address:port" of the peers to which a process has TCP connections.
std::set<std::string> connected_to(int pid) {
    std::set<std::string> sockets;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
        std::error_code error;  // the descriptor may be closed by now
        sockets.insert(std::filesystem::read_symlink(entry.path(), error).string());
    }
    std::set<std::string> peers;
    std::ifstream table("/proc/" + std::to_string(pid) + "/net/tcp");
    for (std::string line; std::getline(table, line);) {
        std::istringstream words(line);
        std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
        words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
        if (sockets.count("socket:[" + inode + "]") == 0 || remote.size() != 13) {
            continue;
        }
        const auto address = std::stoul(remote.substr(0, 8), nullptr, 16);  // in the byte order of the wire
        peers.insert(std::to_string(address & 255) + "." + std::to_string(address >> 8 & 255) + "." +
                     std::to_string(address >> 16 & 255) + "." + std::to_string(address >> 24) + ":" +
                     std::to_string(std::stoul(remote.substr(9), nullptr, 16)));
    }
    return peers;
}

// On an election connection each member tells the other how it can be reached, which must not be past the gate.
TEST_F(EnsembleTest, GatedMembersHaveNoConnectionsPastTheGates) {
    ZkEnsemble ensemble(gated());
    for (int restarted = 0; restarted < ensemble.size(); ++restarted) {
        ensemble.restart(restarted);
        ensemble.wait_quorum();
        int seen = 0;
        for (int i = 0; i < ensemble.size(); ++i) {
            for (const auto& peer : connected_to(ensemble.member(i).pid())) {
                const auto port = peer.substr(peer.find(':') + 1);
                seen += port == "3888" || port == "2888" ? 1 : 0;
                for (int j = 0; j < ensemble.size(); ++j) {
                    const auto& address = ensemble.member(j).endpoint().address;
                    EXPECT_NE(peer.substr(0, peer.find(':')), address) << i << " is connected to " << peer;
                }
            }
        }
        EXPECT_GE(seen, ensemble.size() - 1);
    }
}

TEST_F(EnsembleTest, EachMemberCanBeCutOff) {
    ZkEnsemble ensemble(gated());
    for (int i = 0; i < ensemble.size(); ++i) {
        ensemble.isolate(i);
        EXPECT_TRUE(await([&] { return !ensemble.member(i).serving(); })) << i;
        ensemble.wait_quorum();
        EXPECT_FALSE(ensemble.member(i).serving()) << i;
        ensemble.heal(i);
        ensemble.wait_quorum();
        EXPECT_TRUE(ensemble.member(i).serving()) << i;
    }
}

TEST_F(EnsembleTest, RestartedMembersStayBehindTheirGates) {
    ZkEnsemble ensemble(gated());
    for (int i = 0; i < ensemble.size(); ++i) {
        ensemble.restart(i);
        ensemble.wait_quorum();
    }
    ensemble.isolate(0);
    EXPECT_TRUE(await([&] { return !ensemble.member(0).serving(); }));
    ensemble.wait_quorum();
    EXPECT_FALSE(ensemble.member(0).serving());
}

TEST_F(EnsembleTest, LargerGroupOfAPartitionServesAndTheSmallerDoesNot) {
    EnsembleOptions options;
    options.servers = 5;
    ZkEnsemble ensemble(gated(options));
    ensemble.partition({0, 4}, {1, 2, 3});
    const int leader = ensemble.wait_quorum();
    EXPECT_TRUE(leader >= 1 && leader <= 3) << leader;
    EXPECT_TRUE(await([&] { return !ensemble.member(0).serving() && !ensemble.member(4).serving(); }));
    ensemble.heal();
    ensemble.wait_quorum();
    EXPECT_TRUE(ensemble.member(0).serving());
    EXPECT_TRUE(ensemble.member(4).serving());
}

TEST_F(EnsembleTest, CutsOnlyGatedLinks) {
    testenv::EnsembleOptions options;
    options.servers = 3;
    ZkEnsemble ensemble(options);
    EXPECT_THROW(ensemble.isolate(0), testenv::Error);
}

}  // namespace
}  // namespace zkrecipes::test
