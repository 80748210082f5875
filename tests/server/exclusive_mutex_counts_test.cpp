// What the mutex costs, counted at a gate that knows the protocol.
#include <malloc.h>
#include <fstream>
#include <set>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Direction;
using testenv::Match;
using testenv::Opcode;
using testenv::Record;

std::int64_t resident_kib() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
    }
    return 0;
}

class ExclusiveMutexCountsTest : public ExclusiveMutexServerTest {
protected:
    void SetUp() override {
        ExclusiveMutexServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        observer().make_path(lock_path());
    }
};

TEST_F(ExclusiveMutexCountsTest, UncontendedAcquireIsTwoRequestsInOneRoundTripAndReleaseIsOne) {
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    for (int round = 0; round < 3; ++round) {
        gate().reset_trace();
        Grant grant = in_round_trips({2}, [&] { return mutex.acquire(); });
        EXPECT_EQ(to_string(counts()), "exists 1, create2 1");
        EXPECT_EQ(counts().total(), 2u);
        EXPECT_EQ(round_trips(trace(), s.info().session_id), 1) << to_string(trace());
        {
            const Grant again = grant.again();
            EXPECT_EQ(counts().total(), 2u);
        }
        EXPECT_EQ(counts().total(), 2u);
        EXPECT_TRUE(grant.held());
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_EQ(counts()[Opcode::remove], 1u);
        EXPECT_EQ(counts().total(), 3u) << to_string(trace());  // the whole cycle
    }
    gate().reset_trace();
    mutex.lock();
    mutex.lock();
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_EQ(counts().total(), 2u);
    for (int i = 0; i < 3; ++i) mutex.unlock();
}

TEST_F(ExclusiveMutexCountsTest, WhoeverMetAQueueLastTimeSavesARequest) {
    auto holder = session();
    ExclusiveMutex held(holder, lock_path());
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    for (int round = 0; round < 3; ++round) {
        Grant theirs = held.acquire();
        gate().reset_trace();
        std::atomic<bool> done{false};
        Grant ours;
        mutex.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
            ours = std::move(result.value);
            done = true;
        });
        ASSERT_TRUE(await([&] { return replies()[Opcode::get_data] == 2; }));  // the predecessor, and its own node
        theirs.release();
        ASSERT_TRUE(await([&] { return done.load(); }));
        ASSERT_TRUE(ours.release_and_wait(kMaxWait));
        EXPECT_EQ(counts()[Opcode::exists], round == 0 ? 1u : 0u);
        EXPECT_EQ(counts()[Opcode::get_children2], 1u);
        EXPECT_EQ(counts().total(), round == 0 ? 5u : 4u) << to_string(trace());  // and the read of its own node
    }
}

TEST_F(ExclusiveMutexCountsTest, AHandOverBetweenSessionsIsSixRequestsAndOneEvent) {
    auto first = session(kNoHeartbeat), second = session(kNoHeartbeat);
    ExclusiveMutex one(first, lock_path()), other(second, lock_path());
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    const auto in_line = [](ExclusiveMutex& lock, std::atomic<bool>& done, Grant& grant) {
        lock.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
            grant = std::move(result.value);
            done = true;
        });
    };
    for (int round = 0; round < 3; ++round) {
        Grant holder = one.acquire();
        Grant next, ours;
        std::atomic<bool> next_done{false}, done{false};
        in_line(other, next_done, next);
        ASSERT_TRUE(await_nodes(2));
        gate().reset_trace();
        in_line(mutex, done, ours);
        ASSERT_TRUE(await([&] { return replies()[Opcode::get_data] == 2; }));
        holder.release();
        ASSERT_TRUE(await([&] { return next_done.load(); }));
        // It has learned that it is next while the other one holds.
        ASSERT_TRUE(await([&] { return replies()[Opcode::get_children2] == 2; }));
        next.release();
        ASSERT_TRUE(await([&] { return done.load(); }));
        EXPECT_EQ(counts()[Opcode::multi], 0u) << to_string(trace());
        EXPECT_TRUE(ours.held());
        ASSERT_TRUE(ours.release_and_wait(kMaxWait));
        EXPECT_EQ(counts().total(), round == 0 ? 7u : 6u) << to_string(trace());
        EXPECT_EQ(counts()[Opcode::remove], 1u);
        EXPECT_EQ(counts().writes(), 2u);
    }
    EXPECT_TRUE(await([&] { return server().watch_count() == 0; })) << server().four_letter("wchp");
}

TEST_F(ExclusiveMutexCountsTest, TryOnAHeldLockIsOneReadAndLeavesNoWatch) {
    auto holder = session();
    ExclusiveMutex held(holder, lock_path());
    const Grant grant = held.acquire();
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    gate().delay(Direction::to_client, kReplyDelay);
    gate().reset_trace();
    EXPECT_FALSE(mutex.try_lock());
    EXPECT_EQ(counts()[Opcode::get_children2], 1u);
    EXPECT_EQ(counts().total(), 1u) << to_string(trace());
    EXPECT_EQ(counts().writes(), 0u);
    EXPECT_EQ(round_trips(trace(), s.info().session_id), 1);
}

TEST_F(ExclusiveMutexCountsTest, TryOnAFreeLockIsAtMostTwoRoundTrips) {
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    gate().reset_trace();
    EXPECT_TRUE(in_round_trips({1, 2}, [&] { return mutex.try_lock(); }));
    EXPECT_LE(round_trips(trace(), s.info().session_id), 2) << to_string(trace());
    EXPECT_EQ(counts().total(), 3u);
    mutex.unlock();
}

