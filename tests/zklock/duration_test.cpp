#include "zklock/command_line/duration.hpp"

#include <gtest/gtest.h>

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;

TEST(DurationTest, NumberWithoutSuffixCountsSeconds) {
    EXPECT_EQ(parse_duration("0"), 0ns);
    EXPECT_EQ(parse_duration("10"), 10s);
    EXPECT_EQ(parse_duration("1.5"), 1500ms);
    EXPECT_EQ(parse_duration(".5"), 500ms);
}

TEST(DurationTest, SuffixesCountMillisecondsToDays) {
    EXPECT_EQ(parse_duration("250ms"), 250ms);
    EXPECT_EQ(parse_duration("1h30m"), 90min);
    EXPECT_EQ(parse_duration("1d00h"), 24h);
    EXPECT_EQ(parse_duration("8m20s"), 500s);
    for (const char* wrong : {"1h30", "1h30s", "30m1h", "1h-5m", "1.5h3m", "h3m", "1h3m2s", "1hm"}) {
        EXPECT_FALSE(parse_duration(wrong)) << wrong;
    }
    EXPECT_EQ(parse_duration("2s"), 2s);
    EXPECT_EQ(parse_duration("1.5m"), 90s);
    EXPECT_EQ(parse_duration("24h"), 24h);
    EXPECT_EQ(parse_duration("1d"), 24h);
    EXPECT_EQ(parse_duration("1.5d"), 36h);
}

TEST(DurationTest, WhatIsNotADurationIsRefused) {
    for (const char* text : {"", " ", "s", "-1", "+1", "1x", "1 s", " 1", "1e3", "0x10", "inf", "nan", "1s2", "1w",
                             "99999999999", "1..5", "1,5"}) {
        EXPECT_EQ(parse_duration(text), std::nullopt) << text;
    }
}

TEST(DurationTest, PeopleReadTwoUnitsAtMost) {
    EXPECT_EQ(format_duration(-1s), "0ms");
    EXPECT_EQ(format_duration(250ms), "250ms");
    EXPECT_EQ(format_duration(3450ms), "3.4s");
    EXPECT_EQ(format_duration(59s), "59s");
    EXPECT_EQ(format_duration(192s), "3m12s");
    EXPECT_EQ(format_duration(2h + 5min), "2h05m");
    EXPECT_EQ(format_duration(99h), "4d03h");
}

}  // namespace
}  // namespace zkrecipes::zklock
