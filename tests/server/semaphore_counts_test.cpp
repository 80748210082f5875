// What leases cost, counted at a gate that knows the protocol.
#include "server/semaphore_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Opcode;
using testenv::Record;

class SemaphoreCountsTest : public SemaphoreServerTest {
protected:
    void SetUp() override {
        SemaphoreServerTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS_OWN_SERVER();
    }
    using Callback = std::function<void(AcquireResult)>;
    void expect_two_woken_by_each_release(std::size_t leases, std::size_t releases,
                                          const std::function<void(Session&, Callback)>& enter);
};

TEST_F(SemaphoreCountsTest, UncontendedAcquireIsTwoRoundTripsAndReleaseIsOneRequest) {
    auto s = gated_session(kNoHeartbeat);
    Semaphore semaphore(s, lock_path(), 5);
    int round = 0;
    for (const std::int32_t count : {1, 1, 1, 3}) {
        // The first one writes the number; the second one sets a watch to see that the directory stays the same.
        const bool guards = ++round == 2;
        gate().reset_trace();
        Grant grant = in_round_trips({3, guards ? 2u : 1u}, [&] { return semaphore.acquire(count); });
        EXPECT_EQ(to_string(counts()),
                  guards ? "exists 1, get_data 2, multi 1, create2 1" : "exists 1, get_data 1, multi 1, create2 1");
        EXPECT_EQ(round_trips(trace(), s.info().session_id), 2) << to_string(trace());
        EXPECT_EQ(counts().writes(), 2u);
        EXPECT_TRUE(grant.held());
        for (const auto& node : grant.nodes()) {
            const auto lease = observer().get(node);
            ASSERT_TRUE(lease);
            EXPECT_EQ(grant.token(), lease->stat.czxid);
            EXPECT_THAT(lease->data, ::testing::HasSubstr("\"v\":1"));
        }
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_EQ(counts().total(), guards ? 6u : 5u) << to_string(trace());
        EXPECT_EQ(leased(), 0u);
    }
}

TEST_F(SemaphoreCountsTest, ACycleOfTheMutexIsTwoRoundTripsAndFiveRequests) {
    auto s = gated_session(kNoHeartbeat);
    SemaphoreMutex mutex(s, lock_path());
    for (int before = 0; before < 2; ++before) {  // the first writes the number, the second sets the watch
        mutex.lock();
        mutex.unlock();
        ASSERT_TRUE(await([&] { return leased() == 0; }));
    }
    gate().reset_trace();
    Grant grant = in_round_trips({3, 1}, [&] { return mutex.acquire(); });
    EXPECT_EQ(round_trips(trace(), s.info().session_id), 2) << to_string(trace());
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_EQ(counts().total(), 5u) << to_string(trace());
}

TEST_F(SemaphoreCountsTest, WithoutTheRightToWriteALeaseItIsReadForItsToken) {
    auto s = gated_session(kNoHeartbeat);
    Semaphore(s, lock_path(), 2).acquire().release();  // makes the directories, and writes the number of leases
    ASSERT_TRUE(await([&] { return leased() == 0; }));
    LockOptions options;
    options.acl = Acl::open();
    options.acl->front().permissions = Acl::read;
    Semaphore semaphore(s, lock_path(), 2, options);
    for (const bool first : {true, false}) {
        gate().reset_trace();
        Grant grant = semaphore.acquire(2);
        EXPECT_TRUE(grant.held());
        EXPECT_EQ(counts()[Opcode::multi], first ? 2u : 1u) << to_string(trace());
        EXPECT_EQ(counts()[Opcode::exists], 2u) << to_string(trace());
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_EQ(leased(), 0u);
    }
}

TEST_F(SemaphoreCountsTest, AFailedTryIsOneRoundTripThatWritesAndWatchesNothing) {
    auto holder = session();
    Semaphore held(holder, lock_path(), 2);
    const Grant grant = held.acquire();
    auto s = gated_session(kNoHeartbeat);
    Semaphore semaphore(s, lock_path(), 2);
    const auto fails_cheaply = [&](std::int32_t count) {
        const auto before = watches();
        gate().reset_trace();
        EXPECT_FALSE(in_round_trips({2}, [&] { return semaphore.try_acquire(count); }));
        EXPECT_EQ(to_string(counts()), "get_data 1, get_children2 1");
        EXPECT_EQ(counts().writes(), 0u);
        EXPECT_EQ(round_trips(trace(), s.info().session_id), 1) << to_string(trace());
        EXPECT_EQ(watches(), before);
    };
    ASSERT_TRUE(await([&] { return watches() >= 1; }));  // the holder watches its own node by now
    fails_cheaply(2);                                    // too few are free
    auto third = session();
    Semaphore behind(third, lock_path(), 2);
    std::stop_source stop;
    Acquiring waits([&] { return behind.try_acquire_until(2, Deadline::never(), stop.get_token()); });
    ASSERT_TRUE(await_waiting(1));
    ASSERT_TRUE(await([&] { return watches() >= 2; }));
    fails_cheaply(1);  // one is free, but somebody stands in the queue
    stop.request_stop();
    EXPECT_FALSE(waits.get());
    EXPECT_TRUE(await_waiting(0));
}

