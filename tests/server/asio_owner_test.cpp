// A Grant belongs to whoever has the object: coroutines of one thread or pool, threads that hand grants on, and fibers
// that move between threads exclude each other as separate processes do.
#include <boost/fiber/algo/shared_work.hpp>
#include <boost/fiber/all.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>

#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/semaphore_mutex.hpp>

#include "server/asio_support.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using asio::use_awaitable;

/// Who is in the critical section.
class Section {
public:
    void enter(bool shared) {
        const std::lock_guard guard(mutex_);
        shared ? ++readers_ : ++writers_;
        if (writers_ > 1 || (writers_ == 1 && readers_ > 0)) ++overlaps_;
    }
    void leave(bool shared) {
        const std::lock_guard guard(mutex_);
        shared ? --readers_ : --writers_;
        ++done_;
    }
    int done() const {
        const std::lock_guard guard(mutex_);
        return done_;
    }
    int overlaps() const {
        const std::lock_guard guard(mutex_);
        return overlaps_;
    }

private:
    mutable std::mutex mutex_;
    int writers_ = 0, readers_ = 0, done_ = 0, overlaps_ = 0;
};

/// The calls of one lock, by a fresh object of the registry each time if it has one.
struct Calls {
    std::function<Grant(Deadline)> acquire;
    std::function<asio::awaitable<Grant>(Deadline)> async_acquire;
    std::function<bool(Deadline)> lock;
    std::function<void()> unlock;
    bool shared = false;
};

template <class Get>
Calls exclusive(Get get) {
    return {[get](Deadline deadline) { return get().try_acquire_until(deadline); },
            [get](Deadline deadline) -> asio::awaitable<Grant> {
                auto&& lock = get();
                co_return co_await async_acquire(lock, deadline, use_awaitable);
            },
            [get](Deadline deadline) { return get().try_lock_until(deadline); }, [get] { get().unlock(); }};
}

template <class Get>
Calls shared(Get get) {
    return {[get](Deadline deadline) { return get().try_acquire_shared_until(deadline); },
            [get](Deadline deadline) -> asio::awaitable<Grant> {
                auto&& lock = get();
                co_return co_await async_acquire_shared(lock, deadline, use_awaitable);
            },
            [get](Deadline deadline) { return get().try_lock_shared_until(deadline); },
            [get] { get().unlock_shared(); }, true};
}

struct Kind {
    const char* name;
    /// One for each contender.
    std::function<std::vector<Calls>(Session&, const std::string& path, int contenders)> make;
};

constexpr int kContenders = 8;

template <class Lock, class... Last>
auto one_object(Session& session, std::string path, Last... last) {
    const auto lock = std::make_shared<Lock>(session, std::move(path), std::move(last)...);
    return [lock]() -> Lock& { return *lock; };
}

template <class Get>
std::vector<Calls> pairs_of(const Get& get, int contenders) {
    std::vector<Calls> all;
    for (int i = 0; i < contenders; ++i) all.push_back(i % 3 == 2 ? shared(get) : exclusive(get));
    return all;
}

LockOptions in_turns() {
    LockOptions options;
    options.local_handovers = 4;
    return options;
}

const Kind kKinds[] = {
    {"ExclusiveMutex",
     [](Session& s, const std::string& path, int n) {
         return std::vector<Calls>(static_cast<std::size_t>(n), exclusive(one_object<ExclusiveMutex>(s, path)));
     }},
    {"ReadWriteLock",
     [](Session& s, const std::string& path, int n) { return pairs_of(one_object<ReadWriteLock>(s, path), n); }},
    {"MultiLock",
     [](Session& s, const std::string& path, int n) {
         const auto lock = std::make_shared<MultiLock>(
             s, std::vector<MultiLock::Member>{{path + "/one"}, {path + "/two", MultiLock::As::exclusive}});
         return std::vector<Calls>(static_cast<std::size_t>(n), exclusive([lock]() -> MultiLock& { return *lock; }));
     }},
    {"SemaphoreMutex",
     [](Session& s, const std::string& path, int n) {
         return std::vector<Calls>(static_cast<std::size_t>(n), exclusive(one_object<SemaphoreMutex>(s, path)));
     }},
    {"LockRegistry",
     [](Session& s, const std::string& path, int n) {
         const auto locks = std::make_shared<LockRegistry>(s, path, in_turns());
         return std::vector<Calls>(static_cast<std::size_t>(n), exclusive([locks] { return locks->get("key"); }));
     }},
    {"ReadWriteLockRegistry", [](Session& s, const std::string& path, int n) {
         const auto locks = std::make_shared<ReadWriteLockRegistry>(s, path, in_turns());
         return pairs_of([locks] { return locks->get("key"); }, n);
     }}};

class OwnerServerTest : public AsioServerTest, public ::testing::WithParamInterface<Kind> {
protected:
    static int rounds() { return std::getenv("ZKRECIPES_TEST_WHOLE") != nullptr ? 1000 : 30; }
    std::vector<Calls> calls(Session& session) const { return GetParam().make(session, lock_path(), kContenders); }

    Section section;
};

