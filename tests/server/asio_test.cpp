// zkrecipes/asio.hpp: completion tokens, executors, allocators and cancellation.
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <set>

#include "server/asio_support.hpp"

namespace zkrecipes::test {
namespace {

using asio::use_awaitable;
using namespace asio::experimental::awaitable_operators;

class AsioTest : public AsioServerTest {};

TEST_F(AsioTest, Awaitables) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    run([&]() -> asio::awaitable<void> {
        Grant grant = co_await async_acquire(mutex, kMaxWait, use_awaitable);
        EXPECT_TRUE(grant.held());
        const Grant busy = co_await async_acquire(mutex, Deadline::passed(), use_awaitable);
        EXPECT_FALSE(busy);
        const auto contenders = co_await async_participants(mutex, kMaxWait, use_awaitable);
        EXPECT_EQ(contenders.size(), 1u);
        EXPECT_TRUE(co_await async_release_and_wait(std::move(grant), kMaxWait, use_awaitable));
    });
    EXPECT_EQ(nodes().size(), 0u);
}

TEST_F(AsioTest, LabelsChangeWhileTheLockIsHeld) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    const std::map<std::string, std::string> labels{{"step", "2"}, {"done", "7"}};
    run([&]() -> asio::awaitable<void> {
        Grant grant = co_await async_acquire(mutex, kMaxWait, use_awaitable);
        EXPECT_TRUE(co_await async_set_labels(grant, labels, kMaxWait, use_awaitable));
        const auto holder = (co_await async_participants(mutex, kMaxWait, use_awaitable)).at(0);
        EXPECT_EQ(holder.labels, labels);
        EXPECT_TRUE(co_await async_request_revocation(client, holder, kMaxWait, use_awaitable));
        EXPECT_FALSE(co_await async_set_labels(grant, labels, kMaxWait, use_awaitable)) << "the request stays";
        grant.release();
        auto [refused, written] = co_await async_set_labels(grant, labels, kMaxWait, asio::as_tuple(use_awaitable));
        EXPECT_FALSE(written);
        EXPECT_EQ(error_of([&, error = refused] { std::rethrow_exception(error); }).errc(), Errc::lock_lost);
    });
}

TEST_F(AsioTest, ErrorsAreThrown) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    Semaphore semaphore(client, path("semaphore"), 2);
    run([&]() -> asio::awaitable<void> {
        auto [refused, none] = co_await async_acquire(semaphore, 3, kMaxWait, asio::as_tuple(use_awaitable));
        EXPECT_TRUE(refused);
        EXPECT_FALSE(none);
        client.close();
        bool thrown = false;
        try {
            const Grant grant = co_await async_acquire(mutex, kMaxWait, use_awaitable);
        } catch (const Error& error) {
            thrown = error.errc() == Errc::closed;
        }
        EXPECT_TRUE(thrown) << "the call is not started; the handler is told why";
    });
}

TEST_F(AsioTest, AFutureWithoutALoop) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    auto future = async_acquire(mutex, kMaxWait, asio::use_future);
    Grant grant = future.get();
    EXPECT_TRUE(grant.held());
    EXPECT_FALSE(async_acquire(mutex, Deadline::passed(), asio::use_future).get());
    client.close();
    EXPECT_EQ(error_of([&] { (void)async_acquire(mutex, kMaxWait, asio::use_future).get(); }).errc(), Errc::closed);
}

TEST_F(AsioTest, ADeferredCallBeginsWhenItIsAwaited) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    run([&]() -> asio::awaitable<void> {
        auto later = async_acquire(mutex, Deadline::never(), asio::deferred);
        EXPECT_EQ(nodes().size(), 0u);
        const Grant grant = co_await std::move(later)(use_awaitable);
        EXPECT_TRUE(grant.held());
        EXPECT_EQ(nodes().size(), 1u);
    });
}

/// A completion token of a program's own: the handler's result goes into a variable.
struct Into {
    std::optional<Grant>& grant;
    asio::io_context& loop;
};

}  // namespace
}  // namespace zkrecipes::test

template <>
class boost::asio::async_result<zkrecipes::test::Into, void(std::exception_ptr, zkrecipes::Grant)> {
public:
    template <class Initiation, class... Args>
    static std::string initiate(Initiation initiation, zkrecipes::test::Into token, Args&&... args) {
        std::move(initiation)(
            boost::asio::bind_executor(token.loop.get_executor(),
                                       [&grant = token.grant](std::exception_ptr error, zkrecipes::Grant result) {
                                           if (!error) grant.emplace(std::move(result));
                                       }),
            std::forward<Args>(args)...);
        return "started";
    }
};

