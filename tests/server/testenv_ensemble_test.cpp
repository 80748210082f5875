#include <zkrecipes/testenv/zk_ensemble.hpp>

#include <chrono>
#include <future>
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

// Every member in turn, so that a connection past the gates, in whichever direction the numbers make it, would show.
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
