#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/runtime.hpp"
#include "support/await.hpp"
#include "support/refusals.hpp"

namespace {

thread_local int random_refused_with = 0;        // the next time; 0: it is not refused
thread_local std::size_t random_at_most = 4096;  // bytes at a time

}  // namespace

extern "C" ssize_t getrandom(void* bytes, std::size_t size, unsigned flags) {
    if (const int error = std::exchange(random_refused_with, 0); error != 0) {
        errno = error;
        return -1;
    }
    return ::syscall(SYS_getrandom, bytes, std::min(size, random_at_most), flags);
}

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using zkrecipes::test::await;
using zkrecipes::test::NoThreads;

constexpr auto kMaxWait = 30s;

/// A condition that threads of the runtime make true.
class Latch {
public:
    explicit Latch(int count = 1) : count_(count) {}
    void down() {
        const std::lock_guard lock(mutex_);
        --count_;
        changed_.notify_all();
    }
    bool wait() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kMaxWait, [this] { return count_ <= 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int count_;
};

/// A thread that was joined stands in /proc for a moment longer: Linux wakes who joins it before it takes it out of the
/// list.
std::set<std::string> our_threads() {
    std::set<std::string> names;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(task.path() / "comm");
        std::string name;
        std::getline(file, name);
        if (name.rfind("zkr-", 0) == 0) names.insert(name);
    }
    return names;
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
}

TEST(ThreadRuntimeTest, ALaneRunsItsPostsInOrderOnOtherThreads) {
    const auto runtime = make_thread_runtime();
    for (const Lane lane : {Lane::protocol, Lane::notifier, Lane::blocking}) {
        Latch done;
        std::vector<int> order;
        std::set<std::thread::id> threads;
        for (int i = 0; i < 1000; ++i) {
            runtime->post(lane, [&, i] {
                order.push_back(i);
                threads.insert(std::this_thread::get_id());
                if (i == 999) done.down();
            });
        }
        ASSERT_TRUE(done.wait());
        EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
        EXPECT_EQ(order.size(), 1000U);
        EXPECT_EQ(threads.count(std::this_thread::get_id()), 0U);
    }
}

TEST(ThreadRuntimeTest, AllThreadsStartWithTheRuntimeAndAreNamed) {
    ASSERT_TRUE(await([] { return our_threads().empty(); }));
    const auto runtime = make_thread_runtime();
    const std::set<std::string> all{"zkr-loop", "zkr-worker"};
    EXPECT_TRUE(await([&] { return our_threads() == all; }));
    runtime->stop();
    EXPECT_TRUE(await([] { return our_threads().empty(); }));
}

TEST(ThreadRuntimeTest, AThreadThatTheSystemRefusesIsKnownAtOnceAndNothingIsLeftBehind) {
    const std::size_t descriptors = open_descriptors();
    {
        const NoThreads refused;
        EXPECT_THROW(make_thread_runtime(), std::system_error);
    }
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_TRUE(await([] { return our_threads().empty(); }));
    EXPECT_NO_THROW(make_thread_runtime());
}

TEST(ThreadRuntimeTest, ABlockedLaneDoesNotHoldUpTheOthers) {
    const auto runtime = make_thread_runtime();
    Latch release;
    Latch others(2);
    runtime->post(Lane::blocking, [&] { release.wait(); });
    runtime->post(Lane::protocol, [&] { others.down(); });
    runtime->post(Lane::notifier, [&] { others.down(); });
    EXPECT_TRUE(others.wait());
    release.down();
}

TEST(ThreadRuntimeTest, TimersRunAtTheirInstantInOrder) {
    // True: the timers were set before the lane could run one of them.
    const auto in_order = [] {
        const auto runtime = make_thread_runtime();
        Latch done;
        std::vector<int> order;
        const Instant start = runtime->now();
        Instant ran_at{};
        runtime->at(start + 40ms, [&] {
            order.push_back(2);
            ran_at = runtime->now();
            done.down();
        });
        runtime->at(start + 20ms, [&] { order.push_back(1); });  // earlier than the one that the lane sleeps for
        runtime->at(start - 1h, [&] { order.push_back(0); });
        const bool in_time = runtime->now() < start + 20ms;
        EXPECT_TRUE(done.wait());
        runtime->stop();
        EXPECT_TRUE(!in_time || order == (std::vector{0, 1, 2}));
        EXPECT_GE(ran_at, start + 40ms);
        return in_time;
    };
    EXPECT_TRUE(await(in_order));
}

