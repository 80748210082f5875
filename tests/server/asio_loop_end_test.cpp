// zkrecipes/asio.hpp: event loops that are stopped or destroyed while calls are open.
#include <algorithm>
#include <memory>

#include "server/asio_support.hpp"

namespace zkrecipes::test {
namespace {

using asio::use_awaitable;

class AsioLoopEndTest : public AsioServerTest {};

TEST_F(AsioLoopEndTest, AStoppedLoopGoesOnWhereItWas) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    Grant held = mutex.acquire();
    asio::io_context loop;
    std::optional<Grant> told;
    async_acquire(mutex, Deadline::never(), asio::bind_executor(loop, [&](std::exception_ptr error, Grant grant) {
                      EXPECT_FALSE(error);
                      told.emplace(std::move(grant));
                  }));
    ASSERT_TRUE(await_nodes(2));
    loop.stop();
    loop.run();
    EXPECT_FALSE(told);
    held.release();  // the result comes while the loop stands
    ASSERT_TRUE(await_nodes(1));
    loop.restart();
    loop.run_for(kMaxWait);
    ASSERT_TRUE(told);
    EXPECT_TRUE(told->held());
}

/// Counts the handlers that are destroyed without being called.
struct Alive {
    explicit Alive(std::atomic<int>& counter) : count(&counter) { ++*count; }
    Alive(Alive&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
    ~Alive() {
        if (count) --*count;
    }
    std::atomic<int>* count;
};

TEST_F(AsioLoopEndTest, ADestroyedLoopDropsItsHandlersAndLeavesTheQueues) {
    auto client = session();
    auto other = session();
    ExclusiveMutex elsewhere(other, lock_path());
    const Grant held = elsewhere.acquire();
    std::atomic<int> handlers{0};
    std::atomic<int> called{0};
    {
        asio::io_context loop;
        for (int i = 0; i < 20; ++i) {
            ExclusiveMutex mutex(client, lock_path(), {.name = std::to_string(i)});  // with a node of its own
            async_acquire(
                mutex, Deadline::never(),
                asio::bind_executor(loop, [&, alive = Alive(handlers)](std::exception_ptr, Grant) { ++called; }));
            asio::co_spawn(
                loop,
                [](ExclusiveMutex lock, Alive, std::atomic<int>& count) -> asio::awaitable<void> {
                    const Grant grant = co_await async_acquire(lock, Deadline::never(), use_awaitable);
                    ++count;
                }(ExclusiveMutex(client, lock_path(), {.name = "of coroutine " + std::to_string(i)}), Alive(handlers),
                                                                        called),
                asio::detached);
        }
        loop.poll();  // the coroutines begin
        ASSERT_TRUE(await_nodes(41));
        EXPECT_EQ(handlers, 40);
    }
    EXPECT_EQ(handlers, 0);
    EXPECT_EQ(called, 0);
    EXPECT_TRUE(await_nodes(1)) << "they have left the queue";
    EXPECT_TRUE(await([&] { return core_leftovers(client).empty(); })) << core_leftovers(client);
}

TEST_F(AsioLoopEndTest, AGrantThatIsOnItsWayToADestroyedLoopIsReleased) {
    auto client = session();
    auto other = session();
    ExclusiveMutex next(other, lock_path());
    ExclusiveMutex mutex(client, lock_path());
    auto loop = std::make_unique<asio::io_context>();
    std::atomic<int> called{0};
    async_acquire(mutex, Deadline::never(), asio::bind_executor(*loop, [&](std::exception_ptr, Grant) { ++called; }));
    // The handler is in the loop's queue, with its grant, when the loop is destroyed.
    ASSERT_TRUE(await_nodes(1));
    std::promise<void> notifier_is_past_it;
    mutex.acquire_async(Deadline::passed(), {}, [&](const AcquireResult& busy) {
        EXPECT_FALSE(busy.value);
        notifier_is_past_it.set_value();
    });
    notifier_is_past_it.get_future().get();
    loop.reset();
    EXPECT_TRUE(next.try_acquire_for(kMaxWait));
    EXPECT_EQ(called, 0);
}

/// Results arrive while loops are destroyed: at any moment, on the notifier thread.
TEST_F(AsioLoopEndTest, LoopsThatEndWhileResultsArrive) {
    auto client = session();
    const int rounds = slowdown() > 1 ? 60 : 300;
    std::atomic<int> handlers{0};
    for (int round = 0; round < rounds; ++round) {
        asio::io_context loop;
        std::vector<ExclusiveMutex> locks;
        for (int i = 0; i < 8; ++i) {
            locks.emplace_back(client, path("lock-" + std::to_string(i)));
            async_acquire(locks.back(), Deadline::never(),
                          asio::bind_executor(loop, [alive = Alive(handlers)](std::exception_ptr, Grant) {}));
        }
        std::thread stopper([&] { loop.stop(); });
        loop.run_for(std::chrono::microseconds(round * 37 % 3000));
        stopper.join();
    }
    EXPECT_EQ(handlers, 0);
    for (int i = 0; i < 8; ++i) {
        ExclusiveMutex lock(client, path("lock-" + std::to_string(i)));
        EXPECT_TRUE(lock.try_acquire_for(kMaxWait)) << "every grant was released";
    }
    EXPECT_TRUE(await([&] { return core_leftovers(client).empty(); })) << core_leftovers(client);
}

TEST_F(AsioLoopEndTest, ASessionThatEndsTellsEveryHandler) {
    auto client = session();
    auto other = session();
    ExclusiveMutex mutex(client, lock_path());
    ExclusiveMutex elsewhere(other, lock_path());
    const Grant held = elsewhere.acquire();
    asio::io_context loop;
    int closed = 0;
    for (int i = 0; i < 50; ++i) {
        async_acquire(mutex, Deadline::never(), asio::bind_executor(loop, [&](std::exception_ptr error, Grant) {
                          closed += error_of([&] { std::rethrow_exception(error); }).errc() == Errc::closed;
                      }));
    }
    client.close();
    loop.run_for(kMaxWait);
    EXPECT_EQ(closed, 50);
}

}  // namespace
}  // namespace zkrecipes::test
