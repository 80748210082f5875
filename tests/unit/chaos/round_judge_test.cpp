#include "chaos/round_judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zkrecipes::chaos {
namespace {

constexpr Stamp on(std::int64_t ms) { return from_ms(1'000'000 + ms); }

const int kMutex = lock_of(Recipe::exclusive_mutex, 0);
const int kReadWrite = lock_of(Recipe::read_write_lock, 0);
const int kSemaphore = lock_of(Recipe::semaphore, 0);

/// Held from `from` to `to` and given back, with one increment of both counters if it is alone.
Hold held(int lock, std::int64_t token, std::int64_t from, std::int64_t to, HoldMode mode = HoldMode::exclusive) {
    Hold hold;
    hold.actor = static_cast<int>(token);
    hold.lock = lock;
    hold.mode = mode;
    hold.token = token;
    hold.node = "node-" + std::to_string(token);
    hold.granted_at = on(from);
    hold.last_true_at = on(to) - 1;
    hold.released_at = on(to);
    if (mode == HoldMode::exclusive) {
        hold.writes = hold.fenced = 1;
        hold.last_write_at = on(to) - 2;
    }
    return hold;
}

/// With the counters as they should be.
RoundRecord recorded(const std::vector<Hold>& holds) {
    RoundRecord record;
    record.holds = holds;
    record.longest_belief = from_ms(5000);
    for (const auto& hold : holds) {
        record.counters[hold.lock] += hold.writes;
        record.fenced[hold.lock].value += hold.fenced;
        if (hold.fenced != 0) record.fenced[hold.lock].accepted[hold.token] += hold.fenced;
    }
    return record;
}

std::vector<Violation> violations(const RoundRecord& record) {
    std::vector<Violation> found;
    for (const auto& finding : judge_round(record).findings) found.push_back(finding.violation);
    return found;
}

using testing::Contains;
using testing::IsEmpty;

TEST(RoundJudgeTest, AGoodRoundIsClean) {
    const auto record = recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 10, 20),  //
                                  held(kReadWrite, 3, 0, 10, HoldMode::shared),     //
                                  held(kReadWrite, 4, 5, 12, HoldMode::shared),     //
                                  held(kReadWrite, 5, 12, 20),                      //
                                  held(kSemaphore, 6, 0, 10, HoldMode::lease),      //
                                  held(kSemaphore, 8, 1, 10, HoldMode::lease),      //
                                  held(kSemaphore, 7, 2, 10, HoldMode::lease)});
    const auto verdict = judge_round(record);
    EXPECT_TRUE(verdict.clean());
    EXPECT_EQ(verdict.locks.at(kMutex).grants, 2);
    EXPECT_EQ(verdict.locks.at(kMutex).fenced, 2);
    EXPECT_EQ(verdict.locks.at(kMutex).plain, 2);
}

TEST(RoundJudgeTest, TwoWhoHoldAloneAreAnOverlap) {
    EXPECT_THAT(violations(recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 5, 20)})), Contains(Violation::overlap));
}

TEST(RoundJudgeTest, HoldsOfOneNodeAreToldApartByTheirNumber) {
    Hold next = held(kMutex, 1, 10, 20);
    EXPECT_THAT(violations(recorded({held(kMutex, 1, 0, 10), next})), Contains(Violation::token_order));
    next.handovers = 1;
    EXPECT_THAT(violations(recorded({held(kMutex, 1, 0, 10), next})), IsEmpty());
}

TEST(RoundJudgeTest, WhatBeginsOnANodeThatWasDeletedByForceIsNotInTheOrder) {
    Hold late = held(kMutex, 1, 30, 31);
    late.handovers = 1;
    auto record = recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 20, 29), late});
    EXPECT_THAT(violations(record), Contains(Violation::token_order));
    record.excuses.push_back({kMutex, "node-1", -1, on(15)});
    EXPECT_THAT(violations(record), IsEmpty());
    record.holds.back().last_true_at = on(9000);
    record.holds.back().released_at = on(9001);
    EXPECT_THAT(violations(record), Contains(Violation::outlived_node));
}

