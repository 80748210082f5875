#include "base/threads/shared_threads.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>

#include "base/threads/about_to_block.hpp"
#include "support/await.hpp"
#include "support/refusals.hpp"
#include "unit/base/piece.hpp"

namespace zkrecipes::internal {
namespace {

using zkrecipes::test::await;
using zkrecipes::test::NoThreads;

/// Whether each of them does what it is given.
bool all_work(SharedThreads& threads) {
    const auto ran = std::make_shared<std::atomic<int>>(0);
    const auto piece = [ran] { return std::make_shared<Piece>([ran] { ++*ran; }); };
    threads.loop().schedule(piece());
    threads.workers().schedule(piece());
    return await([&] { return *ran == 2; });
}

TEST(SharedThreadsTest, AllSessionsHaveTheSameUntilTheLastOneEnds) {
    auto first = SharedThreads::of_this_process();
    auto second = SharedThreads::of_this_process();
    EXPECT_EQ(first, second);
    const std::weak_ptr<SharedThreads> ended = first;
    first.reset();
    EXPECT_TRUE(all_work(*second));
    second.reset();
    EXPECT_TRUE(ended.expired());
    EXPECT_TRUE(all_work(*SharedThreads::of_this_process()));
}

TEST(SharedThreadsTest, EachOfThemMayEndThem) {
    for (const bool loop : {true, false}) {
        auto threads = std::make_shared<std::shared_ptr<SharedThreads>>(SharedThreads::of_this_process());
        const std::weak_ptr<SharedThreads> ended = *threads;
        const auto piece = std::make_shared<Piece>([threads] { threads->reset(); });
        loop ? (*threads)->loop().schedule(piece) : (*threads)->workers().schedule(piece);
        threads.reset();
        EXPECT_TRUE(await([&] { return ended.expired(); }));
    }
}

TEST(SharedThreadsTest, WhoIsAboutToBlockLeavesTheLoopToAnotherThread) {
    const auto threads = SharedThreads::of_this_process();
    std::promise<void> over;
    std::atomic<bool> blocks = false, has_gone_on = false;
    threads->loop().schedule(std::make_shared<Piece>([&] {
        EXPECT_TRUE(drives_a_loop());
        about_to_block();
        EXPECT_FALSE(drives_a_loop());
        about_to_block();  // has nothing more to leave
        blocks = true;
        over.get_future().wait();
        has_gone_on = true;
    }));
    ASSERT_TRUE(await([&] { return blocks.load(); }));
    EXPECT_TRUE(all_work(*threads));
    EXPECT_FALSE(has_gone_on);
    over.set_value();
    EXPECT_TRUE(await([&] { return has_gone_on.load(); }));
    EXPECT_TRUE(all_work(*threads));
}

TEST(SharedThreadsTest, WhereNoThreadCanTakeItOverTheLoopWaits) {
    const auto threads = SharedThreads::of_this_process();
    std::atomic<bool> done = false;
    threads->loop().schedule(std::make_shared<Piece>([&] {
        const NoThreads refused;
        about_to_block();
        EXPECT_TRUE(drives_a_loop());
        done = true;
    }));
    EXPECT_TRUE(await([&] { return done.load(); }));
    EXPECT_TRUE(all_work(*threads));
}

TEST(SharedThreadsTest, WhereAThreadIsRefusedThereAreNone) {
    const NoThreads refused;
    EXPECT_THROW(SharedThreads::of_this_process(), std::system_error);
}

TEST(SharedThreadsTest, AChildHasItsOwn) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizers permit no threads in a child of a program with threads";
#endif
    auto inherited = SharedThreads::of_this_process();
    ASSERT_TRUE(all_work(*inherited));
    const pid_t child = ::fork();
    if (child == 0) {
        inherited.reset();  // waits for no thread of the parent
        ::_exit(all_work(*SharedThreads::of_this_process()) ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(all_work(*inherited));
}

}  // namespace
}  // namespace zkrecipes::internal
