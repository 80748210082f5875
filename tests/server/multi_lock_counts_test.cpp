// What a multi-lock costs, counted at a gate that knows the protocol.
#include "server/multi_lock_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Direction;
using testenv::Opcode;
using testenv::Record;

class MultiLockCountsTest : public MultiLockServerTest {
protected:
    void SetUp() override {
        MultiLockServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
    }
};

TEST_F(MultiLockCountsTest, UncontendedIsOneRoundTripHoweverManyMembersAndReleaseIsOneRequest) {
    auto s = gated_session(kNoHeartbeat);
    make_directories(256);
    for (const std::size_t n : {1, 4, 50, 256}) {
        SCOPED_TRACE(n);
        MultiLock lock(s, mutexes(n));
        gate().reset_trace();
        Grant grant = in_round_trips({n + 1}, [&] { return lock.acquire(); });
        EXPECT_TRUE(grant.held());
        const auto acquired = trace();
        EXPECT_EQ(round_trips(acquired, s.info().session_id), 1) << to_string(count(acquired));
        EXPECT_EQ(count(acquired)[Opcode::multi], 1u);
        EXPECT_EQ(count(acquired)[Opcode::exists], n);
        EXPECT_EQ(count(acquired).total(), n + 1) << to_string(count(acquired));
        gate().reset_trace();
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        std::uint64_t releases = 0;
        for (const auto& record : trace()) {
            if (record.kind != Record::Kind::request || record.opcode == Opcode::get_data) continue;
            ++releases;
            EXPECT_EQ(record.opcode, n == 1 ? Opcode::remove : Opcode::multi);
            EXPECT_EQ(record.parts.size(), n == 1 ? 0 : n);
        }
        EXPECT_EQ(releases, 1u) << to_string(counts());
        EXPECT_EQ(nodes_in(n), 0u);
    }
}

TEST_F(MultiLockCountsTest, WithoutTheRightToWriteTheFirstAcquireIsThreeRoundTripsAndEachLaterOneTwo) {
    auto s = gated_session(kNoHeartbeat);
    make_directories(4);
    LockOptions options;
    options.acl = Acl::open();
    options.acl->front().permissions = Acl::read;  // of the nodes; the directories are open
    MultiLock lock(s, mutexes(4), options);
    for (const bool first : {true, false, false}) {
        gate().reset_trace();
        const std::vector<std::uint64_t> later{5, 1}, at_first{5, 5, 1};
        Grant grant = in_round_trips(first ? at_first : later, [&] { return lock.acquire(); });
        EXPECT_TRUE(grant.held());
        EXPECT_EQ(grant.token(), observer().exists(grant.node())->czxid);
        const auto acquired = trace();
        EXPECT_EQ(round_trips(acquired, s.info().session_id), first ? 3 : 2) << to_string(count(acquired));
        EXPECT_EQ(count(acquired)[Opcode::multi], first ? 2u : 1u);
        EXPECT_EQ(count(acquired)[Opcode::exists], first ? 9u : 5u);
        EXPECT_EQ(nodes_in(4), 4u);
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_EQ(nodes_in(4), 0u);
    }
}

TEST_F(MultiLockCountsTest, AFailedTryIsOneRoundTripOfReadsAndLeavesNoWatch) {
    auto holder = session(), s = gated_session(kNoHeartbeat);
    make_directories(50);
    ExclusiveMutex single(holder, dir(17));
    const Grant held = single.acquire();
    for (const std::size_t n : {18, 50}) {
        MultiLock lock(s, mutexes(n));
        gate().reset_trace();
        EXPECT_FALSE(in_round_trips({n}, [&] { return lock.try_lock(); }));
        EXPECT_EQ(counts()[Opcode::get_children2], n);
        EXPECT_EQ(counts().total(), n) << to_string(counts());
        EXPECT_EQ(counts().writes(), 0u);
        EXPECT_EQ(round_trips(trace(), s.info().session_id), 1);
    }
    const auto of_holder = server().watch_count();
    EXPECT_LE(of_holder, 1);
}

TEST_F(MultiLockCountsTest, TheHandOverOfManyMembersIsOneCheck) {
    auto holder = session(), s = gated_session(kNoHeartbeat);
    make_directories(20);
    MultiLock held(holder, mutexes(20)), lock(s, mutexes(20));
    Grant first = held.acquire();
    Acquiring waiting([&] { return in_round_trips({21, 20, 20}, [&] { return lock.acquire(); }); });
    ASSERT_TRUE(await([&] { return replies()[Opcode::get_data] == 20; }));
    EXPECT_EQ(counts()[Opcode::get_data], 20u);
    EXPECT_EQ(round_trips(trace(), s.info().session_id), 3) << to_string(counts());  // create, list, watch
    gate().reset_trace();
    first.release();
    const Grant grant = waiting.get();
    EXPECT_TRUE(grant.held());
    EXPECT_EQ(counts()[Opcode::multi], 1u) << to_string(counts());
    EXPECT_EQ(counts()[Opcode::get_children2], 0u) << to_string(counts());
}