TEST(RoundJudgeTest, AWriterBesideAReaderIsAnOverlapEitherWay) {
    const auto reader_first = recorded({held(kReadWrite, 1, 0, 10, HoldMode::shared), held(kReadWrite, 2, 5, 20)});
    EXPECT_THAT(violations(reader_first), Contains(Violation::overlap));
    const auto writer_first = recorded({held(kReadWrite, 1, 0, 10), held(kReadWrite, 2, 5, 20, HoldMode::shared)});
    EXPECT_THAT(violations(writer_first), Contains(Violation::overlap));
}

TEST(RoundJudgeTest, OneLeaseTooManyIsAnOverlap) {
    std::vector<Hold> holds;
    for (int i = 1; i <= kLeases + 1; ++i) holds.push_back(held(kSemaphore, i, i, 100, HoldMode::lease));
    EXPECT_THAT(violations(recorded(holds)), Contains(Violation::overlap));
}

TEST(RoundJudgeTest, ATokenThatGoesBackIsFoundAlsoBehindAShare) {
    EXPECT_THAT(violations(recorded({held(kReadWrite, 9, 0, 10, HoldMode::shared), held(kReadWrite, 8, 10, 20)})),
                Contains(Violation::token_order));
}

TEST(RoundJudgeTest, AnAcknowledgedIncrementThatTheRegisterDoesNotHaveIsLost) {
    auto overwritten = recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 10, 20)});
    overwritten.fenced[kMutex].value = 1;
    EXPECT_THAT(violations(overwritten), Contains(Violation::lost_update));
    auto never_accepted = recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 10, 20)});
    never_accepted.fenced[kMutex].accepted.erase(2);
    never_accepted.fenced[kMutex].value = 1;
    EXPECT_THAT(violations(never_accepted), Contains(Violation::lost_update));
    EXPECT_EQ(judge_round(never_accepted).locks.at(kMutex).lost_updates, 1);
}

TEST(RoundJudgeTest, AnUnfencedCounterThatLostSomethingIsFound) {
    auto record = recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 10, 20)});
    record.counters[kMutex] = 1;
    EXPECT_THAT(violations(record), Contains(Violation::lost_update));
}

TEST(RoundJudgeTest, WhoWasKilledMayHaveWrittenWhatItDidNotCount) {
    auto record = recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 20, 30)});
    record.holds[0].released_at = 0;
    record.holds[0].writes = 0;
    EXPECT_THAT(violations(record), Contains(Violation::lost_update));
    record.killed = {1};
    EXPECT_THAT(violations(record), IsEmpty());
    record.counters[kMutex] = 3;
    EXPECT_THAT(violations(record), Contains(Violation::lost_update));
}

TEST(RoundJudgeTest, WhoNeitherGaveBackNorNoticedTheLossIsLateUnlessItIsDead) {
    auto record = recorded({held(kMutex, 1, 0, 10), held(kMutex, 2, 20, 30)});
    record.holds[0].released_at = 0;
    EXPECT_THAT(violations(record), Contains(Violation::late_false));
    record.commands = {1};
    EXPECT_THAT(violations(record), IsEmpty());
}

TEST(RoundJudgeTest, WhatWasTakenAwayByForceIsExcusedForAWhileAndOnlyThat) {
    auto record = recorded({held(kMutex, 1, 0, 30), held(kMutex, 2, 20, 40)});
    record.holds[0].last_write_at = on(9);
    EXPECT_THAT(violations(record), Contains(Violation::overlap));
    record.excuses = {{kMutex, "node-7", -1, on(10)}};
    EXPECT_THAT(violations(record), Contains(Violation::overlap)) << "another node was deleted";
    record.excuses = {{kMutex, "node-1", -1, on(10)}};
    EXPECT_THAT(violations(record), IsEmpty());
    record.excuses = {{-1, "", 1, on(10)}};
    EXPECT_THAT(violations(record), IsEmpty());
    record.longest_belief = from_ms(5);
    EXPECT_THAT(violations(record), Contains(Violation::outlived_node));
}

