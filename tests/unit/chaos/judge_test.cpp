#include "chaos/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "chaos/board.hpp"

namespace zkrecipes::chaos {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr Stamp at(std::int64_t ms) { return from_ms(1'000'000 + ms); }

std::string node(int sequence) {
    char text[32];
    std::snprintf(text, sizeof(text), "_c_x-lock-%010d", sequence);
    return text;
}

// Granted at 0 and lost by its own clock at 2670, as a good holder in a partition.
Hold good_holder() {
    Hold hold;
    hold.actor = 1;
    hold.token = 100;
    hold.node = node(0);
    hold.granted_at = at(0);
    hold.last_true_at = at(2670);
    hold.first_false_at = at(2671);
    hold.lost_at = at(2672);
    return hold;
}

// Granted at 4000 and given back at 5000.
Hold next_holder() {
    Hold hold;
    hold.actor = 2;
    hold.token = 101;
    hold.node = node(1);
    hold.granted_at = at(4000);
    hold.last_true_at = at(4999);
    hold.released_at = at(5000);
    return hold;
}

// Stopped at 1000, resumed at 9000, long after the next one was granted.
Hold stopped_holder() {
    Hold hold = good_holder();
    hold.last_true_at = at(999);
    hold.stopped_at = at(1000);
    hold.resumed_at = at(9000);
    hold.first_false_at = at(9001);
    hold.lost_at = at(9002);
    hold.writes = 5;
    hold.last_write_at = at(990);
    return hold;
}

History history_of(std::vector<Hold> holds) {
    History history;
    std::int64_t writes = 0;
    for (const auto& hold : holds) writes += hold.writes;
    history.holds = std::move(holds);
    history.counters = {{0, writes}};
    return history;
}

std::vector<Violation> kinds(const Verdict& verdict) {
    std::vector<Violation> kinds;
    for (const auto& [kind, count] : verdict.counts) kinds.push_back(kind);
    return kinds;
}

TEST(ChaosJudgeTest, AHoldThatEndsBeforeTheNextGrantIsCleanAndCounted) {
    const auto verdict = judge(history_of({good_holder(), next_holder()}));
    EXPECT_THAT(verdict.findings, IsEmpty());
    EXPECT_EQ(verdict.tried, 1);
    EXPECT_EQ(verdict.unproven, 0);
    EXPECT_THAT(verdict.margins, ElementsAre(from_ms(1328)));
}

TEST(ChaosJudgeTest, TheOrderInWhichTheHoldsWereNotedDoesNotMatter) {
    auto former = good_holder();
    former.last_true_at = at(4100);
    EXPECT_EQ(judge(history_of({next_holder(), former})).count(Violation::overlap), 1);
}

TEST(ChaosJudgeTest, AReleasedHoldIsNotCountedAsTried) {
    auto first = next_holder();
    first.token = 100;
    first.node = node(0);
    first.granted_at = at(0);
    first.last_true_at = at(100);
    first.released_at = at(3999);
    const auto verdict = judge(history_of({first, next_holder()}));
    EXPECT_TRUE(verdict.clean());
    EXPECT_EQ(verdict.tried, 0);
}

TEST(ChaosJudgeTest, BeliefAfterTheNextGrantIsAnOverlap) {
    auto former = good_holder();
    former.last_true_at = at(12000);
    former.first_false_at = at(12001);
    former.lost_at = at(12002);
    const auto verdict = judge(history_of({former, next_holder()}));
    EXPECT_EQ(verdict.count(Violation::overlap), 1);
    EXPECT_EQ(verdict.count(Violation::late_false), 1);
    EXPECT_EQ(verdict.count(Violation::late_lost), 1);
    EXPECT_EQ(verdict.unproven, 0);
}

TEST(ChaosJudgeTest, AHolderThatNeverStopsBelievingIsAnOverlap) {
    auto former = good_holder();
    former.last_true_at = at(4001);
    former.first_false_at = 0;
    former.lost_at = 0;
    EXPECT_EQ(judge(history_of({former, next_holder()})).count(Violation::overlap), 1);
}

TEST(ChaosJudgeTest, AnOverlapWithAGrantTwoFurtherOnIsFound) {
    auto former = good_holder();
    auto middle = next_holder();
    middle.granted_at = at(3000);
    middle.last_true_at = middle.released_at = at(3100);
    auto last = next_holder();
    last.token = 102;
    last.node = node(2);
    former.last_true_at = at(4050);
    EXPECT_EQ(judge(history_of({former, middle, last})).count(Violation::overlap), 2);
}

TEST(ChaosJudgeTest, HoldsOfDifferentLocksDoNotConflict) {
    auto other = next_holder();
    other.lock = 1;
    other.granted_at = at(1000);
    other.token = 50;
    EXPECT_TRUE(judge(history_of({good_holder(), other})).clean());
}

TEST(ChaosJudgeTest, HeldSeenFalseOnlyAfterTheNextGrantIsLate) {
    auto former = good_holder();
    former.last_true_at = at(3999);
    former.first_false_at = at(4001);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::late_false));
}