TEST_F(MultiLockCountsTest, OfFiftyWaitersAReleaseWakesTheNextOne) {  // H22
    constexpr std::size_t kWaiters = 50;
    make_directories(3);
    auto holder = gated_session(kNoHeartbeat);
    MultiLock held(holder, mutexes(3));
    Grant grant = held.acquire();
    std::vector<Session> sessions;
    for (std::size_t i = 0; i < kWaiters; ++i) sessions.push_back(gated_session(kNoHeartbeat));
    std::mutex guard;
    std::vector<Grant> granted;
    granted.reserve(kWaiters);
    std::atomic<int> failed{0};
    const auto served = [&] {
        const std::lock_guard lock(guard);
        return granted.size();
    };
    for (auto& s : sessions) {
        MultiLock lock(s, mutexes(3));
        lock.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
            if (result.error || !result.value) ++failed;
            const std::lock_guard mutual(guard);
            granted.push_back(std::move(result.value));
        });
    }
    // The holder, too, watches its nodes by now.
    ASSERT_TRUE(await([&] { return server().watch_count() >= static_cast<std::int64_t>(3 * (kWaiters + 1)); }));
    ASSERT_TRUE(await([&] { return counts()[Opcode::get_data] >= 3 * kWaiters; }));
    for (std::size_t done = 0; done < 5; ++done) {
        gate().reset_trace();
        Grant& leaving = done == 0 ? grant : granted[done - 1];
        const auto leaver = leaving.session_id();
        leaving.release();
        ASSERT_TRUE(await([&] { return served() == done + 1; }));
        const auto next = granted[done].session_id();
        std::size_t woken = 0;
        for (const auto& record : trace()) {
            if (record.kind != Record::Kind::event || record.session == leaver) continue;
            EXPECT_EQ(record.session, next) << to_string(record);
            ++woken;
        }
        EXPECT_EQ(woken, 3u) << to_string(trace());              // one for each of its queues
        EXPECT_EQ(counts().writes(), 2u) << to_string(trace());  // one transaction of deletes, one check
        EXPECT_LE(counts()[Opcode::get_children2], 3u);          // where it had not been second when it last looked
    }
    EXPECT_EQ(failed, 0);
    for (auto& s : sessions) s.close();
    ASSERT_TRUE(await([&] { return served() == kWaiters; }));
}

TEST_F(MultiLockCountsTest, AReleaseOfOneMemberWakesOnlyWhoeverWaitsThere) {
    make_directories(4);
    auto one = session(kNoHeartbeat), two = session(kNoHeartbeat), first = gated_session(kNoHeartbeat),
         second = gated_session(kNoHeartbeat);
    ExclusiveMutex left(one, dir(0)), right(two, dir(2));
    Grant held_left = left.acquire();
    const Grant held_right = right.acquire();
    MultiLock lock_left(first, mutexes(2)), lock_right(second, mutexes(2, 2));
    Acquiring waiting_left([&] { return lock_left.try_acquire_until(kMaxWait); });
    std::stop_source stop;
    Acquiring waiting_right([&] { return lock_right.try_acquire_until(Deadline::never(), stop.get_token()); });
    ASSERT_TRUE(await([&] { return counts()[Opcode::get_data] == 2; }));
    gate().reset_trace();
    held_left.release();
    EXPECT_TRUE(waiting_left.get().held());
    for (const auto& record : trace()) {
        EXPECT_TRUE(record.kind != Record::Kind::event || record.session == first.info().session_id)
            << to_string(record);
    }
    EXPECT_FALSE(waiting_right.done());
    stop.request_stop();
    EXPECT_FALSE(waiting_right.get());
}

TEST_F(MultiLockCountsTest, ColdDirectoriesAreMadeInOneGo) {
    auto s = gated_session(kNoHeartbeat);
    MultiLock lock(s, mutexes(5));
    gate().delay(Direction::to_client, kReplyDelay);
    gate().reset_trace();
    const Grant grant = lock.acquire();
    EXPECT_TRUE(grant.held());
    EXPECT_EQ(counts()[Opcode::multi], 2u) << to_string(counts());
    EXPECT_LE(round_trips(trace(), s.info().session_id), 8);
    gate().reset_trace();
}

TEST_F(MultiLockCountsTest, AThousandFailedTriesLeaveNothing) {  // H17, H18
    make_directories(3);
    auto holder = session(kNoHeartbeat), s = session(kNoHeartbeat);
    ExclusiveMutex single(holder, dir(2));
    const Grant held = acquired_elsewhere(single);
    MultiLock lock(s, mutexes(3));
    for (int i = 0; i < 1000; ++i) {
        if (i % 10 == 0) {
            ASSERT_FALSE(lock.try_lock_for(100us));
        } else {
            ASSERT_FALSE(lock.try_lock());
        }
    }
    EXPECT_TRUE(await_nodes_in(3, 1));
    EXPECT_TRUE(await([&] { return server().watch_count() <= 1; })) << server().four_letter("wchp");
}

}  // namespace
}  // namespace zkrecipes::test
