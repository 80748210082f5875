// LockOptions::max_hold where several hold by one node, one after the other or at a time.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/read_write_lock.hpp>

#include <gmock/gmock.h>

#include "unit/core/hold/max_hold_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(MaxHoldTest, EachHolderOfATurnHasItsOwnTimeAndTheOneThatUsesItUpEndsTheTurn) {
    const LockOptions of_lock = in_turns();
    ExclusiveMutex mutex(*session, "/l", of_lock);
    ask(mutex, 3);
    const std::string node = grants.at(0).node();
    pass(1500ms);
    grants[0].release();
    serve();
    ASSERT_THAT(grants, SizeIs(2));
    EXPECT_EQ(grants[1].node(), node);
    EXPECT_EQ(grants[1].remaining_lease(), 2s);
    pass(1999ms);
    EXPECT_TRUE(grants[1].held());
    pass(1ms);
    EXPECT_FALSE(nodes.contains(node)) << "its holder may still be at work";
    ASSERT_THAT(grants, SizeIs(3));
    EXPECT_FALSE(grants[1].held());
    EXPECT_TRUE(grants[2].held());
    EXPECT_GT(grants[2].token(), grants[1].token());
}

TEST_F(MaxHoldTest, AReleaseAtTheEndHandsNothingOver) {
    LockOptions of_lock = in_turns();
    of_lock.keep_for = 60s;
    ExclusiveMutex mutex(*session, "/l", of_lock);
    ask(mutex, 2);
    const std::string node = grants.at(0).node();
    runtime->freeze_for(2s);  // the session has not noticed
    grants[0].release();
    serve();
    ASSERT_THAT(grants, SizeIs(2));
    EXPECT_NE(grants[1].node(), node);
    EXPECT_FALSE(nodes.contains(node));
}

TEST_F(MaxHoldTest, AReleaseThatWaitsAndComesAfterTheEndEndsNothingElse) {
    ExclusiveMutex mutex(*session, "/l", limited());
    ask(mutex);
    runtime->freeze_for(2s);  // the session has not noticed
    EXPECT_EQ(served([&] { EXPECT_TRUE(grants[0].release_and_wait(in(10s))); }), "ok");
    EXPECT_THAT(log.str(), ::testing::HasSubstr("it was held for max_hold"));
}

