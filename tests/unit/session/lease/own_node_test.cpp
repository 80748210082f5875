// The watches on own nodes: what they end, who takes them over, and that none is left.
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

/// Session timeout 6 s: the lease lasts 4 s, and a hold is watched once it is half a second old.
class OwnNodeTest : public SessionTest {
protected:
    void SetUp() override { open_connected(); }
    void answer_get() {
        Reply reply;
        reply.stat.czxid = 7;
        client().take("get").answer(reply);
    }
    std::shared_ptr<Hold> watched_hold() {
        const auto held = hold("/l/n");
        runtime->advance(500ms);
        answer_get();
        return held;
    }
};

TEST_F(OwnNodeTest, AHoldThatWasGivenBackIsNotKeptByItsWatch) {
    const auto held = watched_hold();
    inside([&] { core->end_hold(held); });
    client().take("remove").answer({});
    EXPECT_EQ(held.use_count(), 1) << "the event may never come";
}

TEST_F(OwnNodeTest, TheWatchOfAHoldThatIsLostIsTakenOffTheServer) {
    const auto held = watched_hold();
    runtime->advance(4s);
    ASSERT_FALSE(held->held());
    EXPECT_EQ(client().count("remove_watches"), 1u);
}

TEST_F(OwnNodeTest, WhoeverAsksToBeToldOfRevocationsHasOneWatchStill) {
    const auto held = watched_hold();
    inside([&] { core->watch_revocation(held); });
    answer_get();
    inside([&] { core->leave_node(held); });
    EXPECT_EQ(client().count("remove_watches"), 1u) << "nobody is left who listens";
}

TEST_F(OwnNodeTest, AWatchThatAHoldTakesOverEndsItWithItsNode) {
    WatchId watch = 0;
    inside([&] { watch = core->watch_node("/l/n", {}); });
    answer_get();
    const auto held = hold("/l/n");
    inside([&] { core->take_watch(held, watch); });
    client().fire(WatchEventType::deleted, "/l/n");
    EXPECT_FALSE(held->held());
}

TEST_F(OwnNodeTest, AWatchThatAHoldTakesOverTooLateIsTakenOffTheServer) {
    WatchId watch = 0;
    inside([&] { watch = core->watch_node("/l/n", {}); });
    answer_get();
    const auto held = hold("/l/n");
    inside([&] {
        core->end_hold(held);
        core->take_watch(held, watch);
    });
    EXPECT_EQ(client().count("remove_watches"), 1u);
}

TEST_F(OwnNodeTest, WhoeverGoesOnByTheSameNodesTakesTheWatchOver) {
    const auto held = watched_hold();
    std::shared_ptr<Hold> beside;
    inside([&] { beside = core->join(held); });
    ASSERT_TRUE(beside);
    inside([&] { core->leave_node(held); });
    EXPECT_EQ(client().count("remove_watches"), 0u);
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(beside->held());
    client().fire(WatchEventType::deleted, "/l/n");
    EXPECT_FALSE(beside->held());
}

TEST_F(OwnNodeTest, AHoldThatIsToEndWithTheConnectionDoesAndOthersDoNot) {
    const auto strict = hold("/l/strict"), usual = hold("/l/usual");
    inside([&] { core->lose_when_suspended(*strict); });
    EXPECT_TRUE(strict->held());
    client().disconnect();
    EXPECT_FALSE(strict->held());
    EXPECT_TRUE(usual->held());
    inside([&] { core->lose_when_suspended(*usual); });
    EXPECT_FALSE(usual->held()) << "there is no connection";
    runtime->run();
    EXPECT_TRUE(strict->lost().stop_requested());
    EXPECT_TRUE(usual->lost().stop_requested());
}

}  // namespace
}  // namespace zkrecipes::testing