TEST(ThreadRuntimeTest, ALaneThatWaitsForATimerTakesNoTimeOfAProcessor) {
    const auto runtime = make_thread_runtime();
    const auto spent = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    };
    Latch asleep, done;
    std::chrono::nanoseconds begin{}, end{};
    runtime->post(Lane::protocol, [&] { asleep.down(); });
    ASSERT_TRUE(asleep.wait());
    runtime->at(runtime->now() + 1ms, [&] { begin = spent(); });
    runtime->at(runtime->now() + 300ms, [&] {
        end = spent();
        done.down();
    });
    ASSERT_TRUE(done.wait());
    EXPECT_LT(end - begin, 20ms);
}

TEST(ThreadRuntimeTest, TimersAtTheEndsOfTimeAreHarmless) {
    const auto runtime = make_thread_runtime();
    Latch done;
    const TimerId never = runtime->at(Instant::max(), [] { FAIL(); });
    runtime->at(Instant::min(), [&] { done.down(); });
    ASSERT_TRUE(done.wait());
    EXPECT_TRUE(runtime->cancel(never));
}

TEST(ThreadRuntimeTest, ACancelledTimerDoesNotRunAndOneThatRanCannotBeCancelled) {
    const auto runtime = make_thread_runtime();
    Latch done;
    bool cancelled_ran = false;
    TimerId second = 0;
    runtime->post(Lane::protocol, [&] {  // where timers run, so that none can run in between
        const Instant start = runtime->now();
        const TimerId first = runtime->at(start + 10ms, [&] { cancelled_ran = true; });
        second = runtime->at(start + 20ms, [&] { done.down(); });
        EXPECT_TRUE(runtime->cancel(first));
        EXPECT_FALSE(runtime->cancel(first));
        EXPECT_FALSE(runtime->cancel(0));
    });
    ASSERT_TRUE(done.wait());
    EXPECT_FALSE(runtime->cancel(second));
    EXPECT_FALSE(cancelled_ran);
}

TEST(ThreadRuntimeTest, ATimerMayCancelAndSetOthers) {
    const auto runtime = make_thread_runtime();
    Latch done;
    bool cancelled_ran = false;
    const Instant start = runtime->now();
    TimerId victim = 0;
    runtime->post(Lane::protocol, [&] {  // where timers run, so that none can run in between
        victim = runtime->at(start + 5ms, [&] { cancelled_ran = true; });
        runtime->at(start, [&] {
            runtime->cancel(victim);
            runtime->at(start + 20ms, [&] { done.down(); });
        });
    });
    ASSERT_TRUE(done.wait());
    EXPECT_FALSE(cancelled_ran);
}

TEST(ThreadRuntimeTest, PostsThatBreedPostsDoNotStarveTimers) {
    const auto runtime = make_thread_runtime();
    std::atomic<bool> timer_ran = false;
    std::atomic<bool> starved = false;
    Latch done;
    const auto end = std::chrono::steady_clock::now() + kMaxWait;
    std::function<void()> breed = [&] {
        if (timer_ran) return done.down();
        if (std::chrono::steady_clock::now() > end) {
            starved = true;
            return done.down();
        }
        runtime->post(Lane::protocol, breed);
    };
    runtime->at(runtime->now() + 1ms, [&] { timer_ran = true; });
    runtime->post(Lane::protocol, breed);
    ASSERT_TRUE(done.wait());
    EXPECT_FALSE(starved);
}

TEST(ThreadRuntimeTest, ManyThreadsSetAndCancelTimersAtOnce) {
    const auto runtime = make_thread_runtime();
    constexpr int kThreads = 4;
    constexpr int kTimers = 5000;
    std::atomic<int> ran = 0;
    std::atomic<int> cancelled = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kTimers; ++i) {
                const auto when = runtime->now() + std::chrono::microseconds((i * 37 + t) % 3000);
                const TimerId timer = runtime->at(when, [&] { ++ran; });
                if (i % 2 == 0 && runtime->cancel(timer)) ++cancelled;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(await([&] { return ran + cancelled == kThreads * kTimers; })) << ran << " + " << cancelled;
}

