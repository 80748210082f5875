// ReadWriteLock on real servers, from alone to shared: nobody gets in between, whatever is lost on the way.
#include <zkrecipes/read_write_lock.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class DowngradeTest : public ExclusiveMutexServerTest {
protected:
    void SetUp() override {
        ExclusiveMutexServerTest::SetUp();
        if (!IsSkipped()) observer().make_path(lock_path());
    }
    static std::string number_of(const std::string& node) { return node.substr(node.size() - 10); }
    Match multi() const { return Match::op(Opcode::multi); }
};

TEST_F(DowngradeTest, TheNextWriterWaitsForTheShareAndReadersDoNot) {
    auto one = session(), two = session();
    ReadWriteLock a(one, lock_path()), b(two, lock_path());
    Grant alone = a.acquire();
    Acquiring writer([&] { return b.try_acquire_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(2));
    Acquiring reader([&] { return ReadWriteLock(two, lock_path()).try_acquire_shared_until(kMaxWait); });
    ASSERT_TRUE(await_nodes(3));
    Grant share = a.downgrade(alone);
    ASSERT_TRUE(share.held());
    EXPECT_THAT(share.node(), HasSubstr("-__READ__"));
    EXPECT_EQ(number_of(share.node()), number_of(alone.node()));
    EXPECT_EQ(observer().exists(share.node())->ephemeral_owner, one.info().session_id);
    auto queue = a.participants();
    ASSERT_THAT(queue, SizeIs(4));
    EXPECT_TRUE(queue[0].holder && queue[1].holder && !queue[2].holder && !queue[3].holder);
    // A resource that has seen the waiting writer must refuse this share.
    EXPECT_GT(share.token(), alone.token());
    EXPECT_LE(share.token(), queue[2].token);

    EXPECT_TRUE(alone.release_and_wait(kMaxWait));
    EXPECT_EQ(a.try_acquire().missed(), Missed::busy);
    if (!uses_outside_ensemble()) {
        ASSERT_TRUE(await([&] { return server().four_letter("wchp").find(share.node()) != std::string::npos; }));
    }
    EXPECT_FALSE(writer.done() || reader.done());
    EXPECT_FALSE(b.try_lock());
    EXPECT_TRUE(share.held());
    share.release();
    Grant next = writer.get();
    EXPECT_TRUE(next.held());
    EXPECT_FALSE(reader.done());
    next.release();
    EXPECT_TRUE(reader.get().held());
}

TEST_F(DowngradeTest, LevelsOfBothSidesAreCountedAndGivenBackInAnyOrder) {
    auto s = session(), other = session();
    ReadWriteLock lock(s, lock_path()), outside(other, lock_path());
    lock.lock();
    EXPECT_TRUE(lock.try_lock_shared());
    lock.lock_shared();
    lock.lock();
    EXPECT_TRUE(lock.held_by_caller() && lock.shared_held_by_caller());
    EXPECT_TRUE(await_nodes(2));
    lock.unlock();
    lock.unlock();
    EXPECT_TRUE(await_nodes(1));
    EXPECT_EQ(error_of([&] { lock.lock(); }).errc(), Errc::would_deadlock);
    EXPECT_TRUE(outside.try_lock_shared());
    outside.unlock_shared();
    lock.unlock_shared();
    EXPECT_FALSE(outside.try_lock());
    lock.unlock_shared();
    EXPECT_TRUE(outside.try_lock_for(kMaxWait));
    outside.unlock();
    // The share first: the rest is still alone.
    lock.lock();
    lock.lock_shared();
    lock.unlock_shared();
    EXPECT_TRUE(await_nodes(1));
    EXPECT_FALSE(outside.try_lock_shared());
    EXPECT_TRUE(lock.held_by_caller());
    EXPECT_FALSE(lock.shared_held_by_caller());
    lock.unlock();
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(DowngradeTest, ItCostsOneRoundTripAndTwoRequests) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto s = gated_session(kNoHeartbeat);
    ReadWriteLock lock(s, lock_path());
    const Grant alone = lock.acquire();
    const auto before = counts().total();
    const int trips_before = round_trips(trace(), s.info().session_id);
    const Grant share = in_round_trips({2}, [&] { return lock.downgrade(alone); });
    EXPECT_EQ(counts()[Opcode::multi], 1u);
    EXPECT_EQ(counts().total(), before + 2) << to_string(trace());
    EXPECT_EQ(round_trips(trace(), s.info().session_id), trips_before + 1) << to_string(trace());
}

TEST_F(DowngradeTest, AReplyThatIsLostLeavesExactlyOneShare) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    for (const auto dialect : {Dialect::curator, Dialect::kazoo}) {
        for (const bool executed : {true, false}) {
            auto s = gated_session();
            LockOptions options;
            options.dialect = dialect;
            ReadWriteLock lock(s, lock_path(), options);
            const Grant alone = lock.acquire();
            const auto fault = executed ? gate().cut_after(multi()) : gate().cut_before(multi());
            Grant share = lock.downgrade(alone, kMaxWait);
            EXPECT_TRUE(fault.reached());
            EXPECT_TRUE(share.held());
            EXPECT_THAT(nodes(), SizeIs(2));
            EXPECT_TRUE(share.release_and_wait(kMaxWait));
            EXPECT_THAT(nodes(), SizeIs(1));
            s.close();
            EXPECT_TRUE(await_nodes(0));
        }
    }
}

