#include <algorithm>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionProbeTest : public SessionTest {
protected:
    SessionProbeTest() { probe = std::make_shared<FakeProbe>(); }
    void answer(const std::vector<std::string>& hosts, const std::vector<std::string>& awake = {}) {
        probe->answer(hosts, awake);
        runtime->run();
    }
};

TEST_F(SessionProbeTest, AConnectThatIsQuickAsksNobody) {
    open_connected();
    runtime->advance(1min);
    EXPECT_THAT(probe->asked, IsEmpty());
}

TEST_F(SessionProbeTest, TheServersThatAnswerAreTriedFirst) {
    open();
    runtime->advance(100ms);
    ASSERT_EQ(probe->asked.size(), 1u);
    EXPECT_THAT(probe->asked[0], ElementsAre("a:1", "b:2", "c:3"));
    answer({"c:3"});
    EXPECT_THAT(client().servers, ElementsAre(std::vector<std::string>{"c:3"}));
}

TEST_F(SessionProbeTest, TheFullListIsBackBeforeTheNextSearchAndNeverTouchedWhileConnected) {
    open();
    runtime->advance(100ms);
    answer({"c:3"});
    client().connect(1);
    runtime->advance(1min);
    EXPECT_EQ(client().servers.size(), 1u);
    client().disconnect();
    ASSERT_EQ(client().servers.size(), 2u);
    EXPECT_THAT(client().servers.back(), ElementsAre("a:1", "b:2", "c:3"));
    runtime->advance(100ms);
    EXPECT_EQ(probe->asked.size(), 2u);
    answer({"a:1", "b:2"});
    EXPECT_THAT(client().servers.back(), ElementsAre("a:1", "b:2"));
}

TEST_F(SessionProbeTest, WhenAllAnswerTheClientIsNotDisturbed) {
    open();
    runtime->advance(100ms);
    answer({"a:1", "b:2", "c:3"});
    EXPECT_THAT(client().servers, IsEmpty());
}

TEST_F(SessionProbeTest, OneNameIsReplacedByAsManyOfItsAddressesAsAnswer) {
    options.hosts = "all:1";
    open();
    runtime->advance(100ms);
    answer({"127.0.0.1:1"});
    EXPECT_THAT(client().servers.back(), ElementsAre("127.0.0.1:1"));
    client().connect(1);
    client().disconnect();
    EXPECT_THAT(client().servers.back(), ElementsAre("all:1")) << "and looked up again";
}

TEST_F(SessionProbeTest, AnAnswerThatComesAfterTheConnectChangesNothing) {
    open();
    runtime->advance(100ms);
    client().connect(1);
    answer({"c:3"});
    EXPECT_THAT(client().servers, IsEmpty());
    client().disconnect();
    EXPECT_THAT(client().servers, IsEmpty());
    runtime->advance(100ms);
    EXPECT_EQ(probe->asked.size(), 2u) << "and the next outage is probed again";
}

TEST_F(SessionProbeTest, WhileNobodyAnswersItAsksOnMoreRarely) {
    open();
    for (int i = 0; i < 6000; ++i) {
        runtime->advance(100ms);
        while (!probe->waiting.empty()) answer({});
    }
    EXPECT_GT(probe->asked.size(), 50u);
    EXPECT_LT(probe->asked.size(), 130u);
    EXPECT_THAT(client().servers, IsEmpty());
}

TEST_F(SessionProbeTest, OneThatComesBackInTheMeantimeIsFound) {
    open();
    runtime->advance(100ms);
    answer({});
    runtime->advance(2s);
    answer({"b:2"});
    EXPECT_THAT(client().servers, ElementsAre(std::vector<std::string>{"b:2"}));
    runtime->advance(20s);
    answer({"a:1"});
    EXPECT_THAT(client().servers.back(), ElementsAre("a:1"));
}