TEST_F(SemaphoreCountsTest, ATryOnAFreeSemaphoreIsThreeRoundTrips) {
    auto s = gated_session(kNoHeartbeat);
    Semaphore semaphore(s, lock_path(), 2);
    gate().reset_trace();
    const Grant grant = in_round_trips({2, 3, 1}, [&] { return semaphore.try_acquire(2); });
    EXPECT_TRUE(grant.held());
    EXPECT_LE(round_trips(trace(), s.info().session_id), 3) << to_string(trace());
}

/// Fifty wait for a lease, all of which are held; then some are given back, one after the other.
void SemaphoreCountsTest::expect_two_woken_by_each_release(std::size_t leases, std::size_t releases,
                                                           const std::function<void(Session&, Callback)>& enter) {
    constexpr std::size_t kWaiters = 50;
    auto holder = gated_session(kNoHeartbeat);
    Semaphore held(holder, lock_path(), static_cast<std::int32_t>(leases));
    std::vector<Grant> first;
    for (std::size_t i = 0; i < leases; ++i) first.push_back(held.acquire());
    std::mutex guard;
    std::vector<Grant> granted;
    granted.reserve(kWaiters);
    std::atomic<int> failed{0};
    std::vector<Session> sessions;
    for (std::size_t i = 0; i < kWaiters; ++i) {
        sessions.push_back(gated_session(kNoHeartbeat));
        enter(sessions.back(), [&](AcquireResult result) {
            if (result.error || !result.value) ++failed;
            const std::lock_guard lock(guard);
            granted.push_back(std::move(result.value));
        });
        ASSERT_TRUE(await_waiting(i + 1));
    }
    const auto served = [&] {
        const std::lock_guard lock(guard);
        return granted.size();
    };
    // Each watches the one before it, the first one the leases, and the holders their own nodes. And each session that
    // has taken leases since the number was written watches the directory of leases.
    auto all = static_cast<std::int64_t>(kWaiters + leases);
    if (leases > 1) ++all;
    ASSERT_TRUE(await([&] { return watches() == all; })) << server().four_letter("wchp");
    for (std::size_t done = 0; done < releases; ++done) {
        gate().reset_trace();
        Grant& leaving = done < leases ? first[leases - 1 - done] : granted[done - leases];  // H25: in any order
        const auto leaver = leaving.session_id();
        leaving.release();
        ASSERT_TRUE(await([&] { return served() == done + 1; }));
        // The next one has become the head, and watches the leases in its turn.
        const auto lists_of_leases = [&] {
            std::size_t lists = 0;
            for (const auto& record : trace()) {
                lists += record.kind == Record::Kind::request && record.opcode == Opcode::get_children2 &&
                         record.path == leases_path();
            }
            return lists;
        };
        ASSERT_TRUE(await([&] { return lists_of_leases() >= 1; }));
        std::size_t woken = 0;
        for (const auto& record : trace()) woken += record.kind == Record::Kind::event && record.session != leaver;
        EXPECT_EQ(woken, 2u) << to_string(trace());  // the one that can go on, and the one that is at the head now
        EXPECT_EQ(counts()[Opcode::remove] + counts()[Opcode::multi], 2u) << to_string(trace());
        EXPECT_EQ(lists_of_leases(), 1u);
        EXPECT_LE(counts()[Opcode::get_children2], 2u);  // it had not been second in the queue when it last looked
        // The new holder watches its node in the end, and then all is quiet.
        ASSERT_TRUE(await([&] { return watches() == all; })) << "the leaver's is gone, and the new holder has one more";
    }
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(leased(), leases);
    for (auto& s : sessions) s.close();
    ASSERT_TRUE(await([&] { return served() == kWaiters; }));
}

TEST_F(SemaphoreCountsTest, AReleaseWakesTheHeadOfFiftyWaitersAndThenTheNextHead) {  // H22, H24
    expect_two_woken_by_each_release(3, 5, [&](Session& s, Callback done) {
        Semaphore(s, lock_path(), 3).acquire_async(Deadline::never(), {}, std::move(done));
    });
}

TEST_F(SemaphoreCountsTest, AReleaseOfTheMutexWakesTheHeadOfFiftyWaitersAndThenTheNextHead) {  // H22, H24
    expect_two_woken_by_each_release(1, 2, [&](Session& s, Callback done) {
        SemaphoreMutex(s, lock_path()).acquire_async(Deadline::never(), {}, std::move(done));
    });
}

TEST_F(SemaphoreCountsTest, FailedTriesAndWaitsLeaveNothing) {  // H17, H18
    auto holder = session(kNoHeartbeat);
    Semaphore held(holder, lock_path(), 1);
    const Grant grant = held.acquire();
    auto s = session(kNoHeartbeat);
    Semaphore semaphore(s, lock_path(), 1);
    for (int i = 0; i < 500; ++i) {
        ASSERT_FALSE(i % 5 == 0 ? semaphore.try_acquire_for(1ms) : semaphore.try_acquire());
    }
    EXPECT_TRUE(await_waiting(0));
    EXPECT_EQ(leased(), 1u);
    EXPECT_TRUE(await([&] { return watches() <= 1; })) << server().four_letter("wchp");
}

}  // namespace
}  // namespace zkrecipes::test
