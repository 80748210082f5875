// Checks that a hold can begin on: the nodes are there, and the lease is fresh.
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Session timeout 6 s. After 0.9 T of silence a hold needs two checks.
class LeaseRenewalTest : public SessionTest {
protected:
    void SetUp() override { open_connected(); }
    /// Answers go into `told`.
    void renew_lease(const std::string& node) {
        inside([&] {
            core->renew_lease({node}, [this, node](Rc rc, Instant) { told.push_back(node + ": " + to_string(rc)); });
        });
    }
    /// All of these nodes have been checked once, and that was not enough.
    void check_first(const std::vector<std::string>& nodes) {
        runtime->freeze_for(5400ms);
        for (const auto& node : nodes) renew_lease(node);
        EXPECT_EQ(commit_heartbeats(), static_cast<int>(nodes.size()));
        EXPECT_THAT(told, IsEmpty());
    }
    std::vector<std::string> told;
};

TEST_F(LeaseRenewalTest, AfterASilenceAHoldNeedsASecondCheckOnceAPingHasCarriedTheTouch) {
    runtime->freeze_for(5400ms);  // 0.9 T: the leader may last have heard of us at the connect
    EXPECT_EQ(hold("/l/n"), nullptr);
    std::shared_ptr<Hold> held;
    inside([&] {
        core->renew_lease({"/l/n"}, [&](Rc rc, Instant) {
            EXPECT_EQ(rc, Rc::ok);
            held = core->begin_hold("/l/n", 7);
        });
    });
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_EQ(held, nullptr);
    runtime->advance(1500ms);  // half a tick and T/12
    EXPECT_EQ(commit_heartbeats(), 0);
    runtime->advance(1ms);
    EXPECT_EQ(commit_heartbeats(), 1);
    ASSERT_NE(held, nullptr);
    EXPECT_TRUE(held->held());
}

TEST_F(LeaseRenewalTest, AConnectionThatBreaksBetweenTheTwoChecksEndsTheVerification) {
    runtime->freeze_for(5400ms);
    int answers = 0;
    inside([&] { core->renew_lease({"/l/n"}, [&](Rc rc, Instant) { answers += rc == Rc::not_connected ? 1 : 100; }); });
    EXPECT_EQ(commit_heartbeats(), 1);
    client().disconnect();
    runtime->advance(5s);
    EXPECT_EQ(answers, 1);
}

TEST_F(LeaseRenewalTest, AFailedVerificationIsNoRenewal) {
    Rc renewed{};
    inside([&] { core->renew_lease({"/l/n"}, [&](Rc rc, Instant) { renewed = rc; }); });
    client().take("multi").answer(refusal_at(0, 1));
    EXPECT_EQ(renewed, Rc::no_node);
    inside([&] { EXPECT_EQ(core->begin_hold("/l/n", 7), nullptr); });
}

TEST_F(LeaseRenewalTest, TheSecondCheckIsOneForAllWhoWait) {
    check_first({"/l/a", "/l/b", "/l/c"});
    runtime->advance(1501ms);
    ASSERT_EQ(client().open.size(), 1u) << "thousands of them would keep the answers slow, and no lease would be fresh";
    EXPECT_EQ(client().open.back().ops.size(), 3u);
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_THAT(told, ElementsAre("/l/a: ok", "/l/b: ok", "/l/c: ok"));
    EXPECT_NE(hold("/l/a"), nullptr);
}

TEST_F(LeaseRenewalTest, WhoseNodeIsGoneAtTheSecondCheckIsToldAloneAndTheOthersAreCheckedAgainAtOnce) {
    check_first({"/l/a", "/l/b", "/l/c"});
    runtime->advance(1501ms);
    client().take("multi").answer(refusal_at(1, 3));
    EXPECT_THAT(told, ElementsAre("/l/b: no node"));
    ASSERT_EQ(client().open.size(), 1u);
    EXPECT_EQ(client().open.back().ops.size(), 2u);
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_THAT(told, ElementsAre("/l/b: no node", "/l/a: ok", "/l/c: ok"));
}

TEST_F(LeaseRenewalTest, ARefusalThatNamesNoNodeIsAskedAboutOneByOne) {
    check_first({"/l/a", "/l/b"});
    runtime->advance(1501ms);
    Reply refusal;
    refusal.rc = Rc::no_node;
    client().take("multi").answer(refusal);
    EXPECT_THAT(told, IsEmpty());
    ASSERT_EQ(client().open.size(), 2u);
    client().take("multi").answer(refusal_at(0, 1));
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_THAT(told, ElementsAre("/l/a: no node", "/l/b: ok"));
}

