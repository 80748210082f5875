// The settings of servers on which the lease rests: how they are read, what follows from them, and when they are asked
// for.
#include "session/connection/server_settings.hpp"

#include <algorithm>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using internal::judge_tick;
using internal::read_settings;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// As a server of an ensemble says it.
std::string conf(int tick_ms, int peer_type = 0) {
    return "clientPort=2181\nsecureClientPort=-1\ndataDir=/data/version-2\ndataDirSize=67108880\n"
           "dataLogDir=/data/version-2\ndataLogSize=679\ntickTime=" +
           std::to_string(tick_ms) +
           "\nmaxClientCnxns=60\nminSessionTimeout=1000\nmaxSessionTimeout=40000\nclientPortListenBacklog=-1\n"
           "serverId=1\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=3888\nquorumPort=2888\npeerType=" +
           std::to_string(peer_type) + "\nmembership: \nserver.1=zk1:2888:3888:participant;0.0.0.0:2181\nversion=0";
}

TEST(ServerSettingsTest, TheTickAndTheRoleAreRead) {
    EXPECT_EQ(read_settings(conf(2000)), (ServerSettings{2s, false}));
    EXPECT_EQ(read_settings(conf(3000, 1)), (ServerSettings{3s, true}));
    EXPECT_EQ(read_settings("tickTime=100\r\n"), (ServerSettings{100ms, false}));
}

TEST(ServerSettingsTest, WhatIsNotSurelyATickIsNone) {
    for (const char* const answer : {"", "conf is not executed because it is not in the whitelist.\n", "tickTime=10",
                                     "tickTime=\n", "tickTime=x\n", "tickTime=10x\n", "tickTime=0\n", "tickTime=-5\n",
                                     "tickTime=99999999999999999999\n", "tickTime=9999999999\n", "myTickTime=5\n",
                                     "tickTimes=5\n", "This ZooKeeper instance is not currently serving requests\n"}) {
        EXPECT_FALSE(read_settings(answer)) << answer;
    }
}

TEST(ServerSettingsTest, TwoTicksFitIntoTheTimeoutOrTheLongerTickIsAssumed) {
    const auto verdict = [](std::chrono::milliseconds tick, std::chrono::milliseconds timeout) {
        return judge_tick({tick, false}, "zk1:2181", 0ms, timeout);
    };
    EXPECT_EQ(verdict(2s, 4s).assume, 0ms);
    EXPECT_THAT(verdict(2s, 4s).warning, IsEmpty());
    EXPECT_EQ(verdict(2s, 3999ms).assume, 2s);
    const auto violated = verdict(10s, 3s);
    EXPECT_EQ(violated.assume, 10s);
    EXPECT_THAT(violated.warning, HasSubstr("zk1:2181 has a tickTime of 10000 ms: a session timeout of 3000 ms"));
    EXPECT_THAT(violated.warning, HasSubstr("Set SessionOptions::timeout to 20000 ms or more"))
        << "with that tick stated, no lease of 3 s is long enough";
    EXPECT_THAT(verdict(10s, 9s).warning,
                HasSubstr("Set SessionOptions::server_tick to 10000 ms, or SessionOptions::timeout to 20000 ms"));
}

TEST(ServerSettingsTest, AnObserverNeedsTwiceAsMuch) {
    const auto verdict = [](std::chrono::milliseconds stated, std::chrono::milliseconds timeout) {
        return judge_tick({2s, true}, "zk1:2181", stated, timeout);
    };
    EXPECT_THAT(verdict(0ms, 8s).warning, IsEmpty());
    EXPECT_EQ(verdict(0ms, 7999ms).assume, 4s);
    EXPECT_THAT(verdict(0ms, 7999ms).warning, HasSubstr("observerMasterPort"));
    EXPECT_THAT(verdict(4s, 5s).warning, IsEmpty());
    EXPECT_THAT(verdict(2s, 5s).warning, HasSubstr("Set it to 4000 ms"));
    EXPECT_EQ(verdict(2s, 5s).assume, 0ms) << "the program may know that there is no observer master";
}

