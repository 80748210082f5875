// Ten thousand waiters on one session, and what they cost.
#include <malloc.h>

#include <filesystem>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

int threads_now() {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

std::int64_t heap_in_use() {
    const auto info = mallinfo2();
    return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kFibersPerLock = 5;
constexpr bool kMeasured = false;
#else
constexpr std::size_t kFibersPerLock = 50;
constexpr bool kMeasured = true;
#endif
constexpr std::size_t kLocks = 200;
constexpr int kThreadsOfAll = 5;  // the loop's and the workers', and such as were needed for a moment

TEST_F(ExclusiveMutexServerTest, TenThousandFibersWaitOnOneSessionAndAreAllServed) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    mallopt(M_ARENA_MAX, 1);                                                       // so that mallinfo2 sees everything
    const auto lock_of = [](std::size_t i) { return "/c/" + std::to_string(i); };  // short: the budget counts bytes
    auto holder = session(kNoHeartbeat);
    std::vector<Grant> held;
    for (std::size_t i = 0; i < kLocks; ++i) held.push_back(ExclusiveMutex(holder, lock_of(i)).acquire());

    observer();  // has threads of its own
    const int threads_before = threads_now();
    auto s = session(kNoHeartbeat);
    std::vector<ExclusiveMutex> mutexes;
    for (std::size_t i = 0; i < kLocks; ++i) mutexes.emplace_back(s, lock_of(i));
    constexpr std::size_t kFibers = kLocks * kFibersPerLock;
    std::size_t arrived = 0;
    std::size_t served = 0;
    std::vector<std::size_t> inside(kLocks, 0);
    std::size_t overlaps = 0;
    const auto before = heap_in_use();
    std::vector<boost::fibers::fiber> fibers;
    fibers.reserve(kFibers);
    for (std::size_t i = 0; i < kFibers; ++i) {
        fibers.emplace_back(std::allocator_arg, boost::fibers::protected_fixedsize_stack(64 * 1024), [&, i] {
            ++arrived;
            const Grant grant = mutexes[i % kLocks].acquire();
            overlaps += inside[i % kLocks]++;
            boost::this_fiber::yield();
            --inside[i % kLocks];
            served += grant.held();
        });
    }
    const auto limit = std::chrono::steady_clock::now() + 4 * kMaxWait;
    const auto all_wait = [&] {  // a fiber that has arrived leaves the thread to others only when it waits
        return arrived == kFibers && server().watch_count() >= static_cast<std::int64_t>(kLocks);
    };
    while (!all_wait() && std::chrono::steady_clock::now() < limit) boost::this_fiber::sleep_for(20ms);
    ASSERT_TRUE(all_wait());
    const auto nodes_of_one = nodes_of(lock_of(0)).size();
    const auto per_waiter = (heap_in_use() - before) / static_cast<std::int64_t>(kFibers);
    const int threads = threads_now() - threads_before;
    RecordProperty("bytes_per_waiter", static_cast<int>(per_waiter));
    RecordProperty("threads", threads);
    std::cout << "waiters: " << kFibers << ", bytes per waiter: " << per_waiter << ", threads: " << threads << "\n";
    if (kMeasured) {
        EXPECT_LE(per_waiter, 4096);
    }
    EXPECT_LE(threads, kThreadsOfAll);
    EXPECT_EQ(served, 0u);
    EXPECT_EQ(nodes_of_one, 2u);  // the holder's, and one for all of this session

    held.clear();
    for (auto& fiber : fibers) fiber.join();
    EXPECT_EQ(served, kFibers);
    EXPECT_EQ(overlaps, 0u);
    EXPECT_LE(threads_now() - threads_before, kThreadsOfAll);
    EXPECT_TRUE(await([&] { return server().watch_count() == 0; }));
    EXPECT_TRUE(await([&] { return nodes_of(lock_of(0)).empty(); }));
}

TEST_F(ExclusiveMutexServerTest, PastTheBudgetTheErrorSaysSoAndNothingElseIsDisturbed) {
    auto s = session();
    // Long names fill the 900 kB quickly: some thirty of them.
    const std::string long_name(29'000, 'x');
    std::vector<Grant> grants;
    std::optional<Error> refused;
    for (int i = 0; i < 60 && !refused; ++i) {
        try {
            grants.push_back(ExclusiveMutex(s, path(std::to_string(i) + long_name)).acquire());
        } catch (const Error& error) {
            refused = error;
        }
    }
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->errc(), Errc::budget_exceeded);
    EXPECT_THAT(refused->what(), HasSubstr("another Session"));
    EXPECT_GT(grants.size(), 25u);
    EXPECT_LT(grants.size(), 32u);
    for (const auto& grant : grants) EXPECT_TRUE(grant.held());
    auto other = session();
    EXPECT_TRUE(ExclusiveMutex(other, path("a" + long_name)).acquire().held());
    EXPECT_TRUE(grants.back().release_and_wait(kMaxWait));  // its room is free again
    EXPECT_TRUE(ExclusiveMutex(s, path("b" + long_name)).acquire().release_and_wait(kMaxWait));
    // Attempts that fail give their room back, too, as soon as the servers have confirmed that their nodes are gone.
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(grants[static_cast<std::size_t>(i)].release_and_wait(kMaxWait));
    ExclusiveMutex taken(other, path("c" + long_name));
    const Grant theirs = taken.acquire();
    ExclusiveMutex waiting(s, path("c" + long_name));
    for (int i = 0; i < 50; ++i) {
        ASSERT_FALSE(waiting.try_lock_for(2ms)) << i;
        ASSERT_TRUE(await([&] { return nodes_of(path("c" + long_name)).size() == 1; }));
    }
    EXPECT_TRUE(ExclusiveMutex(s, path("b" + long_name)).acquire().held());
}

}  // namespace
}  // namespace zkrecipes::test