TEST_F(LeaseRenewalTest, ManyWhoseNodesAreGoneDoNotCostARoundTripEach) {
    std::vector<std::string> nodes;
    for (int i = 0; i < 512; ++i) nodes.push_back("/l/" + std::to_string(i));
    check_first(nodes);
    runtime->advance(1501ms);
    int round_trips = 0;
    for (; told.size() < nodes.size(); ++round_trips) {
        for (auto requests = std::exchange(client().open, {}); const auto& request : requests) {
            request.answer(refusal_at(0, request.ops.size()));
        }
        ASSERT_LT(round_trips, 100);
    }
    EXPECT_LT(round_trips, 70);
}

TEST_F(LeaseRenewalTest, ManyWhoWaitAreCheckedInRequestsOfBoundedSize) {
    std::vector<std::string> nodes;
    for (int i = 0; i < 400; ++i) nodes.push_back("/l/" + std::string(600, 'n') + std::to_string(i));
    check_first(nodes);
    runtime->advance(1501ms);
    EXPECT_EQ(commit_heartbeats(), 2);
    EXPECT_EQ(told.size(), nodes.size());
}

TEST_F(LeaseRenewalTest, WhoAsksWhileOthersWaitGoesWithThem) {
    check_first({"/l/a"});
    runtime->advance(100ms);
    renew_lease("/l/b");
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_THAT(told, IsEmpty());
    runtime->advance(1401ms);
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_THAT(told, ElementsAre("/l/a: ok", "/l/b: ok"));
}

TEST_F(LeaseRenewalTest, WhoWaitsForALeaseIsToldAtOnceThatTheSessionIsOver) {
    check_first({"/l/a", "/l/b"});
    client().expire();
    runtime->run();
    EXPECT_THAT(told, ElementsAre("/l/a: not connected", "/l/b: not connected"));
}

TEST_F(LeaseRenewalTest, WhoWaitsForALeaseIsToldThatTheSessionIsClosed) {
    check_first({"/l/a", "/l/b"});
    runtime->while_running([&] { core->close(); });
    EXPECT_THAT(told, ElementsAre("/l/a: closed", "/l/b: closed"));
}

TEST_F(LeaseRenewalTest, WhoAsksForALeaseThatCanNeverBeSureIsToldSo) {
    client().disconnect();
    client().connect(kFirstSession, 1000ms);  // half of a tick
    runtime->freeze_for(900ms);
    renew_lease("/l/n");
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_THAT(told, ElementsAre(std::string("/l/n: ") + to_string(Rc::no_lease)));
}

/// Writes the log to a string.
class SlowAnswerTest : public LeaseRenewalTest, public ::testing::WithParamInterface<std::chrono::milliseconds> {
protected:
    SlowAnswerTest() {
        options.logger =
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
    }
    ~SlowAnswerTest() override { destroy(); }
    std::ostringstream log;
};
INSTANTIATE_TEST_SUITE_P(Took, SlowAnswerTest, ::testing::Values(0ms, 1200ms, 1300ms));

TEST_P(SlowAnswerTest, IsLoggedIfNoHoldCanBeginOnIt) {
    runtime->freeze_for(4000ms - GetParam());
    renew_lease("/l/a");
    runtime->freeze_for(GetParam());
    EXPECT_EQ(commit_heartbeats(), 1);
    EXPECT_THAT(told, IsEmpty()) << "a second check is needed";
    runtime->advance(1501ms);
    if (GetParam() > 1220ms) {
        EXPECT_THAT(log.str(), HasSubstr("1 hold(s) cannot begin yet"));
        EXPECT_THAT(log.str(), HasSubstr("1300 ms, and at most 1220 ms"));
    } else {
        EXPECT_THAT(log.str(), Not(HasSubstr("cannot begin yet")));
    }
}

/// Session timeout 6 s: a hold ends after 4 s without an answer, also in a process whose timers do not run.
class LeaseEndTest : public SessionTest {
protected:
    void SetUp() override { open_connected(); }
};

TEST_F(LeaseEndTest, ATimeoutThatShrankIsSeenByReadersAtOnce) {
    const auto held = hold("/l/n");
    runtime->advance(900ms);
    client().disconnect();
    client().connect(kFirstSession, 4500ms);
    EXPECT_EQ(held->remaining_lease(), 2100ms);
    runtime->freeze_for(2100ms);
    EXPECT_FALSE(held->held()) << "although no timer has run";
}

TEST_F(LeaseEndTest, AReconnectCountsFromTheLastRequestThatWasAnsweredBefore) {
    runtime->advance(60s);
    client().disconnect();
    client().connect(kFirstSession);
    EXPECT_NE(hold("/l/n"), nullptr) << "the servers have heard of it a moment ago";
}

}  // namespace
}  // namespace zkrecipes::testing
