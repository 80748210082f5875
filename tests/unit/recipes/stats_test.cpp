// What a session counts, before a small server.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session_events.hpp>

#include <gmock/gmock.h>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

class Listener : public SessionEvents {
public:
    void on_missed(const EventSubject&, Missed why, std::chrono::nanoseconds) override { missed.push_back(why); }
    void on_queued(const EventSubject&, std::int64_t in_front) override { queued.push_back(in_front); }
    std::vector<Missed> missed;
    std::vector<std::int64_t> queued;
};

class StatsTest : public ServedTest {
protected:
    StatsTest() {
        options.events = listener;
        connect();
    }
    void somebody_holds() {
        put("/l");
        put("/l/_c_00000000-0000-4000-8000-000000000000-lock-0000000000", "", 99);
    }
    LockStats counted() const {
        const auto locks = core->stats().locks;
        return locks.empty() ? LockStats{} : locks.front();
    }
    const std::shared_ptr<Listener> listener = std::make_shared<Listener>();
};

TEST_F(StatsTest, HandOversInsideTheSessionAreHoldsOfTheirOwn) {
    LockOptions terms;
    terms.local_handovers = 3;
    ExclusiveMutex mutex(*session, "/l", terms);
    int granted = 0;
    EXPECT_EQ(served([&] {
                  Grant grant = mutex.acquire();
                  for (int i = 0; i < 2; ++i) {
                      mutex.acquire_async(Deadline::never(), {}, [&](AcquireResult) { ++granted; });
                  }
              }),
              "ok");
    serve();
    EXPECT_EQ(granted, 2);
    EXPECT_EQ(counted().acquired, 3u);
    EXPECT_EQ(counted().released, 3u);
    EXPECT_EQ(counted().held, 0u);
    EXPECT_EQ(counted().wait.count(), 3u);
    EXPECT_EQ(counted().hold.count(), 3u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(StatsTest, WhoWaitsIsToldOnceHowManyAreInFront) {
    put("/l");
    for (const char* number : {"0", "1", "2"}) {
        put(std::string("/l/_c_00000000-0000-4000-8000-00000000000") + number + "-lock-000000000" + number, "", 99);
    }
    nodes["/l"].next_number = 3;
    ExclusiveMutex mutex(*session, "/l");
    std::stop_source stop;
    for (int i = 0; i < 2; ++i) {
        mutex.acquire_async(Deadline::never(), stop.get_token(), [](AcquireResult) {});
        serve();
        runtime->advance(1s);
        serve();
    }
    EXPECT_THAT(listener->queued, ::testing::ElementsAre(3, 4));
    stop.request_stop();
    serve();
}

TEST_F(StatsTest, ALossIsNoReleaseToo) {
    ExclusiveMutex mutex(*session, "/l");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    EXPECT_EQ(counted().held, 1u);
    runtime->while_running([&] { session->close(); });
    EXPECT_EQ(counted().lost[static_cast<std::size_t>(LossReason::closed)], 1u);
    grant.release();
    runtime->run();
    EXPECT_EQ(counted().released, 0u);
    EXPECT_EQ(counted().held, 0u);
    EXPECT_EQ(counted().hold.count(), 1u);
}

TEST_F(StatsTest, ALeaseThatItsOwnerSeesEndFirstIsALossAndNoRelease) {
    ExclusiveMutex mutex(*session, "/l");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    runtime->freeze_for(1h);
    EXPECT_FALSE(grant.held());
    const auto lost = grant.lost();
    grant.release();
    runtime->run();
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_EQ(counted().released, 0u);
    EXPECT_EQ(counted().lost[static_cast<std::size_t>(LossReason::lease_ended)], 1u);
    EXPECT_EQ(counted().held, 0u);
}

TEST_F(StatsTest, AReleaseAfterAnEndThatNobodyHasSeenIsALossWithoutAStop) {
    ExclusiveMutex mutex(*session, "/l");
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    const auto lost = grant.lost();
    runtime->freeze_for(1h);
    grant.release();
    runtime->run();
    EXPECT_FALSE(lost.stop_requested()) << "it was released";
    EXPECT_EQ(counted().released, 0u);
    EXPECT_EQ(counted().lost[static_cast<std::size_t>(LossReason::lease_ended)], 1u);
}

TEST_F(StatsTest, OfALeaseAndALimitThatPassTogetherTheLeaseIsTheReason) {
    LockOptions limited;
    limited.max_hold = 30min;
    ExclusiveMutex mutex(*session, "/l", limited);
    Grant grant;
    EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    runtime->freeze_for(1h);
    grant.release();
    runtime->run();
    EXPECT_EQ(counted().lost[static_cast<std::size_t>(LossReason::lease_ended)], 1u);
    EXPECT_EQ(counted().lost[static_cast<std::size_t>(LossReason::max_hold)], 0u);
}

TEST_F(StatsTest, SoIsThatOfASharedHoldThatLeavesItsNodeToOthers) {
    LockOptions joins;
    joins.local_handovers = 3;
    ReadWriteLock lock(*session, "/l", joins);
    std::vector<Grant> grants;
    for (int i = 0; i < 2; ++i) {
        lock.acquire_shared_async(Deadline::never(), {},
                                  [&](AcquireResult result) { grants.push_back(std::move(result.value)); });
        serve();
    }
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_EQ(grants[0].node(), grants[1].node());
    runtime->freeze_for(1h);
    grants.clear();
    runtime->run();
    std::uint64_t released = 0, lost = 0;
    for (const LockStats& each : core->stats().locks) {
        released += each.released;
        lost += each.lost[static_cast<std::size_t>(LossReason::lease_ended)];
    }
    EXPECT_EQ(released, 0u);
    EXPECT_EQ(lost, 2u);
}

TEST_F(StatsTest, ACallThatWaitsIsCountedUntilItEnds) {
    somebody_holds();
    ExclusiveMutex mutex(*session, "/l");
    std::stop_source stop;
    mutex.acquire_async(Deadline::never(), stop.get_token(), [](AcquireResult) {});
    serve();
    EXPECT_EQ(counted().waiting, 1u);
    ASSERT_EQ(core->waits().size(), 1u);
    EXPECT_EQ(core->waits().front().path, "/l");
    EXPECT_EQ(core->waits().front().in_front, 1);
    stop.request_stop();
    serve();
    EXPECT_EQ(counted().waiting, 0u);
    EXPECT_EQ(core->waits().size(), 0u);
    EXPECT_EQ(counted().acquired, 0u);
}

TEST_F(StatsTest, WhyNothingWasGrantedIsToldAsTheGrantSaysIt) {
    somebody_holds();
    ExclusiveMutex mutex(*session, "/l");
    std::vector<Missed> missed;
    const auto done = [&](AcquireResult result) { missed.push_back(result.value.missed()); };
    mutex.acquire_async(Deadline::passed(), {}, done);
    serve();
    std::stop_source stop;
    mutex.acquire_async(Deadline::never(), stop.get_token(), done);
    serve();
    stop.request_stop();
    serve();
    client().disconnect();
    runtime->run();
    mutex.acquire_async(Deadline::passed(), {}, done);
    runtime->advance(20ms);
    EXPECT_THAT(missed, ::testing::ElementsAre(Missed::busy, Missed::stopped, Missed::unreachable));
    EXPECT_EQ(listener->missed, missed);
    client().connect(owner);
    runtime->run();
}

TEST_F(StatsTest, WhatTheSessionUsesIsShownAtOnce) {
    ends_in_the_middle = true;
    const SessionStats before = session->stats();
    EXPECT_EQ(before.session_timeout, 6s);
    EXPECT_EQ(before.node_bytes + before.watch_bytes + before.nodes_to_delete, 0u);
    somebody_holds();
    ExclusiveMutex mutex(*session, "/l");
    mutex.acquire_async(Deadline::never(), {}, [](AcquireResult) {});
    serve();
    EXPECT_GT(session->stats().node_bytes, 0u);
    EXPECT_GT(session->stats().watch_bytes, 0u);
    EXPECT_GT(session->stats().remaining_lease, 0s);
    inside([this] { core->delete_node("/given_up"); });
    EXPECT_EQ(session->stats().nodes_to_delete, 1u);
}

}  // namespace
}  // namespace zkrecipes::testing
