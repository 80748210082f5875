// LockOptions::max_hold: a hold that ends by its own time, whoever has it and by which recipe.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/transaction.hpp>

#include <gmock/gmock.h>

#include "unit/core/hold/max_hold_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(MaxHoldTest, AHoldEndsAtItsTimeAndNotBeforeAndItsNodeIsDeleted) {
    ExclusiveMutex mutex(*session, "/l", limited());
    ask(mutex);
    const Grant& grant = grants.at(0);
    EXPECT_EQ(grant.remaining_lease(), 2s) << "bounded by it";
    pass(1999ms);
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(told(grant));
    EXPECT_EQ(grant.remaining_lease(), 1ms);
    EXPECT_THAT(children("/l"), SizeIs(1));
    pass(1ms);
    EXPECT_FALSE(grant.held());
    EXPECT_EQ(grant.remaining_lease(), 0ms);
    EXPECT_TRUE(told(grant));
    EXPECT_TRUE(grant) << "until it is released";
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_THAT(log.str(), HasSubstr("it was held for max_hold"));
    EXPECT_EQ(leftovers(), "");
    std::uint64_t counted = 0;
    for (const auto& each : session->stats().locks)
        counted += each.lost[static_cast<std::size_t>(LossReason::max_hold)];
    EXPECT_EQ(counted, 1u);
    asked.clear();
    grants.clear();
    serve();
    EXPECT_THAT(asked, IsEmpty()) << "the release has nothing left to do";
}

TEST_F(MaxHoldTest, HeldIsFalseAtItsTimeAlsoWhileTheSessionDoesNothing) {
    ExclusiveMutex mutex(*session, "/l", limited());
    ask(mutex);
    runtime->freeze_for(2s);
    EXPECT_FALSE(grants.at(0).held());
    EXPECT_EQ(grants[0].remaining_lease(), 0ms);
    EXPECT_FALSE(told(grants[0]));
    Transaction late(grants[0]);
    late.set("/l", "x");
    asked.clear();
    EXPECT_EQ(code_served([&] { late.commit(); }), Errc::lock_lost);
    EXPECT_THAT(asked, Not(Contains("multi /l")));
    EXPECT_TRUE(told(grants[0]));
    EXPECT_THAT(log.str(), Not(HasSubstr("lease"))) << "that is not why it ended";
    EXPECT_THAT(children("/l"), IsEmpty());
}

TEST_F(MaxHoldTest, WhoeverWaitsIsGrantedThoughTheOwnerNeverReleases) {
    ExclusiveMutex mutex(*session, "/l", limited());
    ask(mutex, 3);
    ASSERT_THAT(grants, SizeIs(1));
    pass(2s);
    ASSERT_THAT(grants, SizeIs(2));
    EXPECT_FALSE(grants[0].held());
    EXPECT_TRUE(grants[1].held());
    EXPECT_GT(grants[1].token(), grants[0].token());
    pass(1s);
    EXPECT_TRUE(grants[1].held()) << "each has its own time";
    pass(1s);
    ASSERT_THAT(grants, SizeIs(3));
    EXPECT_TRUE(grants[2].held());
}