/// What a service does with each request. `blocking`: it does not know that its thread waits.
asio::awaitable<void> serve(const Calls& calls, Section& section, int rounds, bool blocking) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (section.done() < rounds) {
        Grant grant;
        if (blocking) {
            grant = calls.acquire(50ms);
        } else {
            grant = co_await calls.async_acquire(50ms);
        }
        if (grant) {
            section.enter(calls.shared);
            timer.expires_after(1ms);
            co_await timer.async_wait(use_awaitable);
            section.leave(calls.shared);
            grant.release();
        }
        timer.expires_after(0ms);  // the others' turn
        co_await timer.async_wait(use_awaitable);
    }
}

TEST_P(OwnerServerTest, CoroutinesOfAPoolAreNeverInsideTogether) {
    for (const bool blocking : {true, false}) {
        auto s = session();
        const auto all = calls(s);
        Section here;
        asio::thread_pool pool(4);
        std::vector<std::future<void>> ends;
        for (const Calls& each : all) {
            ends.push_back(asio::co_spawn(pool, serve(each, here, rounds(), blocking), asio::use_future));
        }
        for (auto& end : ends) end.get();
        EXPECT_EQ(here.overlaps(), 0);
        EXPECT_GE(here.done(), rounds());
    }
}

TEST_P(OwnerServerTest, CoroutinesOfOneThreadAreNeverInsideTogether) {
    auto s = session();
    const auto all = calls(s);
    asio::io_context loop;
    std::vector<std::future<void>> ends;
    for (std::size_t i = 0; i < all.size(); ++i) {
        ends.push_back(asio::co_spawn(loop, serve(all[i], section, rounds() / 5, i < 2), asio::use_future));
    }
    loop.run_for(2 * kMaxWait);
    for (auto& end : ends) {
        ASSERT_EQ(end.wait_for(0s), std::future_status::ready);
        end.get();
    }
    EXPECT_EQ(section.overlaps(), 0);
}

/// Each thread acquires, and hands what it got to whichever thread is free. The receiver works under it.
TEST_P(OwnerServerTest, GrantsThatAreMovedBetweenThreadsExclude) {
    auto s = session();
    const auto all = calls(s);
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<std::pair<Grant, bool>> moved;
    bool over = false;
    std::vector<std::jthread> workers;
    for (int i = 0; i < 2; ++i) {
        workers.emplace_back([&] {
            for (;;) {
                std::unique_lock guard(mutex);
                filled.wait(guard, [&] { return over || !moved.empty(); });
                if (moved.empty()) return;
                const auto [grant, shared] = std::move(moved.front());
                moved.pop_front();
                guard.unlock();
                std::this_thread::yield();
                section.leave(shared);
            }
        });
    }
    {
        std::vector<std::jthread> acquirers;
        for (int i = 0; i < 4; ++i) {
            acquirers.emplace_back([&, i] {
                const Calls& mine = all[static_cast<std::size_t>(i)];
                while (section.done() < rounds()) {
                    Grant grant = mine.acquire(i % 2 == 0 ? Deadline(50ms) : Deadline(kMaxWait));
                    if (!grant) continue;
                    section.enter(mine.shared);
                    const std::lock_guard guard(mutex);
                    moved.emplace_back(std::move(grant), mine.shared);
                    filled.notify_one();
                }
            });
        }
    }
    {
        const std::lock_guard guard(mutex);
        over = true;
    }
    filled.notify_all();
    workers.clear();
    EXPECT_EQ(section.overlaps(), 0);
    EXPECT_GE(section.done(), rounds());
}

/// Fibers that go on by whichever thread is free. What a fiber has locked stays its own.
TEST_P(OwnerServerTest, FibersThatMoveBetweenThreadsExclude) {
    auto s = session();
    const auto all = calls(s);
    std::atomic<int> running{kContenders};
    boost::fibers::mutex mutex;
    boost::fibers::condition_variable ended;
    const auto body = [&](int i) {
        const Calls& mine = all[static_cast<std::size_t>(i)];
        while (section.done() < rounds()) {
            if (i % 2 == 0) {
                const Grant grant = mine.acquire(50ms);
                if (!grant) continue;
                section.enter(mine.shared);
                boost::this_fiber::yield();
                section.leave(mine.shared);
            } else if (mine.lock(50ms)) {
                section.enter(mine.shared);
                boost::this_fiber::yield();
                section.leave(mine.shared);
                mine.unlock();
            }
        }
        const std::lock_guard guard(mutex);
        if (--running == 0) ended.notify_all();
    };
    const auto wait_for_all = [&] {
        std::unique_lock guard(mutex);
        ended.wait(guard, [&] { return running == 0; });
    };
    std::latch ready(3);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&, i] {
            boost::fibers::use_scheduling_algorithm<boost::fibers::algo::shared_work>();
            ready.arrive_and_wait();
            if (i == 0) {
                for (int fiber = 0; fiber < kContenders; ++fiber) boost::fibers::fiber(body, fiber).detach();
            }
            wait_for_all();
        });
    }
    threads.clear();
    EXPECT_EQ(section.overlaps(), 0);
}

INSTANTIATE_TEST_SUITE_P(EachLock, OwnerServerTest, ::testing::ValuesIn(kKinds),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace zkrecipes::test
