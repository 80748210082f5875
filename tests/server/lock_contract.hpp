#pragma once

#include <algorithm>
#include <mutex>
#include <type_traits>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {

/// Runs what blocks on threads of its own.
struct OnThreads {
    template <class Work>
    static std::function<void()> start(Work work) {
        auto thread = std::make_shared<std::thread>(std::move(work));
        return [thread] { thread->join(); };
    }
};
/// Runs what blocks on fibers of the test's own thread.
struct OnFibers {
    template <class Work>
    static std::function<void()> start(Work work) {
        auto fiber = std::make_shared<boost::fibers::fiber>(std::move(work));
        return [fiber] { fiber->join(); };
    }
};

/// What every lock promises, whatever its recipe. A recipe joins with a type like this:
///   struct ExclusiveCase {
///       using Lock = ExclusiveMutex;                      // has the std requirements TimedLockable, and
///       try_acquire_until static constexpr bool reentrant = true; static Lock make(Session& session, const
///       std::string& path); static std::size_t nodes(const std::vector<std::string>& children);  // contenders among
///       the children of the path; static constexpr bool one_place = true;  // in the queue, for all calls of a session
///   };
/// A recipe whose nodes stand in other directories has instead of nodes():
///       static std::vector<std::string> directories(const std::string& path);
template <class Param>
class LockContract : public ExclusiveMutexServerTest {
protected:
    using Case = typename Param::Case;
    using Agents = typename Param::Agents;
    using Lock = typename Case::Lock;

    Lock make(Session& s) { return Case::make(s, lock_path()); }
    std::size_t contenders() {
        if constexpr (requires { Case::directories(std::string()); }) {
            std::size_t count = 0;
            for (const auto& directory : Case::directories(lock_path())) count += nodes_of(directory).size();
            return count;
        } else {
            return Case::nodes(nodes());
        }
    }
    /// As await(), and lets fibers run.
    template <class Condition>
    static bool eventually(Condition condition) {
        const auto limit = std::chrono::steady_clock::now() + kMaxWait;
        while (!condition()) {
            if (std::chrono::steady_clock::now() >= limit) return condition();
            boost::this_fiber::sleep_for(1ms);
        }
        return true;
    }
    /// Waits for all at the end of a scope.
    class Crowd {
    public:
        ~Crowd() { join(); }
        template <class Work>
        void add(Work work) {
            joins_.push_back(Agents::start(std::move(work)));
        }
        void join() {
            for (auto& join_one : std::exchange(joins_, {})) join_one();
        }

    private:
        std::vector<std::function<void()>> joins_;
    };
};
TYPED_TEST_SUITE_P(LockContract);

TYPED_TEST_P(LockContract, AnUnprotectedCounterLosesNothing) {
    auto one = this->session(), two = this->session();
    auto a = this->make(one), b = this->make(two);
    int counter = 0, inside = 0, overlaps = 0;
    {
        typename TestFixture::Crowd crowd;
        for (int agent = 0; agent < 8; ++agent) {
            crowd.add([&, agent] {
                auto& lock = agent % 2 == 0 ? a : b;
                for (int i = 0; i < 25; ++i) {
                    const std::lock_guard guard(lock);
                    overlaps += inside++;
                    const int seen = counter;
                    boost::this_fiber::yield();
                    counter = seen + 1;
                    --inside;
                }
            });
        }
    }
    EXPECT_EQ(counter, 200);
    EXPECT_EQ(overlaps, 0);
    EXPECT_TRUE(this->eventually([&] { return this->contenders() == 0; }));
}

