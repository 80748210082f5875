#include "zklock/once/run_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr EpochTime kDay = 24h;
constexpr EpochTime kToday = 20'000 * kDay;

RunRecord record_of(RunRecord::State state, EpochTime claimed) {
    RunRecord record;
    record.id = "abc";
    record.state = state;
    record.claimed = claimed;
    record.per = kDay;
    record.host = "web1";
    record.pid = 4711;
    record.name = "report";
    record.token = 4'294'967'302;
    record.node = "/cron/report/_c_1-lock-0000000007";
    return record;
}

TEST(RunRecordTest, APeriodBeginsAtAMultipleOfItsLengthSince1970) {
    EXPECT_EQ(period_start(kToday + 3h, kDay), kToday);
    EXPECT_EQ(period_start(kToday, kDay), kToday);
    EXPECT_EQ(period_start(kToday - 1ms, kDay), kToday - kDay);
    EXPECT_EQ(period_start(kToday + 90min, 1h), kToday + 1h);
    EXPECT_EQ(period_start(-1ms, kDay), -kDay) << "a clock that nobody has set";
    EXPECT_EQ(iso_time(period_start(EpochTime(1'774'340'000'000), 24h)), "2026-03-24T00:00:00Z");
    EXPECT_EQ(iso_time(period_start(EpochTime(1'774'340'000'000), 7 * 24h)), "2026-03-19T00:00:00Z") << "a Thursday";
}

using State = RunRecord::State;
struct Row {
    const char* what;
    std::optional<State> state;  // empty: no record
    EpochTime claimed;
    bool retry_unknown;
    Decision decision;
};

TEST(RunRecordTest, WhoFindsARecordDecidesByThisTable) {
    const Row rows[] = {
        {"nothing was ever claimed", {}, 0ms, false, Decision::run},
        {"done yesterday", State::done, kToday - 1ms, false, Decision::run},
        {"not known, yesterday", State::running, kToday - 1ms, false, Decision::run},
        {"lost, yesterday", State::unknown, kToday - 1ms, false, Decision::run},
        {"done at the first moment of today", State::done, kToday, false, Decision::done},
        {"done today", State::done, kToday + 3h, false, Decision::done},
        {"not known, today", State::running, kToday + 3h, false, Decision::unknown},
        {"lost, today", State::unknown, kToday + 3h, false, Decision::unknown},
        {"not known, today, may be repeated", State::running, kToday + 3h, true, Decision::run},
        {"lost, today, may be repeated", State::unknown, kToday + 3h, true, Decision::run},
        {"done today, only unknown ones are repeated", State::done, kToday + 3h, true, Decision::done},
        {"done tomorrow, by a clock that is ahead", State::done, kToday + kDay, false, Decision::done},
        {"not known, tomorrow", State::running, kToday + 9 * kDay, false, Decision::unknown},
    };
    for (const Row& row : rows) {
        std::optional<RunRecord> record;
        if (row.state) record = record_of(*row.state, row.claimed);
        EXPECT_EQ(decide(record, kToday, row.retry_unknown, "mine"), row.decision) << row.what;
    }
}

TEST(RunRecordTest, AnAnswerThatWasLostIsFoundByTheIdOfTheRun) {
    for (const bool retry : {false, true}) {
        EXPECT_EQ(decide(record_of(State::running, kToday + 3h), kToday, retry, "abc"), Decision::ours);
        // The answer came so late that the next period has begun.
        EXPECT_EQ(decide(record_of(State::running, kToday - 1ms), kToday, retry, "abc"), Decision::ours);
    }
}

TEST(RunRecordTest, WithAnotherLengthThanBeforeNoPeriodGetsASecondRun) {
    // Today at 15:10, once per 24h; at 15:20 somebody says once per 1h, and the other way round.
    const RunRecord record = record_of(State::done, kToday + 15h + 10min);
    for (const EpochTime per : {EpochTime(1h), kDay}) {
        const EpochTime start = period_start(kToday + 15h + 20min, per);
        EXPECT_EQ(decide(record, start, false, "mine"), Decision::done) << per.count();
    }
    EXPECT_EQ(decide(record, period_start(kToday + 16h, 1h), false, "mine"), Decision::run);
}

TEST(RunRecordTest, ReadsWhatItWrites) {
    RunRecord record = record_of(State::running, kToday + 3h);
    EXPECT_EQ(parse_run_record(to_text(record)), record);
    record.state = State::done;
    record.ended = kToday + 4h;
    record.exit_code = 3;
    EXPECT_EQ(parse_run_record(to_text(record)), record);
    EXPECT_EQ(outcome_in_words(record), "exit code 3");
    record.exit_code.reset();
    record.signal = SIGTERM;
    EXPECT_EQ(parse_run_record(to_text(record)), record);
    EXPECT_EQ(outcome_in_words(record), "ended by SIGTERM");
    record.state = State::unknown;
    record.signal.reset();
    record.because = "the session expired";
    EXPECT_EQ(parse_run_record(to_text(record)), record);
    EXPECT_THAT(outcome_in_words(record), HasSubstr("the session expired"));
    EXPECT_EQ(claimer(record), "web1 pid 4711 \"report\"");
}

TEST(RunRecordTest, TakesNothingElseForARecord) {
    const auto with = [](const char* key, boost::json::value value) {
        boost::json::object object = to_json(record_of(State::done, kToday));
        object[key] = std::move(value);
        return boost::json::serialize(object);
    };
    EXPECT_TRUE(parse_run_record(with("later", "a field that this version does not know")));
    const std::string bad[] = {
        "",
        "{}",
        "[]",
        "10.0.0.1",
        "{\"v\":1,\"state\":\"done\"}",
        with("v", 2),
        with("state", "busy"),
        with("state", nullptr),
        with("id", 7),
        with("claimed_ms", "today"),
        with("per_ms", 0),
        with("per_ms", INT64_MAX),
        with("claimed_ms", INT64_MAX),
        with("ended_ms", INT64_MIN),
        with("code", 256),
        with("code", "0"),
    };
    for (const std::string& text : bad) EXPECT_FALSE(parse_run_record(text)) << text;
}

}  // namespace
}  // namespace zkrecipes::zklock
