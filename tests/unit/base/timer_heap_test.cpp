#include "base/timer_heap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

namespace zkrecipes::internal {
namespace {

using testing::ElementsAre;

Instant at(std::int64_t ns) { return Instant(Nanoseconds(ns)); }

class TimerHeapTest : public testing::Test {
protected:
    std::function<void()> note(int number) {
        return [this, number] { ran_.push_back(number); };
    }
    void run_due(std::int64_t now) {
        while (auto work = heap_.take_due(at(now))) work();
    }
    bool cancel(TimerId timer) {
        std::function<void()> work;
        return heap_.cancel(timer, work);
    }
    TimerHeap heap_;
    std::vector<int> ran_;
};

TEST_F(TimerHeapTest, TimersRunInTheOrderOfTheirInstantsThenOfTheirCalls) {
    heap_.add(at(30), note(1));
    heap_.add(at(10), note(2));
    heap_.add(at(30), note(3));
    heap_.add(at(20), note(4));
    EXPECT_EQ(heap_.earliest(), at(10));
    run_due(9);
    EXPECT_TRUE(ran_.empty());
    run_due(20);
    EXPECT_THAT(ran_, ElementsAre(2, 4));
    run_due(1000);
    EXPECT_THAT(ran_, ElementsAre(2, 4, 1, 3));
    EXPECT_EQ(heap_.earliest(), Instant::max());
}

TEST_F(TimerHeapTest, ACancelledTimerDoesNotRunAndIsCancelledOnce) {
    const TimerId first = heap_.add(at(1), note(1));
    heap_.add(at(2), note(2));
    EXPECT_TRUE(cancel(first));
    EXPECT_FALSE(cancel(first));
    run_due(5);
    EXPECT_THAT(ran_, ElementsAre(2));
}

TEST_F(TimerHeapTest, AnOldIdDoesNotCancelTheTimerThatTookItsPlace) {
    const TimerId first = heap_.add(at(1), note(1));
    run_due(1);
    const TimerId second = heap_.add(at(2), note(2));
    EXPECT_NE(first, second);
    EXPECT_FALSE(cancel(first));
    run_due(2);
    EXPECT_THAT(ran_, ElementsAre(1, 2));
    EXPECT_FALSE(cancel(second));
}

TEST_F(TimerHeapTest, IdsThatWereNeverGivenOutAreHarmless) {
    EXPECT_FALSE(cancel(0));
    EXPECT_FALSE(cancel(~TimerId{0}));
    const TimerId timer = heap_.add(at(1), note(1));
    EXPECT_NE(timer, 0U);
    EXPECT_FALSE(cancel(timer + 1));
    EXPECT_FALSE(cancel(timer & 0xffff'ffffU));
    EXPECT_EQ(heap_.size(), 1U);
}

TEST_F(TimerHeapTest, WhatATimerOwnsGoesWithItsCancelling) {
    const auto owned = std::make_shared<int>(1);
    const TimerId timer = heap_.add(at(1), [owned] {});
    EXPECT_EQ(owned.use_count(), 2);
    cancel(timer);
    EXPECT_EQ(owned.use_count(), 1);
    heap_.add(at(1), [owned] {});
    run_due(1);
    EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(TimerHeapTest, TakeAllLeavesItEmptyAndUsable) {
    const TimerId timer = heap_.add(at(1), note(1));
    heap_.add(at(2), note(2));
    EXPECT_EQ(heap_.take_all().size(), 2U);
    EXPECT_TRUE(heap_.empty());
    EXPECT_FALSE(cancel(timer));
    heap_.add(at(3), note(3));
    run_due(3);
    EXPECT_THAT(ran_, ElementsAre(3));
}

TEST_F(TimerHeapTest, TenThousandTimersInAnyOrderWithAnyCancelledBehaveLikeASortedMap) {
    std::mt19937 random(7);
    std::map<std::pair<std::int64_t, int>, TimerId> model;  // (instant, order of the call)
    int order = 0;
    std::int64_t now = 0;
    std::vector<int> expected;
    for (int step = 0; step < 30'000; ++step) {
        const auto choice = random() % 10;
        if (choice < 5) {
            const std::int64_t when = now + static_cast<std::int64_t>(random() % 1000);
            model[{when, order}] = heap_.add(at(when), note(order));
            ++order;
        } else if (choice < 9 && !model.empty()) {
            auto victim = model.lower_bound({now + static_cast<std::int64_t>(random() % 1000), 0});
            if (victim == model.end()) victim = model.begin();
            ASSERT_TRUE(cancel(victim->second));
            model.erase(victim);
        } else {
            now += static_cast<std::int64_t>(random() % 5);
            run_due(now);
            while (!model.empty() && model.begin()->first.first <= now) {
                expected.push_back(model.begin()->first.second);
                model.erase(model.begin());
            }
            ASSERT_EQ(ran_, expected);
        }
        ASSERT_EQ(heap_.size(), model.size());
        ASSERT_EQ(heap_.earliest(), model.empty() ? Instant::max() : at(model.begin()->first.first));
    }
    EXPECT_GT(expected.size(), 1000U);
}

}  // namespace
}  // namespace zkrecipes::internal