TEST_F(MaxHoldTest, AReleaseLeavesNoTimer) {
    ExclusiveMutex mutex(*session, "/l", limited(1h));
    ask(mutex);
    grants.clear();
    serve();
    const auto timers = runtime->timers();
    EXPECT_EQ(served([&] {
                  mutex.acquire().release();
                  EXPECT_TRUE(mutex.acquire().release_and_wait(in(10s)));
              }),
              "ok");
    EXPECT_EQ(runtime->timers(), timers);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, AReleaseThatIsWaitedForAfterTheEndWaitsForTheNode) {
    ExclusiveMutex mutex(*session, "/l", limited());
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    runtime->advance(2s);  // the delete is on its way
    EXPECT_THAT(children("/l"), SizeIs(1));
    EXPECT_EQ(served([&] {
                  EXPECT_TRUE(grant.release_and_wait(in(10s)));
                  EXPECT_THAT(children("/l"), IsEmpty());
              }),
              "ok");
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, AnAsynchronousReleaseAfterTheEndIsToldToo) {
    const LockOptions of_lock = in_turns();
    ReadWriteLock lock(*session, "/l", of_lock);
    share(lock);
    pass(1s);
    share(lock);
    pass(1s);
    std::vector<bool> told;
    const auto tell = [&](const Result<bool>& result) { told.push_back(result.value); };
    grants.at(0).release_and_wait_async(in(10s), {}, tell);
    serve();
    EXPECT_THAT(told, ElementsAre(true)) << "the node is that of the other one";
    EXPECT_TRUE(grants.at(1).held());
    EXPECT_TRUE(nodes.contains(grants[1].node()));
    runtime->advance(1s);
    EXPECT_FALSE(grants[1].held());
    grants[1].release_and_wait_async(in(10s), {}, tell);
    serve();
    EXPECT_THAT(told, ElementsAre(true, true));
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, ALockObjectThatIsDestroyedWhileItIsHeldDoesNotKeepTheLock) {
    EXPECT_EQ(served([&] { ExclusiveMutex(*session, "/l", limited()).lock(); }), "ok");
    pass(1900ms);
    EXPECT_THAT(children("/l"), SizeIs(1));
    pass(100ms);
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, AHoldThatWasLostBeforeIsGivenBackAtItsTime) {
    ExclusiveMutex mutex(*session, "/l", limited(30s));
    ask(mutex);
    client().disconnect();
    runtime->advance(5s);  // the lease passes, and the session lives
    EXPECT_FALSE(grants.at(0).held());
    client().connect(owner);
    pass(24s);
    EXPECT_THAT(children("/l"), SizeIs(1)) << "its owner may be at work";
    pass(1s);
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_THAT(log.str(), Not(HasSubstr("max_hold"))) << "one loss is told once";
}

TEST_F(MaxHoldTest, ASessionThatEndedHasNothingToDelete) {
    ExclusiveMutex mutex(*session, "/l", limited());
    ask(mutex);
    next_session();
    EXPECT_FALSE(grants.at(0).held());
    asked.clear();
    pass(2s);
    EXPECT_THAT(asked, Not(Contains("remove " + grants[0].node())));
    EXPECT_EQ(leftovers(), "");
}

// ---- the recipes --------------------------------------------------------------------------------------------------

TEST_F(MaxHoldTest, AnotherGrantOfAHoldHasTheSameLimit) {
    ExclusiveMutex mutex(*session, "/l", limited());
    EXPECT_EQ(served([&] {
                  const Grant outer = mutex.acquire();
                  runtime->freeze_for(1500ms);
                  const Grant inner = outer.again();
                  EXPECT_EQ(inner.remaining_lease(), 500ms);
                  runtime->freeze_for(500ms);
                  EXPECT_FALSE(inner.held());
                  EXPECT_FALSE(outer.again().held());
              }),
              "ok");
    EXPECT_EQ(leftovers(), "");
    EXPECT_THAT(children("/l"), IsEmpty());
}