TEST(ServerSettingsTest, AStatementThatAServerContradictsIsNamedAndDoesNotCount) {
    const auto doubt = judge_tick({10s, false}, "zk1:2181", 2s, 3s);
    EXPECT_EQ(doubt.assume, 10s);
    EXPECT_THAT(doubt.warning, HasSubstr("SessionOptions::server_tick is only 2000 ms"));
    EXPECT_THAT(doubt.warning, HasSubstr("Set it to 10000 ms, and SessionOptions::timeout to 20000 ms or more"));
    EXPECT_THAT(judge_tick({10s, false}, "zk1:2181", 10s, 3s).warning, IsEmpty());
}

/// A session whose servers are asked for their settings; the test answers.
class SettingsCheckTest : public SessionTest {
protected:
    class FakeSettings final : public SettingsProbe {
    public:
        void ask(std::string server, std::chrono::milliseconds, std::function<void(std::string)> done) override {
            asked.push_back(std::move(server));
            answer = std::move(done);
        }
        std::vector<std::string> asked;
        std::function<void(std::string)> answer;
    };

    SettingsCheckTest() {
        options.server_tick = 0ms;  // T is 6 s
        options.logger = nullptr;
        options.log = [this](LogLevel level, const std::string& line) {
            if (level >= LogLevel::warning) log.push_back(line);
        };
        settings = fake;
    }
    ~SettingsCheckTest() override {
        fake->answer = nullptr;  // it keeps the session
        destroy();               // which logs until then
    }
    void answer(const std::string& text) {
        ASSERT_TRUE(fake->answer);
        std::exchange(fake->answer, nullptr)(text);
        runtime->run();
    }
    /// A hold that is kept by heartbeats for that long.
    void beat(std::chrono::milliseconds time) {
        for (auto t = 0ms; t < time; t += 100ms) {
            runtime->advance(100ms);
            commit_heartbeats();
        }
    }
    const std::shared_ptr<FakeSettings> fake = std::make_shared<FakeSettings>();
    std::vector<std::string> log;
};

TEST_F(SettingsCheckTest, ServersThatSeemNotToBeZooKeepersAreSaidOnceForEachSession) {  // H127
    open();
    client().by_zookeeper = false;
    for (int i = 0; i < 2; ++i) {
        client().connect(kFirstSession);
        runtime->run();
        EXPECT_FALSE(core->incarnation().by_zookeeper);
        client().disconnect();
        runtime->run();
    }
    const auto told = std::ranges::count_if(
        log, [](const std::string& line) { return line.find("seem not to be ZooKeeper") != line.npos; });
    EXPECT_EQ(told, 1);
}

TEST_F(SettingsCheckTest, AServerIsAskedOnceASixthOfTheTimeoutAfterTheConnect) {
    open_connected();
    const std::string server = core->info().server;
    runtime->advance(999ms);
    EXPECT_THAT(fake->asked, IsEmpty()) << "a session that is soon closed costs the servers nothing";
    runtime->advance(1ms);
    EXPECT_THAT(fake->asked, ElementsAre(server));
    answer(conf(3000));
    EXPECT_THAT(log, IsEmpty()) << "two of its ticks fit into the timeout";
    client().disconnect();
    client().connect(kFirstSession);
    runtime->advance(2s);
    EXPECT_EQ(fake->asked.size(), 1u);
}

TEST_F(SettingsCheckTest, AServerThatIsNotConnectedAnyMoreIsNotAsked) {
    open_connected();
    client().disconnect();
    runtime->advance(3s);
    EXPECT_THAT(fake->asked, IsEmpty());
}

