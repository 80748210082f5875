#include "base/threads/workers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>
#include <vector>

#include "support/await.hpp"
#include "support/refusals.hpp"
#include "unit/base/piece.hpp"

namespace zkrecipes::internal {
namespace {

using zkrecipes::test::await;
using zkrecipes::test::NoThreads;

std::size_t threads_named(const std::string& name) {
    std::size_t count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string its;
        std::getline(std::ifstream(thread.path() / "comm"), its);
        if (its == name) ++count;
    }
    return count;
}

class WorkersTest : public testing::Test {
protected:
    WorkersTest() {
        driver_ = std::thread([this] { loop_->run(); });
        workers_ = std::make_shared<Workers>("zkr-test", loop_);
        workers_->start();
    }
    ~WorkersTest() override {
        workers_->end();
        loop_->end();
        driver_.join();
    }
    void schedule(std::function<void()> work) { workers_->schedule(std::make_shared<Piece>(std::move(work))); }

    std::latch release_{1};  // for work that blocks
    const std::shared_ptr<Loop> loop_ = std::make_shared<Loop>();
    std::shared_ptr<Workers> workers_;
    std::thread driver_;
};

TEST_F(WorkersTest, WorkThatBlocksDelaysNoOther) {
    constexpr int kBlocked = 20;
    std::atomic<int> blocked = 0, ran = 0;
    for (int i = 0; i < kBlocked; ++i) {
        schedule([&] {
            ++blocked;
            release_.wait();
        });
        schedule([&] { ++ran; });
    }
    EXPECT_TRUE(await([&] { return blocked == kBlocked && ran == kBlocked; }));
    release_.count_down();
}

TEST_F(WorkersTest, NoPieceWaitsForAllThatCameBeforeIt) {
    // Whenever the workers look, some pieces have been taken since.
    constexpr int kPieces = 200;
    std::atomic<int> at_once = 0, most = 0, ran = 0;
    for (int i = 0; i < kPieces; ++i) {
        schedule([&] {
            const int present = ++at_once;
            for (int known = most; known < present && !most.compare_exchange_weak(known, present);) {
            }
            for (const Instant end = boot_now() + Workers::kPatience; boot_now() < end;) std::this_thread::yield();
            --at_once;
            ++ran;
        });
    }
    EXPECT_TRUE(await([&] { return ran == kPieces; }));
    EXPECT_GT(most, 2);
}

TEST_F(WorkersTest, WhereNoFurtherThreadIsToBeHadTheWorkWaits) {
    std::atomic<bool> blocked = false, ran = false;
    {
        const NoThreads refused;
        schedule([&] {
            blocked = true;
            release_.wait();
        });
        schedule([&] { ran = true; });
        ASSERT_TRUE(await([&] { return blocked.load(); }));
        std::atomic<bool> looked = false;  // after the workers have, since alarms ring in order
        loop_->set(loop_->make_alarm([&] { looked = true; }), boot_now() + 2 * Workers::kPatience);
        EXPECT_TRUE(await([&] { return looked.load(); }));
        EXPECT_FALSE(ran);
        release_.count_down();
    }
    EXPECT_TRUE(await([&] { return ran.load(); }));
}

TEST_F(WorkersTest, ThreadsThatAreNotNeededAnyMoreEnd) {
    const auto workers = std::make_shared<Workers>("zkr-idle", loop_, std::chrono::milliseconds(20));
    workers->start();
    for (int round = 0; round < 2; ++round) {
        constexpr std::size_t kBlocked = 20;
        const auto release = std::make_shared<std::latch>(1);
        for (std::size_t i = 0; i < kBlocked; ++i) {
            workers->schedule(std::make_shared<Piece>([release] { release->wait(); }));
        }
        EXPECT_TRUE(await([&] { return threads_named("zkr-idle") == kBlocked; }));
        release->count_down();
        EXPECT_TRUE(await([&] { return threads_named("zkr-idle") == 1; }));
    }
    workers->end();
}

TEST_F(WorkersTest, TheEndComesAfterWhatWasScheduled) {
    std::atomic<int> ran = 0;
    for (int i = 0; i < 100; ++i) schedule([&] { ++ran; });
    workers_->end();
    EXPECT_EQ(ran, 100);
}

TEST_F(WorkersTest, AWorkerMayEndThem) {
    schedule([&] {
        workers_->end();
        release_.count_down();
    });
    release_.wait();
}

}  // namespace
}  // namespace zkrecipes::internal
