#include <zkrecipes/deadline.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace zkrecipes {
namespace {

using namespace std::chrono_literals;
using Time = Deadline::TimePoint;

const Time kNow{1'000'000s};

TEST(DeadlineTest, ADurationIsCountedFromNow) {
    EXPECT_EQ(Deadline::after(kNow, 5s).time_point(), kNow + 5s);
    EXPECT_EQ(Deadline::after(kNow, 1ns).time_point(), kNow + 1ns);
    EXPECT_EQ(Deadline::after(kNow, std::chrono::duration<double>(0.5)).time_point(), kNow + 500ms);
}

TEST(DeadlineTest, TheDefaultIsNever) {
    EXPECT_TRUE(Deadline().is_never());
    EXPECT_FALSE(Deadline::never().is_passed());
    EXPECT_FALSE(Deadline::never().is_passed(kNow));
}

TEST(DeadlineTest, NothingAndLessIsPassed) {
    EXPECT_TRUE(Deadline(0s).is_passed());
    EXPECT_TRUE(Deadline(-1ns).is_passed());
    EXPECT_TRUE(Deadline(std::chrono::hours::min()).is_passed());
    EXPECT_TRUE(Deadline(std::chrono::nanoseconds::min()).is_passed());
    EXPECT_TRUE(Deadline(std::chrono::duration<double>(-std::numeric_limits<double>::infinity())).is_passed());
    EXPECT_TRUE(Deadline::passed().is_passed(Time::min()));
}

TEST(DeadlineTest, TooFarAwayIsNever) {
    EXPECT_TRUE(Deadline(std::chrono::hours::max()).is_never());
    EXPECT_TRUE(Deadline(std::chrono::nanoseconds::max()).is_never());
    EXPECT_TRUE(Deadline(std::chrono::duration<std::uint64_t, std::ratio<86400>>::max()).is_never());
    EXPECT_TRUE(Deadline(std::chrono::duration<double>(std::numeric_limits<double>::infinity())).is_never());
    EXPECT_TRUE(Deadline(std::chrono::duration<double>(std::numeric_limits<double>::max())).is_never());
    EXPECT_TRUE(Deadline(std::chrono::duration<float, std::ratio<31'556'952>>(1e30F)).is_never());
}

TEST(DeadlineTest, NotANumberIsPassed) {
    // A computed wait that went wrong must not become a wait for ever.
    EXPECT_TRUE(Deadline(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())).is_passed());
}

TEST(DeadlineTest, JustBelowTheEndDoesNotOverflow) {
    const auto room = Time::max() - kNow;
    EXPECT_TRUE(Deadline::after(kNow, room).is_never());
    const Deadline close = Deadline::after(kNow, room - 1h);
    EXPECT_FALSE(close.is_passed(kNow));
    EXPECT_EQ(close.time_point(), Time::max() - 1h);
}

TEST(DeadlineTest, WhateverTheClockSaysAShortWaitIsAShortWait) {
    // A steady clock counts from an epoch of its own choice, which may lie ahead.
    const Time before_epoch{-5s};
    EXPECT_EQ(Deadline::after(before_epoch, 1s).time_point(), before_epoch + 1s);
    EXPECT_TRUE(Deadline::after(before_epoch, std::chrono::hours::max()).is_never());
    EXPECT_TRUE(Deadline::after(before_epoch, std::chrono::nanoseconds::max()).is_never());
}

TEST(DeadlineTest, TimePointsOfTheSteadyClockAreTakenAsTheyAre) {
    EXPECT_EQ(Deadline(kNow).time_point(), kNow);
    EXPECT_TRUE(Deadline(Time::max()).is_never());
    EXPECT_TRUE(Deadline(Time::min()).is_passed());
}

TEST(DeadlineTest, TimePointsOfOtherClocksAreConverted) {
    const auto later = std::chrono::system_clock::now() + 1h;
    const Deadline deadline(later);
    EXPECT_FALSE(deadline.is_never());
    EXPECT_GT(deadline.time_point(), Deadline::Clock::now() + 59min);
    EXPECT_LT(deadline.time_point(), Deadline::Clock::now() + 61min);
    EXPECT_TRUE(Deadline(std::chrono::system_clock::now() - 1h).is_passed());
    EXPECT_TRUE(Deadline(std::chrono::system_clock::time_point{}).is_passed());
}

TEST(DeadlineTest, TimePointsAtTheEndsOfOtherClocksDoNotOverflow) {
    EXPECT_TRUE(Deadline(std::chrono::system_clock::time_point::max()).is_never());
    EXPECT_TRUE(Deadline(std::chrono::system_clock::time_point::min()).is_passed());
    using Seconds = std::chrono::time_point<std::chrono::system_clock, std::chrono::seconds>;
    EXPECT_TRUE(Deadline(Seconds::max()).is_never());
    EXPECT_TRUE(Deadline(Seconds::min()).is_passed());
    using Days = std::chrono::time_point<std::chrono::system_clock, std::chrono::days>;
    EXPECT_TRUE(
        Deadline(Days(std::chrono::days(2'932'896))).is_never());  // 9999-12-31: out of reach of 64-bit nanoseconds
    EXPECT_FALSE(Deadline(Days(std::chrono::days(36'524))).is_never());  // 2069-12-31
}

}  // namespace
}  // namespace zkrecipes