TEST(ChaosJudgeTest, AStarvedHolderProvesNothingButAnOverlapStillCounts) {
    auto former = good_holder();
    former.last_true_at = at(2000);
    former.first_false_at = at(4500);
    former.lost_at = at(4501);
    auto verdict = judge(history_of({former, next_holder()}));
    EXPECT_TRUE(verdict.clean());
    EXPECT_EQ(verdict.unproven, 1);
    EXPECT_THAT(verdict.margins, IsEmpty());

    former.last_true_at = at(4200);
    verdict = judge(history_of({former, next_holder()}));
    EXPECT_EQ(verdict.count(Violation::overlap), 1);
    EXPECT_EQ(verdict.unproven, 0);
}

TEST(ChaosJudgeTest, LostThatNeverFiredOrFiredLateIsFound) {
    auto former = good_holder();
    former.lost_at = 0;
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::late_lost));
    former.lost_at = at(4001);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::late_lost));
}

TEST(ChaosJudgeTest, ALostHoldThatItsOwnerGaveBackInTimeIsClean) {
    auto former = good_holder();
    former.lost_at = 0;
    former.released_at = at(3000);
    EXPECT_TRUE(judge(history_of({former, next_holder()})).clean());
}

TEST(ChaosJudgeTest, ARevivedHoldIsFoundWithoutAnyOtherGrant) {
    auto hold = good_holder();
    hold.revivals = 1;
    EXPECT_THAT(kinds(judge(history_of({hold}))), ElementsAre(Violation::revived));
}

TEST(ChaosJudgeTest, AWriteAllowedAfterTheNextGrantIsStale) {
    auto former = good_holder();
    former.writes = 10;
    former.last_write_at = at(4001);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::stale_write));
}

TEST(ChaosJudgeTest, ACounterThatIsNotTheNumberOfWritesLostOne) {
    auto former = good_holder();
    former.writes = 10;
    auto next = next_holder();
    next.writes = 7;
    auto history = history_of({former, next});
    EXPECT_TRUE(judge(history).clean());
    history.counters = {{0, 16}};
    EXPECT_THAT(kinds(judge(history)), ElementsAre(Violation::lost_update));
}

TEST(ChaosJudgeTest, ALaterGrantNeedsALargerToken) {
    auto next = next_holder();
    next.token = 100;
    EXPECT_THAT(kinds(judge(history_of({good_holder(), next}))), ElementsAre(Violation::token_order));
}

TEST(ChaosJudgeTest, AStoppedProcessIsJudgedByItsFirstInstructions) {
    const auto verdict = judge(history_of({stopped_holder(), next_holder()}));
    EXPECT_TRUE(verdict.clean());
    EXPECT_EQ(verdict.tried, 1);
    EXPECT_EQ(verdict.unproven, 0);
    EXPECT_THAT(verdict.lost_after_resume, ElementsAre(from_ms(2)));
}

TEST(ChaosJudgeTest, AStoppedProcessThatHoldsOnResumeIsFound) {
    auto former = stopped_holder();
    former.held_after_resume = true;
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::held_on_resume));
}

TEST(ChaosJudgeTest, AStoppedProcessThatWritesOnResumeIsFound) {
    auto former = stopped_holder();
    former.last_write_at = at(9001);
    EXPECT_GE(judge(history_of({former, next_holder()})).count(Violation::stale_write), 1);
}

