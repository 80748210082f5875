#include "base/wait_event.hpp"

#include <gtest/gtest.h>
#include <boost/fiber/all.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/identity.hpp"
#include "base/runtime.hpp"

namespace zkrecipes::internal {
namespace {

TEST(WaitEventTest, AnEventThatIsSetDoesNotBlock) {
    WaitEvent event;
    EXPECT_FALSE(event.is_set());
    event.set();
    EXPECT_TRUE(event.is_set());
    event.wait();
    event.set();
    event.wait();
}

TEST(WaitEventTest, AThreadIsWokenByAnotherOne) {
    for (int round = 0; round < 2000; ++round) {
        WaitEvent event;  // dies right after wait(), while set() may still be on its way out
        std::thread setter([&event] { event.set(); });
        event.wait();
        setter.join();
    }
}

TEST(WaitEventTest, TheFrameOfTheWaiterMayEndBeforeSetReturns) {
    const auto runtime = make_thread_runtime();
    for (int round = 0; round < 20'000; ++round) {
        auto event = std::make_unique<WaitEvent>();
        runtime->post(Lane::protocol, [&target = *event] { target.set(); });
        event->wait();
        event.reset();
    }
}

TEST(WaitEventTest, OnlyTheWaitingFiberIsSuspended) {
    WaitEvent event;
    bool other_ran = false;
    bool woken = false;
    boost::fibers::fiber waiter([&] {
        event.wait();
        woken = true;
    });
    boost::fibers::fiber other([&] {
        other_ran = true;
        EXPECT_FALSE(woken);
        event.set();
    });
    waiter.join();
    other.join();
    EXPECT_TRUE(other_ran);
    EXPECT_TRUE(woken);
}

TEST(WaitEventTest, FibersAreWokenFromForeignThreads) {
    const auto runtime = make_thread_runtime();
    std::atomic<int> woken = 0;
    std::thread scheduler([&] {
        std::vector<boost::fibers::fiber> fibers;
        for (int i = 0; i < 200; ++i) {
            fibers.emplace_back([&] {
                for (int round = 0; round < 20; ++round) {
                    WaitEvent event;
                    runtime->post(round % 2 == 0 ? Lane::protocol : Lane::notifier, [&event] { event.set(); });
                    event.wait();
                    ++woken;
                }
            });
        }
        for (auto& fiber : fibers) fiber.join();
    });
    scheduler.join();
    EXPECT_EQ(woken, 4000);
}

TEST(WaitEventTest, SeveralWaitersOfAllKindsAreWokenTogether) {
    WaitEvent event;
    std::atomic<int> waiting = 0;
    std::atomic<int> woken = 0;
    const auto wait = [&] {
        ++waiting;
        event.wait();
        ++woken;
    };
    std::vector<std::thread> threads;
    threads.emplace_back(wait);
    threads.emplace_back([&] {
        boost::fibers::fiber first(wait);
        boost::fibers::fiber second(wait);
        first.join();
        second.join();
    });
    while (waiting < 3) std::this_thread::yield();
    event.set();
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(woken, 3);
}

TEST(IdentityTest, ItIsARandomUuidInCuratorsForm) {
    const auto runtime = make_thread_runtime();
    std::string previous;
    for (int i = 0; i < 1000; ++i) {
        const std::string uuid = random_uuid(*runtime);
        ASSERT_EQ(uuid.size(), 36U);
        for (std::size_t at = 0; at < uuid.size(); ++at) {
            const bool dash = at == 8 || at == 13 || at == 18 || at == 23;
            ASSERT_EQ(uuid[at] == '-', dash) << uuid;
            if (!dash) {
                ASSERT_NE(std::string("0123456789abcdef").find(uuid[at]), std::string::npos) << uuid;
            }
        }
        ASSERT_EQ(uuid[14], '8') << uuid << ": as neither Curator nor kazoo writes it";
        ASSERT_NE(std::string("89ab").find(uuid[19]), std::string::npos) << uuid;
        ASSERT_NE(uuid, previous);
        previous = uuid;
    }
}

TEST(WaitEventTest, AThreadWaitsAfterBoostFiberHasTakenItsDataDown) {
    struct Late {
        ~Late() {
            if (event == nullptr) return;
            EXPECT_FALSE(fibers_work_here());
            *waits = true;
            waits->notify_one();
            event->wait();
            EXPECT_TRUE(event->is_set());
        }
        WaitEvent* event = nullptr;
        std::atomic<bool>* waits = nullptr;
    };
    std::atomic<bool> waits = false;
    WaitEvent used;
    WaitEvent event;
    used.set();
    std::thread waiter([&] {
        static thread_local Late late;  // made before Boost.Fiber's data of the thread, so destroyed after them
        late.waits = &waits;
        late.event = &event;
        EXPECT_TRUE(fibers_work_here());
        used.wait();
    });
    waits.wait(false);
    event.set();
    waiter.join();
}

}  // namespace
}  // namespace zkrecipes::internal
