// What many shares of one node cost, and what they know of each other without asking each of them.
#include <zkrecipes/sequencer.hpp>

#include <gmock/gmock.h>

#include "core/hold/hold_ref.hpp"
#include "unit/core/local/local_share_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ManySharesTest : public LocalShareTest {
protected:
    void pass(std::chrono::milliseconds time) {
        asked.clear();
        runtime->advance(time);
        serve();
    }
    /// They hold by one node.
    void share_a_node(int times) {
        share();
        share(times - 1);
        ASSERT_EQ(nodes_of_lock(), 1u);
    }
    /// The heartbeat that is on its way.
    Request heartbeat() {
        runtime->advance(1100ms);
        return client().take("multi");
    }
    /// How often one more join asks for the time, which it does for each hold that it looks at.
    std::size_t looks_of_a_join() {
        const std::size_t before = runtime->looks();
        lock->acquire_shared_async(Deadline::never(), {}, take());
        runtime->run();
        return runtime->looks() - before;
    }
};

TEST_F(ManySharesTest, AHeartbeatNamesTheNodeOnce) {
    make_lock(1000);
    share_a_node(1001);
    ASSERT_EQ(grants.size(), 1001u);
    for (int round = 0; round < 3; ++round) {
        const Request check = heartbeat();
        ASSERT_EQ(check.ops.size(), 1u);
        EXPECT_EQ(check.ops[0].path, grants[0].node());
        answer(check);
        serve();
    }
    for (const auto& grant : grants) ASSERT_TRUE(grant.held());
}

TEST_F(ManySharesTest, AJoinLooksAtAsManyHoldsHoweverManyAreInside) {
    make_lock(1000);
    share_a_node(2);
    const std::size_t looks = looks_of_a_join();
    share(900);
    EXPECT_EQ(looks_of_a_join(), looks);
    EXPECT_EQ(nodes_of_lock(), 1u);
}

TEST_F(ManySharesTest, TheNodeIsWatchedOnceAlsoForThoseWhoJoinLater) {
    make_lock(9);
    share_a_node(2);
    pass(600ms);
    EXPECT_THAT(asked, ElementsAre("get " + grants[0].node()));
    share(2);
    pass(600ms);
    EXPECT_THAT(asked, ElementsAre("multi " + grants[0].node()));
}

TEST_F(ManySharesTest, TheWatchOutlivesTheFirstHolder) {
    make_lock(9);
    share_a_node(3);
    pass(600ms);
    release(0);
    EXPECT_THAT(asked, IsEmpty());
    erase(grants[0].node());
    runtime->run();
    for (const auto& grant : grants) EXPECT_TRUE(grant.lost().stop_requested());
}

TEST_F(ManySharesTest, AnAnsweredCheckCountsForThoseWhoStayed) {
    make_lock(9);
    share_a_node(2);
    pass(600ms);
    const Request check = heartbeat();
    release(0);
    runtime->advance(800ms);
    answer(check);
    share();
    EXPECT_EQ(nodes_of_lock(), 1u) << "it was checked not long ago";
}

TEST_F(ManySharesTest, ARefusedCheckEndsThoseWhoStayed) {
    make_lock(9);
    share_a_node(3);
    pass(600ms);
    const Request check = heartbeat();
    nodes.erase(grants[0].node());  // no event comes
    release(0);
    check.answer(refusal_at(0, 1));
    serve();
    for (const auto& grant : grants) EXPECT_FALSE(grant.held());
}

TEST_F(ManySharesTest, NobodyJoinsWhileAnyOfThemIsBound) {
    make_lock(9);
    share_a_node(3);
    const Sequencer sequencer(grants[1]);
    share();
    EXPECT_EQ(nodes_of_lock(), 2u);
}

TEST_F(ManySharesTest, NobodyJoinsBesideOneWhoseTimeIsOver) {
    make_lock(9, 1000ms);
    share();
    runtime->advance(500ms);
    EXPECT_THAT(share(), ::testing::Not(::testing::Contains("create /l")));
    ASSERT_EQ(nodes_of_lock(), 1u);
    runtime->freeze_for(600ms);  // no timer has come yet
    share();
    ASSERT_EQ(grants.size(), 3u);
    EXPECT_NE(grants[2].node(), grants[1].node());
}

TEST_F(ManySharesTest, NobodyJoinsANodeThatWasAskedForAlsoAfterTheOneWhoKnew) {
    make_lock(9);
    share_a_node(3);
    pass(600ms);
    ServedTest::write(grants[0].node(), "__REVOKE__");
    serve();
    release(0);
    share();
    EXPECT_EQ(nodes_of_lock(), 2u);
}

TEST_F(ManySharesTest, AWatchThatTheFirstHolderCouldNotSetIsSetForThoseWhoStayed) {
    make_lock(9);
    share_a_node(2);
    const std::string node = grants[0].node();
    refusals = {{"get " + node, Rc::throttled}};
    pass(600ms);  // the time of both has come; one read stands for both
    ASSERT_THAT(asked, ElementsAre("get " + node));
    refusals.clear();
    release(0);
    pass(1000ms);  // with the next heartbeat
    EXPECT_THAT(asked, ::testing::Contains("get " + node));
}

}  // namespace
}  // namespace zkrecipes::testing