TEST_F(SettingsCheckTest, ALongTickIsSaidOnceAndTheLeaseDoesNotRestOnAShorterOne) {
    open_connected();
    const Instant connected = now();
    const auto held = hold("/n");
    beat(1s);
    answer(conf(10'000));
    ASSERT_EQ(log.size(), 2u);
    EXPECT_THAT(log[0], HasSubstr("has a tickTime of 10000 ms"));
    EXPECT_THAT(log[1], EndsWith("which is too short for their tickTime of 10000 ms: no lock can be held for sure. Ask "
                                 "for a longer SessionOptions::timeout or raise minSessionTimeout"));
    EXPECT_TRUE(held->held());
    beat(4900ms);
    EXPECT_TRUE(held->held());
    beat(200ms);  // the servers may end the session 6 s after the connect, whatever was committed since
    EXPECT_FALSE(held->held());
    EXPECT_LE(connected + 5940ms, now());
    EXPECT_THAT(log.back(), HasSubstr("lost /n"));
    log.clear();
    client().disconnect();
    client().connect(kFirstSession);
    runtime->advance(2s);
    EXPECT_THAT(log, ElementsAre(HasSubstr("connection lost"))) << "not again for each connect";
}

TEST_F(SettingsCheckTest, AHoldWhoseLeaseRestedOnTooShortATickIsLostAtOnce) {
    open_connected();
    const auto held = hold("/n");
    beat(1s);
    const auto late = std::exchange(fake->answer, nullptr);
    beat(5s);
    EXPECT_TRUE(held->held());
    late(conf(10'000));
    runtime->run();
    EXPECT_FALSE(held->held());
    EXPECT_THAT(log, Contains(HasSubstr("a server told a longer tickTime than was assumed")));
}

TEST_F(SettingsCheckTest, AStatedTickThatAServerContradictsIsNamedAndTheLeaseDoesNotRestOnIt) {
    options.server_tick = 2s;
    open_connected();
    const auto held = hold("/n");
    beat(1s);
    answer(conf(10'000));
    ASSERT_FALSE(log.empty());
    EXPECT_THAT(log[0], HasSubstr("SessionOptions::server_tick is only 2000 ms"));
    EXPECT_TRUE(held->held());
    beat(8s);
    EXPECT_FALSE(held->held());
}

TEST_F(SettingsCheckTest, AStatedTickThatIsTooLongIsNotSaidToBeTheServers) {
    options.server_tick = 9s;
    open_connected();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_THAT(log[0], EndsWith("which is too short for the tickTime of 9000 ms that SessionOptions::server_tick "
                                 "states: no lock can be held for sure. Ask for a longer SessionOptions::timeout or "
                                 "raise minSessionTimeout, or correct SessionOptions::server_tick"));
}

TEST_F(SettingsCheckTest, AStatedTickThatAServerExceedsIsTheServers) {
    options.server_tick = 2s;
    open_connected();
    runtime->advance(1s);
    answer(conf(10'000));
    EXPECT_THAT(log, Contains(HasSubstr("too short for their tickTime of 10000 ms")));
}

TEST_F(SettingsCheckTest, WhatAServerToldIsJudgedAnewForEachTimeout) {
    open_connected();
    runtime->advance(1s);
    answer(conf(3000));
    EXPECT_THAT(log, IsEmpty());
    client().expire();
    runtime->run();
    client().connect(kFirstSession + 1, 5s);
    runtime->run();
    EXPECT_THAT(log, Contains(HasSubstr("a session timeout of 5000 ms is less than two ticks")));
}

TEST_F(SettingsCheckTest, AServerThatDoesNotTellChangesNothing) {
    open_connected();
    const auto held = hold("/n");
    beat(1s);
    answer("conf is not executed because it is not in the whitelist.\n");
    beat(8s);
    EXPECT_TRUE(held->held());
    EXPECT_THAT(log, IsEmpty());
    client().disconnect();
    client().connect(kFirstSession);
    runtime->advance(1s);
    EXPECT_EQ(fake->asked.size(), 2u) << "perhaps it does now";
}

TEST_F(SettingsCheckTest, AnAnswerThatComesAfterTheEndIsDropped) {
    open_connected();
    runtime->advance(1s);
    const auto late = std::exchange(fake->answer, nullptr);
    runtime->while_running([this] { core->close(); });
    log.clear();
    late(conf(10'000));
    runtime->run();
    EXPECT_THAT(log, IsEmpty());
}

TEST_F(SettingsCheckTest, AnEndThatALongerTickBringsNearerIsSeenByReadersAtOnce) {
    open_connected();
    const Instant connected = now();
    const auto held = hold("/n");
    beat(1s);
    const auto late = std::exchange(fake->answer, nullptr);
    beat(2s);
    late(conf(10'000));
    runtime->run();
    EXPECT_TRUE(held->held());
    EXPECT_LE(now() + held->remaining_lease(), connected + 5940ms);
}

}  // namespace
}  // namespace zkrecipes::testing
