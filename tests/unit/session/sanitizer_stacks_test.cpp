// Checks that the sanitizers see through a change of stacks: they report what is planted here, on a fiber too, and
// nothing else. Part of sanitizer builds only.
#include <gtest/gtest.h>

#include <array>
#include <boost/fiber/all.hpp>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "base/wait_event.hpp"

namespace zkrecipes::internal {
namespace {

void on_a_fiber(const std::function<void()>& work) {
    boost::fibers::fiber fiber([&] {
        boost::this_fiber::yield();
        work();
        boost::this_fiber::yield();
    });
    fiber.join();
}

#if defined(__SANITIZE_ADDRESS__)

volatile int g_sink = 0;

/// Frames with scopes of their own, each of them poisoned while it is not open.
__attribute__((noinline)) void throw_from(int depth) {  // NOLINT(misc-no-recursion)
    {
        std::array<volatile char, 200> first{};
        first[static_cast<std::size_t>(depth)] = 1;
        g_sink = first[7];
    }
    {
        std::array<volatile char, 300> second{};
        if (depth == 0) throw std::runtime_error("from below");
        throw_from(depth - 1);
        g_sink = second[7];
    }
}

__attribute__((noinline)) void use_the_same_stack_again(int depth) {  // NOLINT(misc-no-recursion)
    std::array<char, 700> all{};
    all.fill(static_cast<char>(depth));
    if (depth > 0) use_the_same_stack_again(depth - 1);
    g_sink = all[static_cast<std::size_t>(depth)];
}

__attribute__((noinline)) void use_after_scope() {
    volatile char* dangling = nullptr;
    {
        std::array<volatile char, 100> gone{};
        dangling = gone.data();
    }
    *dangling = 1;
}

void throw_and_catch() {
    for (int depth = 0; depth < 60; ++depth) {
        EXPECT_THROW(throw_from(depth), std::runtime_error);
        use_the_same_stack_again(40);
    }
}

TEST(SanitizerStacksTest, AnExceptionOnAFiberIsNoError) {
    on_a_fiber(throw_and_catch);
    throw_and_catch();
}

TEST(SanitizerStacksTest, AnExceptionOnAFiberOfAnotherThreadIsNoError) {
    std::thread([] {
        throw_and_catch();
        on_a_fiber(throw_and_catch);
        throw_and_catch();
    }).join();
}

TEST(SanitizerStacksDeathTest, AUseAfterScopeOnAFiberIsReported) {
    EXPECT_DEATH(on_a_fiber(use_after_scope), "stack-use-after-scope");
}

TEST(SanitizerStacksDeathTest, AUseAfterScopeAfterAnExceptionIsReported) {
    const auto work = [] {
        throw_and_catch();
        use_after_scope();
    };
    EXPECT_DEATH(on_a_fiber(work), "stack-use-after-scope");
}

#elif defined(__SANITIZE_THREAD__)

// By these two threads meet without ThreadSanitizer's knowledge.
__attribute__((noinline, no_sanitize("thread"))) void raise(volatile int& flag) { flag = 1; }
__attribute__((noinline, no_sanitize("thread"))) bool raised(const volatile int& flag) { return flag != 0; }

void await(const volatile int& flag) {
    while (!raised(flag)) boost::this_fiber::yield();
}

/// A fiber on each of two threads, one surely later than the other. The first stands until the second is done:
/// ThreadSanitizer may keep silent about a race with a fiber that has ended.
void one_after_the_other(const std::function<void()>& first, const std::function<void()>& second) {
    volatile int first_is_done = 0;
    volatile int second_is_done = 0;
    std::thread other([&] {
        on_a_fiber([&] {
            await(first_is_done);
            second();
            raise(second_is_done);
        });
    });
    on_a_fiber([&] {
        first();
        raise(first_is_done);
        await(second_is_done);
    });
    other.join();
}

bool ended_badly(int status) { return status != 0; }

TEST(SanitizerStacksDeathTest, ARaceBetweenFibersOfTwoThreadsIsReported) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    int shared = 0;
    const auto write = [&shared] { ++shared; };
    const auto race = [&] {
        one_after_the_other(write, write);
        std::exit(0);
    };
    EXPECT_EXIT(race(), ended_badly, "data race");
}

TEST(SanitizerStacksTest, WhatAWaitEventHandsOverIsNoRace) {
    for (int round = 0; round < 100; ++round) {
        WaitEvent event;
        int shared = 0;
        const auto give = [&] {
            ++shared;
            event.set();
        };
        const auto take = [&] {
            event.wait();
            ++shared;
        };
        one_after_the_other(give, take);
        EXPECT_EQ(shared, 2);
    }
}

/// Whoever leaves last deletes the exception: here the thread that made it, or (by `maker_leaves_first`) a catch block.
void share_an_exception(bool maker_leaves_first) {
    auto made = std::make_exception_ptr(std::runtime_error(std::string(100, 'x')));
    auto taken = made;
    const auto read = [&taken] {
        try {
            std::rethrow_exception(std::exchange(taken, nullptr));
        } catch (const std::runtime_error& error) {
            EXPECT_EQ(std::string(error.what()).size(), 100u);
        }
    };
    const auto leave = [&made] { made = nullptr; };
    if (maker_leaves_first) {
        one_after_the_other(leave, read);
    } else {
        one_after_the_other(read, leave);
    }
}

TEST(SanitizerStacksTest, AnExceptionThatTwoThreadsShareIsNoRace) {
    share_an_exception(true);
    share_an_exception(false);
}

TEST(SanitizerStacksTest, FibersOfOneThreadDoNotRace) {
    std::thread([] {
        int shared = 0;
        for (int round = 0; round < 100; ++round) {
            boost::fibers::fiber other([&shared] { ++shared; });
            on_a_fiber([&shared] { ++shared; });
            other.join();
        }
        EXPECT_EQ(shared, 200);
    }).join();
}

#endif

}  // namespace
}  // namespace zkrecipes::internal
