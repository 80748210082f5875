#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ExclusiveMutexServerTest, AcquiresAndReleasesOnAnEmptyTree) {  // H8
    auto s = session();
    ExclusiveMutex mutex(s, lock_path() + "/four/levels/deep");
    Grant grant = mutex.acquire();
    EXPECT_TRUE(grant.held());
    EXPECT_GT(grant.token(), 0);
    EXPECT_GT(grant.sure_for(), 0ms);
    EXPECT_THAT(grant.node(), HasSubstr("/four/levels/deep/_c_"));
    EXPECT_EQ(grant.session_id(), s.info().session_id);
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    EXPECT_FALSE(grant);
    EXPECT_THAT(raw().children(lock_path() + "/four/levels/deep"), IsEmpty());
}

TEST_F(ExclusiveMutexServerTest, WaitersAreServedInTheirOrder) {
    auto holder = session();
    ExclusiveMutex mutex(holder, lock_path());
    Grant grant = mutex.acquire();
    std::mutex guard;
    std::vector<int> order;
    std::vector<std::jthread> waiters;
    std::vector<Session> sessions;
    for (int i = 0; i < 5; ++i) sessions.push_back(session());
    for (int i = 0; i < 5; ++i) {
        waiters.emplace_back([&, i] {
            ExclusiveMutex mine(sessions[static_cast<std::size_t>(i)], lock_path());
            const Grant got = mine.acquire();
            const std::lock_guard lock(guard);
            order.push_back(i);
        });
        ASSERT_TRUE(await([&] { return nodes().size() == static_cast<std::size_t>(i) + 2; }));
    }
    FencingToken before = grant.token();
    EXPECT_GT(before, 0);
    grant.release();
    waiters.clear();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST_F(ExclusiveMutexServerTest, TwoObjectsOfOneSessionExcludeEachOther) {  // H29
    auto s = session();
    ExclusiveMutex one(s, lock_path()), two(s, lock_path());
    Grant grant = one.acquire();
    EXPECT_FALSE(two.try_lock());
    EXPECT_FALSE(two.try_lock_for(30ms));
    EXPECT_THAT(nodes(), SizeIs(1));
    grant.release();
    EXPECT_TRUE(two.try_lock());
    two.unlock();
}

TEST_F(ExclusiveMutexServerTest, TheTokenGrowsFromHolderToHolder) {
    auto s = session();
    ExclusiveMutex mutex(s, lock_path());
    FencingToken last = 0;
    for (int i = 0; i < 10; ++i) {
        const Grant grant = mutex.acquire();
        EXPECT_GT(grant.token(), last);
        last = grant.token();
    }
}

}  // namespace
}  // namespace zkrecipes::test