// What chaos met (seed 1167874724, round 15): an actor whose session was ended had the next one, and a lock, 0.3 s
// later.
TEST(RoundJudgeTest, AHoldOfTheNextSessionIsNeitherExcusedNorAccusedForTheEndOfTheFormer) {
    auto record = recorded({held(kMutex, 1, 12, 60)});
    record.longest_belief = from_ms(5);
    record.excuses = {{-1, "", 1, on(10), 7}};
    EXPECT_THAT(violations(record), IsEmpty()) << "whose it is, is unknown";
    record.holds[0].session = 8;
    EXPECT_THAT(violations(record), IsEmpty());
    record.holds[0].session = 7;
    EXPECT_THAT(violations(record), Contains(Violation::outlived_node));

    record = recorded({held(kMutex, 1, 12, 60), held(kMutex, 2, 50, 70)});
    record.excuses = {{-1, "", 1, on(10), 7}};
    record.holds[0].session = 8;
    EXPECT_THAT(violations(record), Contains(Violation::overlap)) << "nobody has ended that session";
}

// What chaos met (seed 1104621670, round 44): the server that was to end a session was cut off and did not answer.
TEST(RoundJudgeTest, WhereNobodyKnowsWhetherALockWasTakenAwayItsHolderIsExcusedAndNotAccused) {
    auto record = recorded({held(kMutex, 1, 0, 60)});
    record.longest_belief = from_ms(5);
    record.excuses = {{-1, "", 1, on(10)}};
    EXPECT_THAT(violations(record), Contains(Violation::outlived_node));
    record.excuses[0].surely = false;
    EXPECT_THAT(violations(record), IsEmpty());
}

// What chaos met (seed 3423323205, round 12): deleted between two looks of its owner, who was told of it before the
// next one was granted, and did not look until after that.
TEST(RoundJudgeTest, AHoldThatWasTakenAwayBetweenTwoLooksIsExcused) {
    auto record = recorded({held(kMutex, 1, 0, 60), held(kMutex, 2, 50, 70)});
    Hold& former = record.holds[0];
    former.last_true_at = on(40);
    former.last_write_at = on(39);
    former.lost_at = on(45);
    former.first_false_at = on(51);
    EXPECT_THAT(violations(record), Contains(Violation::late_false));
    record.excuses = {{kMutex, "node-1", -1, on(41)}};
    EXPECT_THAT(violations(record), IsEmpty());
    record.excuses = {{kMutex, "node-1", -1, on(46)}};
    EXPECT_THAT(violations(record), Contains(Violation::late_false)) << "it was over already";
}

TEST(RoundJudgeTest, AnEndThatTheServersConfirmedLateCountsFromThen) {
    auto record = recorded({held(kMutex, 1, 0, 60)});
    record.longest_belief = from_ms(5);
    record.excuses = {{-1, "", 1, on(10)}};
    record.excuses[0].sure_at = on(58);
    EXPECT_THAT(violations(record), IsEmpty());
    record.excuses[0].sure_at = on(40);
    EXPECT_THAT(violations(record), Contains(Violation::outlived_node));
}

TEST(RoundJudgeTest, AnUnfencedCounterIsNotJudgedWhenSomebodyWroteAfterItsLockWasTakenAway) {
    auto record = recorded({held(kMutex, 1, 0, 30), held(kMutex, 2, 20, 40)});
    record.counters[kMutex] = 1;
    record.excuses = {{kMutex, "node-1", -1, on(10)}};
    const auto verdict = judge_round(record);
    EXPECT_TRUE(verdict.clean());
    EXPECT_FALSE(verdict.locks.at(kMutex).plain_judged);
}

}  // namespace
}  // namespace zkrecipes::chaos
