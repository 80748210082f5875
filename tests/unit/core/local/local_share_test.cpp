// Shares of one session that hold by the same node.
#include <zkrecipes/sequencer.hpp>

#include <gmock/gmock.h>

#include "core/hold/hold_ref.hpp"
#include "unit/core/local/local_share_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(LocalShareTest, AsManyJoinAsTheTermsAllowAndTheNextHasANodeOfItsOwn) {
    share();
    EXPECT_THAT(share(2), IsEmpty());
    ASSERT_EQ(grants.size(), 3u);
    EXPECT_EQ(nodes_of_lock(), 1u);
    for (const auto& grant : grants) {
        EXPECT_TRUE(grant.held());
        EXPECT_EQ(grant.token(), grants[0].token());
    }
    share();
    ASSERT_EQ(grants.size(), 4u);
    EXPECT_EQ(nodes_of_lock(), 2u);
    EXPECT_GT(grants[3].token(), grants[0].token());
}

TEST_F(LocalShareTest, TheNodeStaysUntilTheLastOneLeaves) {
    share();
    share(2);
    release(0);
    EXPECT_THAT(asked, IsEmpty());
    release(1);
    EXPECT_EQ(nodes_of_lock(), 1u);
    EXPECT_TRUE(grants[0].held());
    release(0);
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalShareTest, WhoeverWaitsForItsOwnReleaseDoesNotTakeTheNodeFromTheOthers) {
    share();
    share();
    EXPECT_EQ(served([&] { EXPECT_TRUE(grants[0].release_and_wait(in(5s))); }), "ok");
    EXPECT_EQ(nodes_of_lock(), 1u);
    EXPECT_TRUE(grants[1].held());
}

TEST_F(LocalShareTest, AfterTheTurnNobodyJoins) {
    share();
    runtime->advance(500ms);
    serve();
    EXPECT_THAT(share(), IsEmpty());
    for (int i = 0; i < 20; ++i) {
        runtime->advance(500ms);
        serve();
    }
    EXPECT_TRUE(grants[0].held());
    share();
    EXPECT_EQ(nodes_of_lock(), 2u);
}

TEST_F(LocalShareTest, NobodyOvertakesAWriterOfTheSession) {
    share();
    write();
    EXPECT_EQ(grants.size(), 1u);
    share();
    EXPECT_EQ(grants.size(), 1u) << "it waits behind the writer";
    EXPECT_EQ(nodes_of_lock(), 3u);
    release(0);
    ASSERT_EQ(grants.size(), 1u);
    release(0);
    EXPECT_EQ(grants.size(), 1u);
}

TEST_F(LocalShareTest, ALossIsToldToEachAndALeaverIsToldNothing) {
    share();
    share(2);
    const std::stop_token of_leaver = grants[2].lost();
    grants.pop_back();
    serve();
    erase(grants[0].node());
    for (int i = 0; i < 4; ++i) {
        runtime->advance(500ms);
        serve();
    }
    EXPECT_FALSE(grants[0].held());
    EXPECT_FALSE(grants[1].held());
    EXPECT_TRUE(grants[0].lost().stop_requested());
    EXPECT_TRUE(grants[1].lost().stop_requested());
    EXPECT_FALSE(of_leaver.stop_requested());
    share();
    ASSERT_EQ(grants.size(), 3u);
    EXPECT_TRUE(grants[2].held());
}

TEST_F(LocalShareTest, NobodyJoinsAShareThatASequencerWasMadeFrom) {
    share();
    const Sequencer sequencer(grants[0]);
    share();
    EXPECT_EQ(nodes_of_lock(), 2u);
}

TEST_F(LocalShareTest, NobodyJoinsBesideOneWhoseTextWasGivenAway) {
    share();
    share();
    ASSERT_EQ(nodes_of_lock(), 1u);
    const Sequencer sequencer(grants[0]);
    share();
    EXPECT_EQ(nodes_of_lock(), 2u);
}

TEST_F(LocalShareTest, NobodyJoinsAfterOneWhoseTextWasGivenAway) {
    share();
    share();
    const Sequencer sequencer(grants[0]);
    release(0);
    share();
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_EQ(nodes_of_lock(), 2u);
}

TEST_F(LocalShareTest, OneRefusedCheckEndsAllWhoHoldByTheNode) {
    share();
    share(2);
    nodes.erase(grants[0].node());  // no event comes
    // One of them is found to have lost; what is known of the others is not asked for.
    inside([this] { core->node_is_gone(internal::GrantAccess::share(grants[1])->own_hold()); });
    for (const auto& grant : grants) EXPECT_FALSE(grant.held());
}

TEST_F(LocalShareTest, NobodyJoinsWhileNoServerAnswers) {
    share();
    client().disconnect();
    runtime->run();
    runtime->advance(2s);  // the lease is not fresh any more
    EXPECT_TRUE(grants[0].held());
    bool granted = false;
    lock->acquire_shared_async(Deadline::never(), {}, [&](AcquireResult result) { granted = result.value.held(); });
    serve();
    EXPECT_FALSE(granted);
}

TEST_F(LocalShareTest, ADowngradedShareIsNotJoined) {
    EXPECT_EQ(served([&] {
                  lock->lock();
                  lock->lock_shared();
                  lock->unlock();
                  lock->acquire_shared_async(Deadline::never(), {}, take());
                  while (grants.empty()) boost::this_fiber::yield();
                  EXPECT_EQ(nodes_of_lock(), 2u);
                  lock->unlock_shared();
              }),
              "ok");
    EXPECT_TRUE(grants[0].held());
}

TEST_F(LocalShareTest, WithoutTheOptionEachHasANode) {
    ReadWriteLock plain(*session, "/l");
    for (int i = 0; i < 2; ++i) {
        plain.acquire_shared_async(Deadline::never(), {},
                                   [&](AcquireResult result) { grants.push_back(std::move(result.value)); });
    }
    serve();
    EXPECT_EQ(grants.size(), 2u);
    EXPECT_EQ(nodes_of_lock(), 2u);
}

}  // namespace
}  // namespace zkrecipes::testing