TEST(ChaosJudgeTest, AStoppedProcessThatLearnsOfItLateIsFound) {
    auto former = stopped_holder();
    former.lost_at = at(12001);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::late_lost));
    former.lost_at = 0;
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::late_lost));
}

TEST(ChaosJudgeTest, AStopThatEndedBeforeTheNextGrantExcusesNothing) {
    auto former = stopped_holder();
    former.resumed_at = at(3000);
    former.last_true_at = at(3990);
    former.first_false_at = at(4010);
    former.lost_at = at(3999);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::late_false));
}

TEST(ChaosJudgeTest, AProcessResumedJustBeforeTheNextGrantMayHaveItsCallbackOnTheWay) {
    auto former = stopped_holder();
    former.resumed_at = at(3900);
    former.last_true_at = at(1000);
    former.first_false_at = at(3901);
    former.lost_at = at(4003);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), IsEmpty());
    former.held_after_resume = true;
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), Not(IsEmpty()));
}

TEST(ChaosJudgeTest, WhoGivesItBackAtOnceAfterAResumeIsOwedNoCallback) {
    auto former = stopped_holder();
    former.lost_at = 0;
    former.released_at = at(9001);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), IsEmpty());
    former.released_at = at(9600);
    EXPECT_THAT(kinds(judge(history_of({former, next_holder()}))), ElementsAre(Violation::late_lost));
}

TEST(ChaosJudgeTest, BeliefBeyondTheEndOfTheNodeIsFoundWithoutAnyOtherGrant) {
    auto history = history_of({good_holder()});
    history.sightings = {{0, node(0), at(1), at(2660), true}};
    EXPECT_THAT(kinds(judge(history)), ElementsAre(Violation::outlived_node));
    history.sightings[0].gone_at = at(2680);
    EXPECT_TRUE(judge(history).clean());
}

TEST(ChaosJudgeTest, AGrantBehindANodeThatStaysIsFound) {
    auto history = history_of({good_holder(), next_holder()});
    history.sightings = {{0, node(0), at(1), at(4100), true}, {0, node(1), at(2), at(5010), true}};
    EXPECT_TRUE(judge(history).clean());  // the outsider's server may lag a little
    history.sightings[0].gone_at = at(7001);
    EXPECT_THAT(kinds(judge(history)), ElementsAre(Violation::not_first));
    history.sightings[0].gone_at = 0;
    EXPECT_THAT(kinds(judge(history)), ElementsAre(Violation::not_first));
}

TEST(ChaosJudgeTest, ANodeBehindDoesNotMatter) {
    auto history = history_of({good_holder(), next_holder()});
    history.sightings = {{0, node(0), at(1), at(3990), true}, {0, node(2), at(2), 0, false}};
    EXPECT_TRUE(judge(history).clean());
}

TEST(ChaosJudgeTest, SequenceNumbersAreReadFromTheEndOfTheName) {
    EXPECT_EQ(sequence_of("_c_b7a3-lock-0000000042"), 42);
    EXPECT_EQ(sequence_of("0000000007"), 7);
    EXPECT_EQ(sequence_of("lock-"), -1);
    EXPECT_EQ(sequence_of(""), -1);
}

TEST(ChaosBoardTest, AnAttachedBoardSeesWhatTheOtherSideWrote) {
    auto board = Board::create();
    auto attached = Board::attach(dup(board.descriptor()));
    auto& slot = attached.add_hold(7, 3, at(10), 1234, node(5));
    slot.last_true_at = at(20);
    slot.writes = 2;
    attached.write_counter(3, 2);
    attached.add_hold(8, 4, at(11), 1235, node(6));

    const auto history = board.history(3, 1);
    ASSERT_THAT(history.holds, SizeIs(1));
    EXPECT_EQ(history.holds[0].actor, 7);
    EXPECT_EQ(history.holds[0].token, 1234);
    EXPECT_EQ(history.holds[0].node, node(5));
    EXPECT_EQ(history.holds[0].granted_at, at(10));
    EXPECT_EQ(history.holds[0].last_true_at, at(20));
    EXPECT_EQ(history.counters[0].value, 2);
    EXPECT_THAT(board.holds(), SizeIs(2));
}

}  // namespace
}  // namespace zkrecipes::chaos