TEST_F(DowngradeTest, WhenThePolicyGivesUpTheShareIsDeletedOnceTheNetworkHeals) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    auto giving_up = session_options("");
    giving_up.retry = RetryPolicy::never();
    auto s = gated_session(giving_up);
    ReadWriteLock lock(s, lock_path());
    const Grant alone = lock.acquire();
    const auto fault = gate().cut_after(multi());
    EXPECT_EQ(error_of([&] { (void)lock.downgrade(alone); }).errc(), Errc::connection_lost);
    EXPECT_TRUE(fault.reached());
    EXPECT_TRUE(await_nodes(1));
    EXPECT_THAT(nodes().at(0), HasSubstr("__WRIT__"));
}

TEST_F(DowngradeTest, WhereTheOwnNodeWasDeletedThereIsNoShare) {
    auto s = session(), other = session();
    ReadWriteLock lock(s, lock_path()), outside(other, lock_path());
    const Grant alone = lock.acquire();
    ASSERT_TRUE(observer().remove(alone.node()));
    const Grant next = outside.try_acquire_until(kMaxWait);
    EXPECT_EQ(error_of([&] { (void)lock.downgrade(alone); }).errc(), Errc::lock_lost);
    EXPECT_THAT(nodes(), SizeIs(1));
    EXPECT_TRUE(next.held());
}

TEST_F(DowngradeTest, AMovedGrantIsDowngradedByAnotherThreadAndAsynchronously) {
    auto s = session();
    ReadWriteLock lock(s, lock_path());
    Grant alone = lock.acquire();
    Grant share;
    std::jthread([&, moved = std::move(alone)]() mutable {
        share = lock.downgrade(moved);
        alone = std::move(moved);
    }).join();
    EXPECT_TRUE(share.held());
    Grant second;
    std::atomic<bool> done{false};
    lock.downgrade_async(alone, kMaxWait, {}, [&](AcquireResult result) {
        second = std::move(result.value);
        done = true;
    });
    ASSERT_TRUE(await([&] { return done.load(); }));
    EXPECT_TRUE(second.held());
    EXPECT_TRUE(await_nodes(3));
    alone.release();
    share.release();
    EXPECT_TRUE(await_nodes(1));
    EXPECT_FALSE(lock.try_acquire());
    second.release();
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(DowngradeTest, OnlyAnExclusiveGrantOfThisLockIsDowngraded) {
    auto s = session(), other = session();
    ReadWriteLock lock(s, lock_path()), elsewhere(s, path("elsewhere")), of_other(other, path("of other"));
    ExclusiveMutex mutex(s, path("mutex"));
    const auto refused = [&](const Grant& grant, const char* why) {
        const Error error = error_of([&] { (void)lock.downgrade(grant); });
        EXPECT_EQ(error.errc(), Errc::bad_option);
        EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr(why), HasSubstr(lock_path())));
        EXPECT_EQ(error_of([&] { lock.downgrade_async(grant, kMaxWait, {}, [](AcquireResult) {}); }).errc(),
                  Errc::bad_option);
    };
    refused({}, "empty");
    refused(elsewhere.acquire(), "not one of this lock");
    refused(of_other.acquire(), "another session");
    refused(mutex.acquire(), "not one of this lock");
    refused(lock.acquire_shared(), "not one of this lock");
    EXPECT_EQ(error_of([&] { lock.downgrade_async(elsewhere.acquire(), kMaxWait, {}, nullptr); }).errc(),
              Errc::bad_option);
}

}  // namespace
}  // namespace zkrecipes::test