namespace zkrecipes::test {
namespace {

TEST_F(AsioTest, ACompletionTokenOfTheProgram) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    asio::io_context loop;
    std::optional<Grant> grant;
    EXPECT_EQ(async_acquire(mutex, kMaxWait, Into{grant, loop}), "started");
    loop.run_for(kMaxWait);
    ASSERT_TRUE(grant);
    EXPECT_TRUE(grant->held());
}

TEST_F(AsioTest, ACallbackRunsOnItsExecutorOnly) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    asio::thread_pool pool(4);
    const auto strand = asio::make_strand(pool);
    int inside = 0;  // guarded by the strand alone: ThreadSanitizer sees it, if it is not
    int done = 0;
    constexpr int calls = 200;
    for (int i = 0; i < calls; ++i) {
        async_acquire(mutex, Deadline::passed(), asio::bind_executor(strand, [&](std::exception_ptr error, Grant) {
                          EXPECT_FALSE(error);
                          EXPECT_TRUE(strand.running_in_this_thread());
                          EXPECT_EQ(++inside, 1);
                          ++done;
                          --inside;
                      }));
    }
    pool.join();
    EXPECT_EQ(done, calls);
}

TEST_F(AsioTest, AHandlerWithoutAnExecutorDoesNotRunOnTheNotifierThread) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    std::promise<std::thread::id> notifier, handler;
    mutex.acquire_async(Deadline::passed(), {}, [&](const auto&) { notifier.set_value(std::this_thread::get_id()); });
    async_acquire(mutex, Deadline::passed(),
                  [&](std::exception_ptr, Grant) { handler.set_value(std::this_thread::get_id()); });
    const auto where = handler.get_future().get();
    EXPECT_NE(where, notifier.get_future().get());
    EXPECT_NE(where, std::this_thread::get_id());
}

struct Memory {
    std::atomic<int> open{0};
    std::atomic<int> left{1000};  // allocations, before they are refused
};

template <class T>
struct CountingAllocator {
    using value_type = T;
    explicit CountingAllocator(Memory& counted) : memory(&counted) {}
    template <class U>
    CountingAllocator(const CountingAllocator<U>& other) : memory(other.memory) {}  // NOLINT: as the standard wants it
    T* allocate(std::size_t n) {
        if (memory->left-- == 0) throw std::bad_alloc();
        ++memory->open;
        return std::allocator<T>().allocate(n);
    }
    void deallocate(T* freed, std::size_t n) {
        --memory->open;
        std::allocator<T>().deallocate(freed, n);
    }
    bool operator==(const CountingAllocator&) const = default;
    Memory* memory;
};

TEST_F(AsioTest, MemoryComesFromTheHandlersAllocatorAndIsFreeWhenTheHandlerRuns) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    asio::io_context loop;
    Memory memory;
    int open_in_handler = -1;
    async_acquire(mutex, kMaxWait,
                  asio::bind_allocator(CountingAllocator<int>(memory),
                                       asio::bind_executor(loop, [&](std::exception_ptr, Grant grant) {
                                           EXPECT_TRUE(grant);
                                           open_in_handler = memory.open;
                                       })));
    EXPECT_GT(memory.open, 0);
    loop.run_for(kMaxWait);
    EXPECT_EQ(open_in_handler, 0);
    EXPECT_EQ(memory.open, 0);
}

TEST_F(AsioTest, AHandlerThatCannotBePostedIsDestroyedOnce) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    asio::io_context loop;
    Memory memory;
    const auto alive = std::make_shared<int>();
    const auto token = [&] {
        const auto handler = [alive](std::exception_ptr, auto&&) { ADD_FAILURE() << "called without memory"; };
        return asio::bind_allocator(CountingAllocator<int>(memory), asio::bind_executor(loop, handler));
    };
    memory.left = 1;  // for the call, and none to post the result
    EXPECT_THROW(async_release_and_wait(Grant(), kMaxWait, token()), std::exception) << "it is told at once";
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(memory.open, 0);
    client.close();
    memory.left = 1;
    EXPECT_THROW(async_acquire(mutex, kMaxWait, token()), std::exception)
        << "it cannot be told that it was not started";
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(memory.open, 0);
    auto other = session();
    ExclusiveMutex again(other, lock_path());
    memory.left = 1;
    async_acquire(again, kMaxWait, token());
    EXPECT_TRUE(await([&] { return alive.use_count() == 1; })) << "the result comes on the notifier thread";
    EXPECT_TRUE(await_nodes(0)) << "the grant is released";
    EXPECT_EQ(memory.open, 0);
    loop.run();
}