TEST_F(SessionProbeTest, AServerThatTheClientDoesNotGetOnWithLeavesTheOthersTheirTurn) {
    open();
    runtime->advance(100ms);
    answer({"c:3"});
    const auto probed = [&](const std::vector<std::string>& awake) {
        for (const auto asked = probe->asked.size(); probe->asked.size() == asked;) runtime->advance(100ms);
        answer({"c:3"}, awake);
        return client().servers.back();
    };
    EXPECT_THAT(probed({"b:2", "c:3"}), ElementsAre("c:3")) << "the client has its time";
    EXPECT_THAT(probed({"b:2", "c:3"}), ElementsAre("b:2", "c:3")) << "then any that is not frozen will do";
    EXPECT_THAT(probed({"b:2", "c:3"}), ElementsAre("a:1", "b:2", "c:3")) << "the frozen one may only be slow";
    EXPECT_THAT(probed({"b:2", "c:3"}), ElementsAre("b:2", "c:3"));
    EXPECT_THAT(probed({"c:3"}), ElementsAre("c:3"));
}

TEST_F(SessionProbeTest, ServersThatSeemToServeInTurnLeaveTheOthersTheirTurn) {
    open();
    runtime->advance(100ms);
    for (int i = 0; i < 3000; ++i) {
        runtime->advance(100ms);
        while (!probe->waiting.empty()) answer({probe->asked.size() % 2 == 0 ? "a:1" : "b:2"});
    }
    const auto turns = std::ranges::count_if(client().servers, [](const auto& list) { return list.size() == 3; });
    EXPECT_GT(turns, 4);
}

TEST_F(SessionProbeTest, AServerThatIsSlowIsGivenLongerFromOneProbeToTheNext) {
    open();
    for (int i = 0; i < 300; ++i) {
        runtime->advance(100ms);
        while (!probe->waiting.empty()) answer({"c:3"});
    }
    ASSERT_GT(probe->limits.size(), 4u);
    EXPECT_EQ(probe->limits[0], 500ms);
    EXPECT_EQ(probe->limits[1], 1000ms);
    EXPECT_EQ(probe->limits[2], 1500ms) << "a quarter of the session timeout";
    EXPECT_EQ(probe->limits[3], 1500ms);
    client().connect(1);
    runtime->run();
    client().disconnect();
    runtime->advance(100ms);
    EXPECT_EQ(probe->limits.back(), 500ms);
}

TEST_F(SessionProbeTest, ClosingMayGoThroughAnyServer) {
    open();
    runtime->advance(100ms);
    answer({"c:3"});
    client().connect(1);
    runtime->run();
    runtime->while_running([this] { core->close(); });
    EXPECT_THAT(client().servers.back(), ElementsAre("a:1", "b:2", "c:3"));
}

TEST_F(SessionProbeTest, AfterAConnectItIsPreferredAgain) {
    open();
    runtime->advance(100ms);
    answer({"c:3"});
    client().connect(1);
    runtime->run();
    client().disconnect();
    runtime->advance(100ms);
    answer({"c:3"});
    ASSERT_EQ(client().servers.size(), 3u);
    EXPECT_THAT(client().servers.back(), ElementsAre("c:3"));
}

TEST_F(SessionProbeTest, AfterTheEndOfASessionItIsPreferredAgain) {
    open_connected();
    client().disconnect();
    runtime->advance(100ms);
    answer({"c:3"});
    EXPECT_THAT(client().servers, ElementsAre(std::vector<std::string>{"c:3"}));
    // In a long outage the probes are rare; the new session's first one is not.
    for (int i = 0; i < 600; ++i) {
        runtime->advance(100ms);
        while (!probe->waiting.empty()) answer({"c:3"});
    }
    client().expire();
    while (clients->clients.size() < 2) runtime->advance(10ms);
    runtime->advance(100ms);
    ASSERT_FALSE(probe->waiting.empty());
    answer({"c:3"});
    EXPECT_THAT(client().servers, ElementsAre(std::vector<std::string>{"c:3"})) << "of the new session's client";
}

}  // namespace
}  // namespace zkrecipes::testing