TEST_F(MaxHoldTest, ANodeThatIsKeptIsNobodysAndItsNextHolderHasItsOwnTime) {
    LockOptions of_lock = limited();
    of_lock.keep_for = 60s;
    ExclusiveMutex mutex(*session, "/l", of_lock);
    ask(mutex);
    const std::string node = grants.at(0).node();
    grants.clear();
    pass(5s);
    ASSERT_TRUE(nodes.contains(node));
    ask(mutex);
    ASSERT_THAT(grants, SizeIs(1));
    EXPECT_EQ(grants[0].node(), node);
    EXPECT_EQ(grants[0].remaining_lease(), 2s);
    pass(2s);
    EXPECT_FALSE(grants[0].held());
    EXPECT_FALSE(nodes.contains(node)) << "nothing is kept that was not given back";
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, OneOfSeveralSharesEndsAloneAndTheLastOneDeletesTheNode) {
    const LockOptions of_lock = in_turns();
    ReadWriteLock lock(*session, "/l", of_lock);
    share(lock);
    pass(1s);
    share(lock);
    ASSERT_THAT(children("/l"), SizeIs(1));
    pass(1s);
    EXPECT_FALSE(grants[0].held());
    EXPECT_TRUE(told(grants[0]));
    EXPECT_TRUE(grants[1].held());
    EXPECT_FALSE(told(grants[1]));
    ASSERT_THAT(children("/l"), SizeIs(1));
    share(lock);
    EXPECT_THAT(children("/l"), SizeIs(2)) << "nobody joins any more: the first owner may still be at work";
    EXPECT_EQ(served([&] { EXPECT_TRUE(grants[0].release_and_wait(in(10s))); }), "ok");
    EXPECT_TRUE(grants[1].held());
    EXPECT_TRUE(nodes.contains(grants[1].node()));
    pass(1s);
    EXPECT_FALSE(nodes.contains(grants[1].node()));
    pass(1s);
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, TheTimeOfAShareThatWasGivenBackDoesNotCount) {
    const LockOptions of_lock = in_turns();
    ReadWriteLock lock(*session, "/l", of_lock);
    const std::size_t before = session->stats().node_bytes;
    share(lock);
    pass(1s);
    share(lock);
    ASSERT_THAT(children("/l"), SizeIs(1));
    EXPECT_EQ(served([&] { EXPECT_TRUE(grants[0].release_and_wait(in(10s))); }), "ok");
    log.str("");
    pass(1900ms);
    EXPECT_TRUE(grants[1].held());
    EXPECT_EQ(log.str(), "");
    EXPECT_EQ(served([&] { EXPECT_TRUE(grants[1].release_and_wait(in(10s))); }), "ok");
    EXPECT_EQ(session->stats().node_bytes, before);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, AShareThatNobodyCanGiveBackDoesNotKeepTheNodeOfOthers) {
    const LockOptions of_lock = in_turns();
    ReadWriteLock lock(*session, "/l", of_lock);
    EXPECT_EQ(served([&] {
                  ReadWriteLock destroyed(*session, "/l", of_lock);
                  destroyed.lock_shared();
                  runtime->freeze_for(1s);
                  lock.acquire_shared_async(Deadline::never(), {}, take());
                  while (grants.empty()) boost::this_fiber::yield();
              }),
              "ok");
    ASSERT_THAT(children("/l"), SizeIs(1));
    pass(1s);
    EXPECT_TRUE(grants.at(0).held());
    EXPECT_THAT(children("/l"), SizeIs(1));
    grants.clear();
    serve();
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, AShareThatNobodyCanGiveBackDoesNotTakeTheNodeOfOneThatWasLost) {
    const LockOptions of_lock = in_turns(30s);
    ReadWriteLock lock(*session, "/l", of_lock);
    const std::size_t before = session->stats().node_bytes;
    EXPECT_EQ(served([&] {
                  ReadWriteLock destroyed(*session, "/l", of_lock);
                  ReadWriteLock another(*session, "/l", of_lock);
                  destroyed.lock_shared();
                  another.lock_shared();
                  runtime->freeze_for(1s);
                  lock.acquire_shared_async(Deadline::never(), {}, take());
                  while (grants.empty()) boost::this_fiber::yield();
              }),
              "ok");
    ASSERT_THAT(children("/l"), SizeIs(1));
    const std::size_t of_node = session->stats().node_bytes - before;
    EXPECT_GT(of_node, 0u);
    client().disconnect();
    runtime->advance(5s);  // the lease passes, and the session lives
    client().connect(owner);
    EXPECT_FALSE(grants.at(0).held());
    pass(24500ms);
    EXPECT_THAT(children("/l"), SizeIs(1)) << "the owner of the other one may be at work";
    EXPECT_EQ(session->stats().node_bytes, before + of_node);
    grants.clear();
    serve();
    EXPECT_THAT(children("/l"), IsEmpty());
    pass(30s);
    EXPECT_EQ(session->stats().node_bytes, before) << "given back once";
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, SharesThatNobodyCanGiveBackAndThatWereLostEndWithTheTimeOfTheLast) {
    const LockOptions of_lock = in_turns(30s);
    EXPECT_EQ(served([&] {
                  ReadWriteLock(*session, "/l", of_lock).lock_shared();
                  runtime->freeze_for(1s);
                  ReadWriteLock(*session, "/l", of_lock).lock_shared();
              }),
              "ok");
    client().disconnect();
    runtime->advance(5s);
    client().connect(owner);
    pass(60s);
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, TheWatchOfAShareWhoseTimeIsOverIsThatOfTheOthers) {
    const LockOptions of_lock = in_turns();
    ReadWriteLock lock(*session, "/l", of_lock);
    share(lock);
    pass(1s);
    share(lock);
    pass(1s);  // the first one's time; its node has been watched since 500 ms
    ASSERT_FALSE(grants.at(0).held());
    ASSERT_TRUE(grants.at(1).held());
    erase(grants[1].node());
    runtime->run();
    EXPECT_TRUE(told(grants[1])) << "at once, not with the next heartbeat";
}

}  // namespace
}  // namespace zkrecipes::testing
