#include <thread>

#include "session/common/state_notifier.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum SessionState;

TEST(PendingStatesTest, OnlyTheLatestIsKept) {
    PendingStates pending;
    for (const auto state : {connected, suspended, connected, suspended}) pending.push(state);
    EXPECT_EQ(pending.pop(), suspended);
    EXPECT_TRUE(pending.empty());
}

TEST(PendingStatesTest, ALossIsNeverLeftOut) {
    PendingStates pending;
    for (const auto state : {suspended, lost, connected, suspended, connected}) pending.push(state);
    EXPECT_EQ(pending.pop(), lost);
    EXPECT_EQ(pending.pop(), connected);
    EXPECT_TRUE(pending.empty());
}

TEST(PendingStatesTest, ALossAfterALossIsToldLast) {
    PendingStates pending;
    for (const auto state : {lost, connected, lost}) pending.push(state);
    EXPECT_EQ(pending.pop(), lost);
    EXPECT_TRUE(pending.empty()) << "connected would be a lie by now";
}

class SessionListenerTest : public SessionTest {
protected:
    std::vector<SessionState> told;
    std::function<void(SessionState)> writer() {
        return [this](SessionState state) { told.push_back(state); };
    }
};

TEST_F(SessionListenerTest, IsToldThePresentStateAndThenEachChange) {
    open();
    const auto subscription = core->watch_state(writer());
    EXPECT_THAT(told, IsEmpty()) << "not from inside the call";
    runtime->run();
    client().connect(1);
    runtime->run();
    client().disconnect();
    runtime->run();
    EXPECT_THAT(told, ElementsAre(connecting, connected, suspended));
}

TEST_F(SessionListenerTest, ASlowOneMissesNoLossInAHundredFlaps) {
    open_connected(1);
    const auto subscription = core->watch_state(writer());
    runtime->run();
    runtime->hold_lane(Lane::notifier, true);
    for (int i = 0; i < 100; ++i) {
        client().disconnect();
        client().connect(i == 0 ? 1 : 2);
        if (i == 0) {
            client().expire();
            client().connect(2);
        }
    }
    runtime->hold_lane(Lane::notifier, false);
    runtime->run();
    EXPECT_THAT(told, ElementsAre(connected, lost, connected));
}

TEST_F(SessionListenerTest, CloseIsAlwaysTold) {
    open_connected();
    const auto subscription = core->watch_state(writer());
    runtime->while_running([&] { core->close(); });
    EXPECT_EQ(told.back(), closed);
    told.clear();
    const auto late = core->watch_state(writer());
    runtime->run();
    EXPECT_THAT(told, ElementsAre(closed)) << "a listener of a closed session is told so";
}

TEST_F(SessionListenerTest, AListenerThatThrowsDisturbsNobody) {
    open_connected();
    const auto bad = core->watch_state([](SessionState) { throw std::runtime_error("oops"); });
    const auto worse = core->watch_state([](SessionState) { throw 1; });
    const auto good = core->watch_state(writer());
    runtime->run();
    client().disconnect();
    runtime->run();
    EXPECT_THAT(told, ElementsAre(connected, suspended));
}

TEST_F(SessionListenerTest, AfterUnsubscribingNothingIsTold) {
    open();
    auto subscription = core->watch_state(writer());
    subscription.reset();
    runtime->run();
    client().connect(1);
    runtime->run();
    EXPECT_THAT(told, IsEmpty());
}

TEST_F(SessionListenerTest, AListenerMayUnsubscribeItself) {
    open();
    Subscription subscription;
    subscription = core->watch_state([&](SessionState state) {
        told.push_back(state);
        subscription.reset();
    });
    runtime->run();
    client().connect(1);
    runtime->run();
    EXPECT_THAT(told, ElementsAre(connecting));
}

TEST_F(SessionListenerTest, AListenerMayDestroyTheSession) {
    open_connected();
    Subscription subscription;
    subscription = core->watch_state([&](SessionState) { core.reset(); });
    runtime->run();
    EXPECT_TRUE(client().closed);
    EXPECT_TRUE(runtime->stopped());
}

TEST_F(SessionListenerTest, AnEmptyListenerIsRefused) {
    open();
    EXPECT_THROW((void)core->watch_state(nullptr), Error);
}

TEST(StateNotifierTest, UnsubscribingWaitsForTheCallThatIsUnderWay) {
    const auto runtime = make_thread_runtime();
    StateNotifier notifier(runtime, spdlog::default_logger());
    std::atomic<bool> inside{false}, may_leave{false}, left{false};
    auto subscription = notifier.subscribe(
        [&](SessionState) {
            inside = true;
            inside.notify_all();
            may_leave.wait(false);
            left = true;
        },
        connected);
    inside.wait(false);
    std::thread other([&] {
        may_leave = true;
        may_leave.notify_all();
    });
    subscription.reset();
    EXPECT_TRUE(left);
    other.join();
    runtime->stop();
}

}  // namespace
}  // namespace zkrecipes::testing
