// LockOptions::delay_after_loss on a real server: who waits, who does not, and what stands in the directory.
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::HasSubstr;

class LockDelayTest : public ExclusiveMutexServerTest {
protected:
    static constexpr std::chrono::milliseconds kDelay = 700ms;
    static LockOptions with_delay(std::chrono::milliseconds delay = kDelay) {
        LockOptions options;
        options.delay_after_loss = delay;
        return options;
    }
    std::string mark() { return observer().get(lock_path())->data; }
    static std::string mark_of(const Grant& grant, bool held) {
        return "{\"v\":1,\"token\":" + std::to_string(grant.token()) + ",\"held\":" + (held ? "1}" : "0}");
    }
    /// The holder's session ends without its doing.
    void vanish(const Grant& grant) { gate().expire(grant.session_id()); }
};

TEST_F(LockDelayTest, AfterAReleaseNobodyWaits) {
    auto one = session(), two = session();
    // So long that a wait would be noticed.
    ExclusiveMutex a(one, lock_path(), with_delay(10min)), b(two, lock_path(), with_delay(10min));
    for (int i = 0; i < 3; ++i) {
        Grant grant = a.try_acquire_until(kMaxWait);
        ASSERT_TRUE(grant.held());
        EXPECT_EQ(mark(), mark_of(grant, true));
        Acquiring waits([&] { return b.try_acquire_until(kMaxWait / 2); });
        ASSERT_TRUE(await_nodes(2));
        grant.release();
        Grant next = waits.get();
        ASSERT_TRUE(next.held());
        EXPECT_EQ(mark(), mark_of(next, true));
        const auto given_back = mark_of(next, false);
        EXPECT_TRUE(next.release_and_wait(kMaxWait));
        EXPECT_EQ(mark(), given_back);
        EXPECT_TRUE(b.try_lock());
        b.unlock();
    }
}

TEST_F(LockDelayTest, AfterAHolderThatVanishedTheNextOneWaits) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    // Not a long timeout: a client that reconnects in the instant in which its session is closed under it is sometimes
    // left without an answer, and notices only after two thirds of it.
    auto one = gated_session(), two = session();
    ExclusiveMutex a(one, lock_path(), with_delay()), b(two, lock_path(), with_delay());
    Grant grant = a.acquire();
    Acquiring waits([&] { return b.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(2));
    const auto begin = std::chrono::steady_clock::now();
    vanish(grant);
    Grant next = waits.get();
    EXPECT_GE(std::chrono::steady_clock::now() - begin, kDelay);
    EXPECT_TRUE(next.held());
    EXPECT_EQ(mark(), mark_of(next, true));
    grant.release();  // too late for a word in the directory
    EXPECT_EQ(mark(), mark_of(next, true));
    next.release();

    // Also whoever comes long after, and a try does not wait.
    Grant again = a.try_acquire_until(kMaxWait);
    ASSERT_TRUE(again);
    ASSERT_TRUE(observer().remove(again.node()));
    EXPECT_FALSE(b.try_lock());
    EXPECT_FALSE(b.try_acquire_for(50ms)) << "the deadline counts in the delay, too";
    EXPECT_EQ(mark(), mark_of(again, true)) << "who gave up in the delay has written nothing";
    EXPECT_TRUE(await_nodes(0));
    const auto later = std::chrono::steady_clock::now();
    const Grant third = b.try_acquire_until(kMaxWait);
    EXPECT_TRUE(third.held());
    EXPECT_GE(std::chrono::steady_clock::now() - later, kDelay);
    again.release();  // of a hold whose node is gone: it must not write over the present one
    EXPECT_FALSE(a.try_lock());
    EXPECT_EQ(mark(), mark_of(third, true));
}

TEST_F(LockDelayTest, AsACallbackItIsTheSame) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path(), with_delay());
    observer().make_path(lock_path());
    observer().set(lock_path(), "{\"v\":1,\"token\":7,\"held\":1}");
    std::promise<AcquireResult> done;
    const auto begin = std::chrono::steady_clock::now();
    mutex.acquire_async(kMaxWait, {}, [&](AcquireResult result) { done.set_value(std::move(result)); });
    auto future = done.get_future();
    ASSERT_EQ(future.wait_for(kMaxWait), std::future_status::ready);
    const auto result = future.get();
    EXPECT_TRUE(result.value.held());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, kDelay);
    EXPECT_EQ(mark(), mark_of(result.value, true));
}

TEST_F(LockDelayTest, LostAnswersNeitherLetSomebodyInNorKeepAnybodyOut) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto one = gated_session(), two = session();
    ExclusiveMutex a(one, lock_path(), with_delay(10min)), b(two, lock_path(), with_delay(10min));
    for (const bool after : {false, true}) {
        SCOPED_TRACE(after);
        const auto match = Match::op(Opcode::multi).path_is(lock_path());
        const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
        Grant grant = a.try_acquire_until(kMaxWait);
        ASSERT_TRUE(grant.held());
        EXPECT_TRUE(fault.reached());
        EXPECT_EQ(mark(), mark_of(grant, true));
        EXPECT_TRUE(grant.release_and_wait(kMaxWait));
        EXPECT_TRUE(b.try_lock());
        b.unlock();
        EXPECT_TRUE(await_nodes(0));
    }
}

TEST_F(LockDelayTest, ItCostsTwoRoundTripsMore) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(kNoHeartbeat);
    ExclusiveMutex mutex(s, lock_path(), with_delay());
    { const Grant first = mutex.acquire(); }
    EXPECT_TRUE(await_nodes(0));
    gate().reset_trace();
    const Grant grant = in_round_trips({2, 1, 1}, [&] { return mutex.acquire(); });
    EXPECT_EQ(testenv::round_trips(trace(), s.info().session_id), 3) << to_string(trace());
}

TEST_F(LockDelayTest, OtherRecipesAndForeignDataAreErrors) {
    auto s = session();
    EXPECT_EQ(error_of([&] { ReadWriteLock lock(s, lock_path(), with_delay()); }).errc(), Errc::unsupported);
    EXPECT_EQ(error_of([&] { MultiLock lock(s, {{lock_path()}}, with_delay()); }).errc(), Errc::unsupported);
    EXPECT_EQ(error_of([&] { ExclusiveMutex lock(s, lock_path(), with_delay(-1ms)); }).errc(), Errc::bad_option);
    ExclusiveMutex mutex(s, lock_path(), with_delay());
    observer().make_path(lock_path());
    observer().set(lock_path(), "10.0.0.1");
    const Error error = error_of([&] { (void)mutex.acquire(); });
    EXPECT_EQ(error.errc(), Errc::bad_data);
    EXPECT_THAT(error.what(), HasSubstr("the last holder"));
    EXPECT_TRUE(await_nodes(0));
}

}  // namespace
}  // namespace zkrecipes::test