TEST_F(MaxHoldTest, AShareThatAWriterTakesHasItsOwnTime) {
    ReadWriteLock lock(*session, "/l", limited());
    EXPECT_EQ(served([&] {
                  Grant writer = lock.acquire();
                  runtime->freeze_for(1s);
                  const Grant reader = lock.downgrade(writer);
                  EXPECT_EQ(writer.remaining_lease(), 1s);
                  runtime->freeze_for(1s);
                  EXPECT_FALSE(writer.held());
                  EXPECT_TRUE(reader.held());
                  while (told(writer) == false) boost::this_fiber::yield();
                  while (children("/l").size() == 2) boost::this_fiber::yield();
                  EXPECT_TRUE(nodes.contains(reader.node()));
                  runtime->freeze_for(1s);
                  EXPECT_FALSE(reader.held());
                  while (children("/l").size() == 1) boost::this_fiber::yield();
              }),
              "ok");
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, ASetOfLocksAndLeasesOfASemaphoreAndALeadershipEndAtTheirTime) {
    put("/m");
    put("/e");
    MultiLock both(*session, {{"/l"}, {"/m"}}, limited());
    Semaphore semaphore(*session, "/s", 3, limited());
    ElectionOptions of_election;
    of_election.max_hold = 2s;
    LeaderElection election(*session, "/e", of_election);
    ask(both);
    semaphore.acquire_async(2, Deadline::never(), {}, take());
    election.campaign_async(Deadline::never(), {}, take());
    settle();
    runtime->run();
    ASSERT_THAT(grants, SizeIs(3));
    pass(2s);
    for (const auto& grant : grants) {
        EXPECT_FALSE(grant.held());
        EXPECT_TRUE(told(grant));
    }
    for (const auto* directory : {"/l", "/m", "/e", "/s/leases"}) EXPECT_THAT(children(directory), IsEmpty());
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, WithADelayItCountsFromTheGrantAndItsEndIsNoRelease) {
    LockOptions of_lock = limited();
    of_lock.delay_after_loss = 5s;
    nodes.at("/l").data = R"({"v":1,"token":5,"held":1})";  // that one has vanished
    ExclusiveMutex mutex(*session, "/l", of_lock);
    ask(mutex);
    pass(4500ms);
    EXPECT_THAT(grants, IsEmpty());
    pass(1s);
    ASSERT_THAT(grants, SizeIs(1));
    EXPECT_TRUE(grants[0].held());
    EXPECT_GT(grants[0].remaining_lease(), 1s);
    pass(2s);
    EXPECT_FALSE(grants[0].held());
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_THAT(nodes.at("/l").data, HasSubstr(R"("held":1)")) << "the next one waits: the owner may be at work";
    grants.clear();
    serve();
    EXPECT_THAT(nodes.at("/l").data, HasSubstr(R"("held":1)"));
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, AReleaseAfterTheEndIsNoWordForTheNextOneEither) {
    LockOptions of_lock = limited();
    of_lock.delay_after_loss = 5s;
    ExclusiveMutex mutex(*session, "/l", of_lock);
    ask(mutex);
    ASSERT_THAT(grants, SizeIs(1));
    runtime->freeze_for(2s);  // the machine slept, and the session has not noticed
    EXPECT_FALSE(grants[0].held());
    grants[0].release();
    serve();
    EXPECT_THAT(children("/l"), IsEmpty());
    EXPECT_THAT(nodes.at("/l").data, HasSubstr(R"("held":1)")) << "the next one waits: the owner may be at work";
    EXPECT_EQ(leftovers(), "");
}

TEST_F(MaxHoldTest, TheTextOfAHoldEndsWithIt) {
    ExclusiveMutex mutex(*session, "/l", limited());
    ask(mutex);
    const Sequencer text(grants.at(0), Sequencer::Bearer::may_release);
    pass(2s);
    EXPECT_EQ(served([&] {
                  EXPECT_FALSE(still_held(*session, text));
                  EXPECT_FALSE(release_held(*session, text));
              }),
              "ok");
}

TEST_F(MaxHoldTest, BadTimesAreRefusedByTheConstructors) {
    for (const auto time : {std::chrono::milliseconds(-1), std::chrono::milliseconds(std::chrono::hours(367 * 24))}) {
        EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l", limited(time)); }), Errc::bad_option);
        EXPECT_EQ(code_of([&] { ReadWriteLock(*session, "/l", limited(time)); }), Errc::bad_option);
        EXPECT_EQ(code_of([&] { MultiLock(*session, {{"/l"}}, limited(time)); }), Errc::bad_option);
        EXPECT_EQ(code_of([&] { Semaphore(*session, "/l", 1, limited(time)); }), Errc::bad_option);
        ElectionOptions of_election;
        of_election.max_hold = time;
        EXPECT_EQ(code_of([&] { LeaderElection(*session, "/l", of_election); }), Errc::bad_option);
    }
    EXPECT_NO_THROW(ExclusiveMutex(*session, "/l", limited(std::chrono::hours(366 * 24))));
}

TEST_F(MaxHoldTest, ObjectsWithDifferentTimesShareNoNode) {
    LockOptions of_one = limited(1h), of_other = limited(2h);
    of_one.keep_for = of_other.keep_for = 60s;
    ExclusiveMutex one(*session, "/l", of_one), other(*session, "/l", of_other);
    ask(one);
    const std::string node = grants.at(0).node();
    grants.clear();
    serve();
    ask(other);
    ASSERT_THAT(grants, SizeIs(1));
    EXPECT_NE(grants[0].node(), node);
}

}  // namespace
}  // namespace zkrecipes::testing