TEST(ThreadRuntimeTest, StopRunsWhatWasPostedAndDropsTimersAndWhatComesLater) {
    const auto runtime = make_thread_runtime();
    std::atomic<int> ran = 0;
    const auto owned = std::make_shared<int>(1);
    Latch release;
    for (const Lane lane : {Lane::protocol, Lane::notifier, Lane::blocking}) {
        runtime->post(lane, [&] { release.wait(); });
        for (int i = 0; i < 10; ++i) runtime->post(lane, [&] { ++ran; });
    }
    runtime->at(runtime->now() + 1h, [owned, &ran] { ran += 1000; });
    std::thread opener([&] { release.down(); });
    runtime->stop();
    opener.join();
    EXPECT_EQ(ran, 30);
    EXPECT_EQ(owned.use_count(), 1);
    runtime->post(Lane::notifier, [owned, &ran] { ran += 1000; });
    EXPECT_EQ(runtime->at(runtime->now(), [owned, &ran] { ran += 1000; }), 0U);
    EXPECT_EQ(owned.use_count(), 1);
    runtime->stop();
    EXPECT_EQ(ran, 30);
}

TEST(ThreadRuntimeTest, WhatALaneBeginsWhileStoppingIsFinished) {
    // Closing a handle on the blocking lane ends with a post to the protocol lane.
    const auto runtime = make_thread_runtime();
    Latch release;
    bool finished = false;
    runtime->post(Lane::blocking, [&] {
        release.wait();
        runtime->post(Lane::protocol, [&] { runtime->post(Lane::notifier, [&] { finished = true; }); });
    });
    std::thread opener([&] { release.down(); });
    runtime->stop();
    opener.join();
    EXPECT_TRUE(finished);
}

TEST(ThreadRuntimeTest, ALaneMayStopTheRuntime) {
    for (const Lane lane : {Lane::protocol, Lane::notifier, Lane::blocking}) {
        auto runtime = make_thread_runtime();
        Latch done;
        std::atomic<int> after = 0;
        for (const Lane other : {Lane::protocol, Lane::notifier, Lane::blocking}) runtime->post(other, [] {});
        runtime->post(lane, [&, runtime] {
            runtime->stop();
            done.down();
        });
        runtime->post(lane, [&] { ++after; });
        ASSERT_TRUE(done.wait());
        runtime->stop();
        EXPECT_TRUE(await([&] { return our_threads().empty(); }));
        EXPECT_LE(after, 1);
    }
}

TEST(ThreadRuntimeTest, ALaneMayDropTheLastReference) {
    for (const Lane lane : {Lane::protocol, Lane::notifier, Lane::blocking}) {
        auto runtime = make_thread_runtime();
        Latch shared;
        Latch done;
        runtime->post(lane, [runtime, &shared, &done]() mutable {
            shared.wait();
            runtime.reset();
            done.down();
        });
        runtime.reset();
        shared.down();
        ASSERT_TRUE(done.wait());
        EXPECT_TRUE(await([] { return our_threads().empty(); }));
    }
}

TEST(ThreadRuntimeTest, TwoLanesAndAStrangerMayStopItAtOnce) {
    for (int round = 0; round < 50; ++round) {
        const auto runtime = make_thread_runtime();
        Latch posted;  // once one of them stops it, what a stranger posts is dropped
        Latch both(2);
        for (const Lane lane : {Lane::protocol, Lane::blocking}) {
            runtime->post(lane, [&] {
                posted.wait();
                runtime->stop();
                both.down();
            });
        }
        posted.down();
        runtime->stop();
        ASSERT_TRUE(both.wait());
    }
    EXPECT_TRUE(await([] { return our_threads().empty(); }));
}

TEST(ThreadRuntimeTest, ASecondStopReturnsWhenTheFirstOneHasStoppedIt) {
    const auto runtime = make_thread_runtime();
    Latch release;
    runtime->post(Lane::blocking, [&] { release.wait(); });
    std::thread first([&] { runtime->stop(); });
    ASSERT_TRUE(await([&] { return runtime->at(Instant::max(), [] {}) == 0; })) << "it is stopping";
    std::atomic<bool> stopped = false;
    std::thread second([&] {
        runtime->stop();
        stopped = true;
    });
    release.down();
    first.join();
    EXPECT_TRUE(await([&] { return stopped.load(); }));
    second.join();
}