TEST_F(AsioTest, ACancellationSlotEndsTheWaitAndLeavesNothingInTheQueue) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    const Grant held = mutex.acquire();
    for (const auto type :
         {asio::cancellation_type::terminal, asio::cancellation_type::partial, asio::cancellation_type::total}) {
        asio::io_context loop;
        asio::cancellation_signal signal;
        std::optional<Grant> told;
        async_acquire(mutex, Deadline::never(),
                      asio::bind_cancellation_slot(
                          signal.slot(), asio::bind_executor(loop, [&](std::exception_ptr error, Grant grant) {
                              EXPECT_FALSE(error);
                              told.emplace(std::move(grant));
                          })));
        ASSERT_TRUE(await_nodes(2));
        signal.emit(asio::cancellation_type::none);
        asio::post(loop, [&] { signal.emit(type); });
        loop.run_for(kMaxWait);
        ASSERT_TRUE(told);
        EXPECT_FALSE(*told);
        signal.emit(type);  // when it is over
        EXPECT_TRUE(await_nodes(1));
    }
}

TEST_F(AsioTest, ATimerBesideAnAcquire) {
    auto client = session();
    ExclusiveMutex mutex(client, lock_path());
    const Grant held = mutex.acquire();
    run([&]() -> asio::awaitable<void> {
        asio::steady_timer timer(co_await asio::this_coro::executor, 20ms);
        const auto before = std::chrono::steady_clock::now();
        auto first = co_await (async_acquire(mutex, kMaxWait, use_awaitable) || timer.async_wait(use_awaitable));
        EXPECT_EQ(first.index(), 1u);
        EXPECT_LT(std::chrono::steady_clock::now() - before, kMaxWait / 2) << "the acquire went on";
    });
    EXPECT_TRUE(await_nodes(1));
}

/// The first step is started on the loop, the others on the notifier thread.
TEST_F(AsioTest, CallsOfSeveralStepsAtTheSameTime) {
    auto client = session();
    Semaphore semaphore(client, path("semaphore"), 2);
    ExclusiveMutex mutex(client, lock_path());
    MultiLock both(client, {{lock_path()}, {path("other")}});
    const Grant lease = semaphore.acquire();
    const Grant held = mutex.acquire();
    int right = 0;
    asio::io_context loop;
    const auto look = [&]() -> asio::awaitable<void> {
        const auto view = co_await async_inspect_lock(client, path("semaphore"), true, kMaxWait, use_awaitable);
        const auto found = co_await async_find_locks(client, root(), kMaxWait, use_awaitable);
        const auto names = co_await async_list_lock(client, lock_path(), kMaxWait, use_awaitable);
        const auto views = co_await async_participants(both, kMaxWait, use_awaitable);
        const bool is_free = co_await async_wait_until_free(client, path("other"), kMaxWait, use_awaitable);
        const auto node = co_await async_read_node(client, lock_path(), held, kMaxWait, use_awaitable);
        right += view.participants.size() == 1 && found.locks.size() == 2 && names.participants.size() == 1 &&
                 views.size() == 2 && is_free && node;
    };
    for (int i = 0; i < 50; ++i) asio::co_spawn(loop, look(), asio::detached);
    loop.run_for(4 * kMaxWait);
    EXPECT_EQ(right, 50);
}

/// 100 coroutines at a time, 10,000 acquires that a timer ends.
TEST_F(AsioTest, TenThousandAcquiresThatATimerEndsLeaveNoNode) {
    auto client = session();
    auto other = session();
    ExclusiveMutex elsewhere(other, lock_path());
    Grant held = elsewhere.acquire();
    const int rounds = slowdown() > 1 ? 10 : 100;
    int ended_by_timer = 0;
    asio::io_context loop;
    const auto one = [&](int number) -> asio::awaitable<void> {
        // Calls with equal options would share a node.
        ExclusiveMutex mutex(client, lock_path(), {.name = std::to_string(number)});
        for (int i = 0; i < rounds; ++i) {
            // Sometimes before the answer to the create, mostly while it waits.
            asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(i % 7));
            const auto first =
                co_await (async_acquire(mutex, Deadline::never(), use_awaitable) || timer.async_wait(use_awaitable));
            if (first.index() == 1) ++ended_by_timer;
        }
    };
    for (int i = 0; i < 100; ++i) asio::co_spawn(loop, one(i), asio::detached);
    loop.run_for(10 * kMaxWait);
    EXPECT_EQ(ended_by_timer, 100 * rounds);
    EXPECT_TRUE(await_nodes(1)) << nodes().size();
    EXPECT_TRUE(await([&] { return core_leftovers(client).empty(); })) << core_leftovers(client);
    held.release();
    ExclusiveMutex mutex(client, lock_path());
    const Grant next = mutex.try_acquire_for(kMaxWait);
    EXPECT_TRUE(next) << "nothing is in the way";
    const std::string node = next.node();
    EXPECT_GT(std::stoi(node.substr(node.size() - 10)), 1) << "nodes were made";
}

}  // namespace
}  // namespace zkrecipes::test