TEST_F(ExclusiveMutexCountsTest, AReleaseWakesTheNextTwoOfFiftyWaiters) {  // H22
    auto holder = gated_session(kNoHeartbeat);
    ExclusiveMutex held(holder, lock_path());
    Grant grant = held.acquire();
    constexpr std::size_t kWaiters = 50;
    std::vector<Session> sessions;
    for (std::size_t i = 0; i < kWaiters; ++i) sessions.push_back(gated_session(kNoHeartbeat));
    std::mutex guard;
    std::vector<Grant> granted;
    granted.reserve(kWaiters);
    std::atomic<int> failed{0};
    for (auto& s : sessions) {
        ExclusiveMutex mutex(s, lock_path());
        mutex.acquire_async(Deadline::never(), {}, [&](AcquireResult result) {
            if (result.error || !result.value) ++failed;
            const std::lock_guard lock(guard);
            granted.push_back(std::move(result.value));
        });
    }
    const auto served = [&] {
        const std::lock_guard lock(guard);
        return granted.size();
    };
    // Each one watches two nodes: the two before it or, if it is next, its own. The holder, too, has watched its node.
    ASSERT_TRUE(await([&] { return gate().counts()[Opcode::get_data] == 2 * kWaiters + 1; }));
    ASSERT_TRUE(await([&] { return server().watch_count() >= static_cast<std::int64_t>(kWaiters); }));
    std::uint64_t lists = 0;
    std::set<std::string> earlier;  // their events may still arrive …
    std::set<std::int64_t> left;    // … also to those who do not wait any more, from the directory
    for (std::size_t done = 0; done < 5; ++done) {
        gate().reset_trace();
        Grant& leaving = done == 0 ? grant : granted[done - 1];
        left.insert(leaving.session_id());
        const std::string node = leaving.node();
        leaving.release();
        ASSERT_TRUE(await([&] { return served() == done + 1; }));
        std::set<std::int64_t> woken;
        for (const auto& record : trace()) {
            if (record.kind != Record::Kind::event || left.contains(record.session)) continue;
            if (!earlier.contains(record.path)) woken.insert(record.session);
        }
        EXPECT_LE(woken.size(), 2u) << to_string(trace());
        earlier.insert(node);
        EXPECT_EQ(counts()[Opcode::remove], 1u);
        EXPECT_LE(counts()[Opcode::multi], 1u);  // none, if the names came before the event
        lists += counts()[Opcode::get_children2];
        EXPECT_LE(counts().writes(), 2u) << to_string(trace());
    }
    EXPECT_LE(lists, 6u);  // one of each that becomes next
    EXPECT_EQ(failed, 0);
    for (auto& s : sessions) s.close();
    ASSERT_TRUE(await([&] { return served() == kWaiters; }));
}

TEST_F(ExclusiveMutexCountsTest, TenThousandFailedTriesLeaveNothing) {  // H17, H18
    auto holder = session(kNoHeartbeat);
    ExclusiveMutex held(holder, lock_path());
    const Grant grant = held.acquire();
    auto s = session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path());
    const auto tries = [&](int count) {
        for (int i = 0; i < count; ++i) {
            if (i % 10 == 0) {
                ASSERT_FALSE(mutex.try_lock_for(100us));
            } else {
                ASSERT_FALSE(mutex.try_lock());
            }
        }
    };
    tries(1000);  // what grows once, has grown
    ASSERT_TRUE(await_nodes(1));
    ASSERT_TRUE(await([&] { return server().watch_count() <= 1; }));
    [[maybe_unused]] const auto before = resident_kib();
    tries(10'000);
    EXPECT_TRUE(await_nodes(1));
    EXPECT_TRUE(await([&] { return server().watch_count() <= 1; })) << server().four_letter("wchp");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(resident_kib() - before, 3'000);
#endif
}

TEST_F(ExclusiveMutexCountsTest, AWaiterThatIsConnectedAgainSendsNothing) {  // H20
    auto holder = session(kNoHeartbeat);
    ExclusiveMutex held(holder, lock_path());
    Grant grant = held.acquire();
    constexpr std::size_t kWaiters = 20;
    std::vector<Session> sessions;
    for (std::size_t i = 0; i < kWaiters; ++i) sessions.push_back(gated_session(kNoHeartbeat));
    std::mutex guard;
    std::vector<Grant> granted;
    std::atomic<std::size_t> ended{0};
    std::stop_source stop;
    for (auto& s : sessions) {
        ExclusiveMutex(s, lock_path()).acquire_async(Deadline::never(), stop.get_token(), [&](AcquireResult result) {
            const std::lock_guard lock(guard);
            if (result.value) granted.push_back(std::move(result.value));
            ++ended;
        });
    }
    // The predecessor, and the one before that or the own node. A waiter whose reply is still on its way at the
    // disconnect would ask again.
    ASSERT_TRUE(await([&] { return replies()[Opcode::get_data] == 2 * kWaiters; })) << to_string(counts());
    gate().reset_trace();
    gate().reset_all();
    grant.release();
    // Whether it is missed while away or not: the first one is told of it. What it asks then is its own affair.
    ASSERT_TRUE(await([&] { return ended == 1; })) << to_string(counts());
    EXPECT_EQ(counts()[Opcode::get_children2], 0u) << to_string(counts());
    EXPECT_LE(gate().counts()[Opcode::get_data], 1u);  // the hold's
    EXPECT_EQ(counts()[Opcode::create2], 0u);          // all kept their places
    stop.request_stop();
    EXPECT_TRUE(await([&] { return ended == kWaiters; }));
    {
        const std::lock_guard lock(guard);
        EXPECT_EQ(granted.size(), 1u);
        granted.clear();
    }
    EXPECT_TRUE(await_nodes(0));
}

}  // namespace
}  // namespace zkrecipes::test