TEST(ThreadRuntimeTest, AThousandRuntimesLeaveNoThreadAndNoDescriptor) {
    make_thread_runtime()->post(Lane::protocol, [] {});
    ASSERT_TRUE(await([] { return our_threads().empty(); }));
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 1000; ++i) {
        const auto runtime = make_thread_runtime();
        if (i % 3 != 0) runtime->post(static_cast<Lane>(i % 3), [] {});
        if (i % 2 == 0) runtime->at(runtime->now() + 1h, [] {});
    }
    EXPECT_TRUE(await([] { return our_threads().empty(); }));
    EXPECT_EQ(open_descriptors(), before);
}

TEST(ThreadRuntimeTest, ItsDescriptorsAreNotInheritedByAnotherProgram) {
    const auto runtime = make_thread_runtime();
    int ours = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code ignored;
        const std::string target = std::filesystem::read_symlink(entry.path(), ignored);
        if (target.find("timerfd") == std::string::npos && target.find("eventfd") == std::string::npos) continue;
        ++ours;
        EXPECT_TRUE(fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) << target;
    }
    EXPECT_EQ(ours, 2);
}

TEST(ThreadRuntimeTest, SignalsOfTheHostAreNotHandledOnItsThreads) {
    const auto runtime = make_thread_runtime();
    for (const Lane lane : {Lane::protocol, Lane::notifier, Lane::blocking}) {
        Latch done;
        sigset_t mask;
        runtime->post(lane, [&] {
            pthread_sigmask(SIG_BLOCK, nullptr, &mask);
            done.down();
        });
        ASSERT_TRUE(done.wait());
        for (const int blocked : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGALRM, SIGUSR1, SIGWINCH, SIGPIPE}) {
            EXPECT_TRUE(sigismember(&mask, blocked)) << blocked;
        }
        EXPECT_FALSE(sigismember(&mask, SIGSEGV));  // the host's crash handler must see ours too
    }
    sigset_t here;
    pthread_sigmask(SIG_BLOCK, nullptr, &here);
    EXPECT_FALSE(sigismember(&here, SIGTERM));
}

TEST(ThreadRuntimeTest, RandomNumbersDoNotRepeat) {
    const auto first = make_thread_runtime();
    const auto second = make_thread_runtime();
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 5000; ++i) {
        seen.insert(first->random());
        seen.insert(second->random());
    }
    EXPECT_EQ(seen.size(), 10'000U);
}

TEST(ThreadRuntimeTest, RandomNumbersThatComeInPiecesAndInterruptedAreWhole) {
    const auto runtime = make_thread_runtime();
    random_refused_with = EINTR;
    random_at_most = 12;
    std::set<std::uint64_t> seen;
    for (int i = 0; i < 32; ++i) seen.insert(runtime->random());  // as many as are asked for at a time
    random_at_most = 4096;
    EXPECT_EQ(seen.size(), 32U);
}

TEST(ThreadRuntimeTest, WithoutRandomNumbersTheProcessEndsSinceIdentitiesWouldRepeat) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            const auto runtime = make_thread_runtime();
            random_refused_with = ENOSYS;
            (void)runtime->random();
        },
        "");
}

TEST(ThreadRuntimeTest, ADeadlineBecomesAnInstantOfTheLeaseClock) {
    const auto runtime = make_thread_runtime();
    EXPECT_EQ(runtime->instant(Deadline::never()), Instant::max());
    const Instant passed = runtime->instant(Deadline::passed());
    EXPECT_LE(passed, runtime->now());
    const Instant before = runtime->now();
    const Instant in_an_hour = runtime->instant(Deadline(1h));
    EXPECT_GT(in_an_hour, before + 59min);
    EXPECT_LT(in_an_hour, before + 61min);
    EXPECT_EQ(runtime->instant(Deadline(Deadline::TimePoint::max() - 1ns)), Instant::max());
}

}  // namespace
}  // namespace zkrecipes::internal
