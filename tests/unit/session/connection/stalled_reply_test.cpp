#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionProbeTest : public SessionTest {
protected:
    SessionProbeTest() { probe = std::make_shared<FakeProbe>(); }
    void answer(const std::vector<std::string>& hosts) {
        probe->answer(hosts);
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

TEST_F(SessionProbeTest, AServerThatTheClientDoesNotGetOnWithIsNotPreferredForEver) {
    open();
    runtime->advance(100ms);
    answer({"c:3"});
    for (int i = 0; i < 300; ++i) {
        runtime->advance(100ms);
        while (!probe->waiting.empty()) answer({"c:3"});
    }
    EXPECT_GT(probe->asked.size(), 4u);
    ASSERT_EQ(client().servers.size(), 2u) << "narrowed once, and then never again";
    EXPECT_THAT(client().servers.back(), ElementsAre("a:1", "b:2", "c:3"));
}

TEST_F(SessionProbeTest, TwoServersThatSeemToServeInTurnAreEachPreferredOnce) {
    open();
    runtime->advance(100ms);
    for (int i = 0; i < 300; ++i) {
        runtime->advance(100ms);
        while (!probe->waiting.empty()) answer({probe->asked.size() % 2 == 0 ? "a:1" : "b:2"});
    }
    ASSERT_EQ(client().servers.size(), 3u);
    EXPECT_EQ(client().servers.back().size(), 3u);
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
    client().expire();
    runtime->advance(15s);
    ASSERT_EQ(clients->clients.size(), 2u);
    ASSERT_FALSE(probe->waiting.empty());
    answer({"c:3"});
    EXPECT_THAT(client().servers, ElementsAre(std::vector<std::string>{"c:3"})) << "of the new session's client";
}

}  // namespace
}  // namespace zkrecipes::testing