TYPED_TEST_P(LockContract, WhoeverComesFirstIsServedFirst) {
    auto s = this->session();
    auto lock = this->make(s);
    lock.lock();
    std::mutex mutex;
    std::vector<int> order;
    std::vector<Session> sessions;
    for (int i = 0; i < 4; ++i) sessions.push_back(this->session());
    typename TestFixture::Crowd crowd;
    for (int i = 0; i < 4; ++i) {
        crowd.add([&, i] {
            auto mine = this->make(sessions[static_cast<std::size_t>(i)]);
            mine.lock();
            {
                const std::lock_guard guard(mutex);
                order.push_back(i);
            }
            mine.unlock();
        });
        ASSERT_TRUE(this->eventually([&] { return this->contenders() == static_cast<std::size_t>(i) + 2; }));
    }
    lock.unlock();
    crowd.join();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TYPED_TEST_P(LockContract, ATryOnAHeldLockFailsAndAWaitEndsAtItsDeadline) {
    auto s = this->session();
    auto lock = this->make(s);
    lock.lock();
    typename TestFixture::Crowd crowd;
    crowd.add([&] {
        EXPECT_FALSE(lock.try_lock());
        const auto start = std::chrono::steady_clock::now();
        EXPECT_FALSE(lock.try_lock_for(30ms));
        EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
        EXPECT_FALSE(lock.try_lock_until(std::chrono::system_clock::now() + 10ms));
        EXPECT_FALSE(lock.try_lock_until(std::chrono::steady_clock::now() - 1h));
        EXPECT_FALSE(lock.try_acquire_for(10ms));
    });
    crowd.join();
    EXPECT_TRUE(this->eventually([&] { return this->contenders() == 1; }));
    lock.unlock();
}

TYPED_TEST_P(LockContract, AStopEndsAWaitAndOnlyThatOne) {  // H39
    auto s = this->session(), other = this->session();
    auto lock = this->make(s), theirs = this->make(other);
    Grant held = lock.try_acquire_until(kMaxWait);
    ASSERT_TRUE(held);
    std::stop_source stop;
    bool stopped = false;
    bool served = false;
    typename TestFixture::Crowd crowd;
    crowd.add([&] {
        EXPECT_FALSE(lock.try_acquire_until(Deadline::never(), stop.get_token()));
        stopped = true;
        EXPECT_FALSE(lock.try_acquire_until(Deadline::never(), stop.get_token()));  // requested before
    });
    crowd.add([&] { served = theirs.try_acquire_until(kMaxWait).held(); });
    ASSERT_TRUE(this->eventually([&] { return this->contenders() == 3; }));
    stop.request_stop();
    ASSERT_TRUE(this->eventually([&] { return this->contenders() == 2; }));
    held.release();
    crowd.join();
    EXPECT_TRUE(stopped);
    EXPECT_TRUE(served);
}

TYPED_TEST_P(LockContract, AnEmptyGrantSaysWhyItIsEmpty) {
    auto other = this->session(), s = this->gated_session();
    auto theirs = this->make(other), lock = this->make(s);
    const Grant held = theirs.try_acquire_until(kMaxWait);
    ASSERT_TRUE(held);
    EXPECT_EQ(held.missed(), Missed::none);
    EXPECT_EQ(lock.try_acquire_until(Deadline::passed()).missed(), Missed::busy);
    std::stop_source stop;
    typename TestFixture::Crowd crowd;  // a MultiLock does not let its holder wait
    crowd.add(
        [&] { EXPECT_EQ(lock.try_acquire_until(Deadline::never(), stop.get_token()).missed(), Missed::stopped); });
    EXPECT_TRUE(this->eventually([&] { return this->contenders() == 2; }));
    stop.request_stop();
    crowd.join();
    this->gate().blackhole();
    crowd.add([&] { EXPECT_EQ(lock.try_acquire_for(100ms).missed(), Missed::unreachable); });
    crowd.join();
    this->gate().pass();
}

TYPED_TEST_P(LockContract, TheStandardGuardsWork) {
    auto s = this->session();
    auto lock = this->make(s);
    {
        std::unique_lock guard(lock, 10s);
        EXPECT_TRUE(guard.owns_lock());
        guard.unlock();
        EXPECT_TRUE(guard.try_lock());
    }
    {
        std::unique_lock guard(lock, std::defer_lock);
        EXPECT_TRUE(guard.try_lock_until(std::chrono::system_clock::now() + 10s));
    }
    auto other = TestFixture::Case::make(s, this->path("other"));
    { const std::scoped_lock both(lock, other); }
    EXPECT_TRUE(this->eventually([&] { return this->contenders() == 0; }));
}

TYPED_TEST_P(LockContract, AGrantIsGivenBackByWhoeverHasIt) {  // H36
    auto s = this->session();
    auto lock = this->make(s);
    Grant grant = lock.try_acquire_until(kMaxWait);
    const auto token = grant.token();
    typename TestFixture::Crowd crowd;
    crowd.add([&, moved = std::move(grant)]() mutable {
        EXPECT_TRUE(moved.held());
        moved.release();
        Grant next = lock.try_acquire_until(kMaxWait);
        EXPECT_GT(next.token(), token);
    });
    crowd.join();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
}

TYPED_TEST_P(LockContract, ReEntryFollowsTheAgent) {
    auto s = this->session();
    auto lock = this->make(s);
    lock.lock();
    typename TestFixture::Crowd crowd;
    if constexpr (TestFixture::Case::reentrant) {
        lock.lock();
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
        lock.unlock();
    }
    EXPECT_EQ(this->contenders(), 1u);
    crowd.add([&] { EXPECT_FALSE(lock.try_lock()); });
    crowd.join();
    lock.unlock();
    crowd.add([&] {
        EXPECT_TRUE(lock.try_lock_for(kMaxWait));
        lock.unlock();
    });
}

TYPED_TEST_P(LockContract, TheObjectMayBeDestroyedWhileOthersWaitAndHold) {
    auto s = this->session();
    Grant grant;
    bool served = false;
    typename TestFixture::Crowd crowd;
    {
        auto lock = std::make_unique<typename TestFixture::Lock>(this->make(s));
        grant = lock->try_acquire_until(kMaxWait);
        crowd.add([&served, raw = lock.get()] { served = raw->try_acquire_until(kMaxWait).held(); });
        ASSERT_TRUE(this->eventually([&] { return this->contenders() == 2; }));
    }
    EXPECT_TRUE(grant.held());
    grant.release();
    crowd.join();
    EXPECT_TRUE(served);
}

TYPED_TEST_P(LockContract, AnAsynchronousAcquireIsServedInTheSameQueue) {
    auto s = this->session();
    auto lock = this->make(s);
    lock.lock();
    std::atomic<int> answers{0};
    Grant got;
    lock.acquire_async(kMaxWait, {}, [&](AcquireResult result) {
        got = std::move(result.value);
        ++answers;
    });
    ASSERT_TRUE(this->eventually([&] { return this->contenders() == 2; }));
    EXPECT_EQ(answers, 0);
    lock.unlock();
    ASSERT_TRUE(this->eventually([&] { return answers == 1; }));
    EXPECT_TRUE(got.held());
    EXPECT_FALSE(lock.try_lock());
    got.release();
    EXPECT_TRUE(lock.try_lock_for(kMaxWait));
    lock.unlock();
}

TYPED_TEST_P(LockContract, CallsOfOneSessionAreServedInTheirOrder) {
    auto s = this->session();
    auto lock = this->make(s);
    lock.lock();
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::stop_source> stops(6);
    for (int i = 0; i < 6; ++i) {
        lock.acquire_async(kMaxWait, stops[static_cast<std::size_t>(i)].get_token(), [&, i](AcquireResult result) {
            const std::lock_guard guard(mutex);
            order.push_back(result.value ? i : -i);
        });
    }
    const auto ended = [&] {
        const std::lock_guard guard(mutex);
        return order.size();
    };
    stops[1].request_stop();
    stops[4].request_stop();
    ASSERT_TRUE(this->eventually([&] { return ended() == 2; }));
    lock.unlock();
    ASSERT_TRUE(this->eventually([&] { return ended() == 6; }));
    std::sort(order.begin(), order.begin() + 2);
    EXPECT_EQ(order, (std::vector<int>{-4, -1, 0, 2, 3, 5}));
    EXPECT_TRUE(this->eventually([&] { return this->contenders() == 0; }));
}

TYPED_TEST_P(LockContract, ClosingTheSessionEndsEveryWait) {
    auto s = this->session(), other = this->session();
    auto held = this->make(other), lock = this->make(s);
    held.lock();
    int closed = 0;
    typename TestFixture::Crowd crowd;
    for (int i = 0; i < 3; ++i) {
        crowd.add([&] {
            try {
                lock.lock();
            } catch (const Error& error) {
                static std::mutex mutex;
                const std::lock_guard guard(mutex);
                closed += error.errc() == Errc::closed;
            }
        });
    }
    ASSERT_TRUE(this->eventually([&] { return this->contenders() == (TestFixture::Case::one_place ? 2u : 4u); }));
    s.close();
    crowd.join();
    EXPECT_EQ(closed, 3);
    EXPECT_TRUE(this->eventually([&] { return this->contenders() == 1; }));
    held.unlock();
}

TYPED_TEST_P(LockContract, WhoeverAsksWhoIsThereWaitsUntilTheDeadlineAtMost) {
    auto s = this->gated_session();
    auto lock = this->make(s);
    lock.lock();
    EXPECT_FALSE(lock.participants(kMaxWait).empty());
    this->gate().blackhole(testenv::Direction::both);
    EXPECT_EQ(error_of([&] { lock.participants(20ms); }).errc(), Errc::unreachable);
    this->gate().pass();
    lock.unlock();
}

REGISTER_TYPED_TEST_SUITE_P(LockContract, AnUnprotectedCounterLosesNothing, WhoeverComesFirstIsServedFirst,
                            ATryOnAHeldLockFailsAndAWaitEndsAtItsDeadline, AStopEndsAWaitAndOnlyThatOne,
                            AnEmptyGrantSaysWhyItIsEmpty, TheStandardGuardsWork, AGrantIsGivenBackByWhoeverHasIt,
                            ReEntryFollowsTheAgent, TheObjectMayBeDestroyedWhileOthersWaitAndHold,
                            AnAsynchronousAcquireIsServedInTheSameQueue, CallsOfOneSessionAreServedInTheirOrder,
                            ClosingTheSessionEndsEveryWait, WhoeverAsksWhoIsThereWaitsUntilTheDeadlineAtMost);

template <class CaseType, class AgentsType>
struct ContractOf {
    using Case = CaseType;
    using Agents = AgentsType;
};

}  // namespace zkrecipes::test
