// Changes of a value: the cases that say why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "unit/core/value/value_update_world.hpp"

namespace zkrecipes::internal {
namespace {

TEST(ValueUpdateFsmTest, WithoutConflictsItIsOneLookAndOneWrite) {
    NumberChange rule(NumberChange::Kind::add, kEight, 2);
    ValueUpdateWorld world(rule);
    world.put(40);
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.looks, 1);
    EXPECT_EQ(world.writes, 1);
    EXPECT_EQ(world.fresh_looks, 0);
    EXPECT_EQ(rule.before(), 40);
    EXPECT_EQ(rule.after(), 42);
    EXPECT_EQ(world.number(), 42);
}

TEST(ValueUpdateFsmTest, WhatIsThereIsFoundAndWhatIsNotIsMade) {
    FindOrCreate found("seed");
    ValueUpdateWorld there(found);
    there.put(3);
    there.run();
    EXPECT_EQ(there.end->how, ChangeHow::unchanged);
    EXPECT_EQ(found.value().data, kEight.write(3));
    EXPECT_EQ(there.fresh_looks, 1);

    FindOrCreate made("seed");
    ValueUpdateWorld missing(made);
    missing.run();
    EXPECT_EQ(missing.end->how, ChangeHow::changed);
    EXPECT_EQ(made.value().data, "seed");

    FindOrCreate late("seed");
    ValueUpdateWorld overtaken(late);
    overtaken.plans = {{1, ChangeEvent::made}};
    overtaken.run();
    EXPECT_EQ(overtaken.end->how, ChangeHow::unchanged);
    EXPECT_EQ(late.value().data, kEight.write(7));
    EXPECT_EQ(overtaken.applied, 0);
}

TEST(ValueUpdateFsmTest, WhatWasMadeWhileTheAnswerWasLostIsNotTakenForTheLatest) {
    const ValueWrite write{ValueWrite::How::create, "seed"};
    FindOrCreate answered("seed");
    answered.on_written(write, 0);
    ASSERT_TRUE(answered.latest());
    EXPECT_EQ(answered.latest()->data, "seed");

    // The mark says that it has happened, some time ago: others may have written since, and a watch may have told of
    // it.
    FindOrCreate recovered("seed");
    recovered.on_written(write, std::nullopt);
    EXPECT_EQ(recovered.value().data, "seed");
    EXPECT_FALSE(recovered.latest());
}

TEST(ValueUpdateFsmTest, AMissingNodeIsZeroAndIsMadeWithTheFirstNumber) {
    NumberChange rule(NumberChange::Kind::subtract, kEight, 3);
    ValueUpdateWorld world(rule);
    world.has_parents = false;
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.written->how, WriteHow::create);
    EXPECT_THAT(world.made_directories, testing::ElementsAre(ValueUpdatePort::Directory::parent));
    EXPECT_EQ(world.number(), -3);
}

TEST(ValueUpdateFsmTest, TheDirectoryOfTheMarksIsMadeBeforeTheFirstWriteAndNotAgain) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.wants_marks = true;
    world.plans = {{2, ChangeEvent::overtaken}};
    world.put(1);
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.writes, 2);
    EXPECT_THAT(world.made_directories, testing::ElementsAre(ValueUpdatePort::Directory::of_marks));
}

TEST(ValueUpdateFsmTest, WhereParentsMayNotBeMadeThatIsAnError) {
    CreateOnly rule("x");
    ValueUpdateWorld world(rule, false, false, false);
    world.has_parents = false;
    world.run();
    EXPECT_EQ(world.end->error, Errc::no_parent);
    EXPECT_TRUE(world.made_directories.empty());
}

TEST(ValueUpdateFsmTest, AfterAConflictItLooksAgainAndNeedsNoSync) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.plans = {{1, ChangeEvent::overtaken}};
    world.put(1);
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.looks, 2);
    EXPECT_EQ(world.fresh_looks, 0);
    EXPECT_EQ(world.number(), 102);
    EXPECT_EQ(rule.before(), 101);
}

TEST(ValueUpdateFsmTest, WhenThePolicyGivesUpItGoesOnUnderTheLockAndGivesItBack) {
    for (const bool with_lock : {false, true}) {
        NumberChange rule(NumberChange::Kind::add, kEight, 1);
        ValueUpdateWorld world(rule, with_lock);
        world.conflicts_allowed = 1;
        world.put(0);
        // Looks and writes take turns: 1 and 3 are writes, 4 the lock, 5 a look, 6 a write that meets somebody again.
        world.plans = {{1, ChangeEvent::overtaken}, {3, ChangeEvent::overtaken}, {6, ChangeEvent::overtaken}};
        world.run();
        if (with_lock) {
            EXPECT_EQ(world.end->how, ChangeHow::changed);
            EXPECT_EQ(world.locks, 1);
            EXPECT_EQ(world.unlocks, 1);
            EXPECT_EQ(world.failures_under_lock, 1) << "those before the lock count no more";
            EXPECT_EQ(world.number(), 301);
        } else {
            EXPECT_EQ(world.end->error, Errc::bad_version);
            EXPECT_EQ(world.applied, 0);
            EXPECT_EQ(world.number(), 200);
        }
    }
}

TEST(ValueUpdateFsmTest, WhatDoesNotFitIsAnErrorAndNothingIsWritten) {
    using Limits = std::numeric_limits<std::int64_t>;
    struct Case {
        std::int64_t number, operand;
        NumberChange::Kind kind;
    };
    for (const auto& each :
         {Case{Limits::max(), 1, NumberChange::Kind::add}, Case{Limits::min(), -1, NumberChange::Kind::add},
          Case{Limits::min(), 1, NumberChange::Kind::subtract}, Case{0, Limits::min(), NumberChange::Kind::subtract}}) {
        NumberChange rule(each.kind, kEight, each.operand);
        ValueUpdateWorld world(rule);
        world.put(each.number);
        world.run();
        EXPECT_EQ(world.end->error, Errc::bad_option);
        EXPECT_EQ(world.writes, 0);
        EXPECT_EQ(world.number(), each.number);
    }
    NumberChange fits(NumberChange::Kind::subtract, kEight, Limits::min());
    ValueUpdateWorld world(fits);
    world.put(-1);
    world.run();
    EXPECT_EQ(world.number(), Limits::max());

    NumberChange four(NumberChange::Kind::add, kFour, 1);
    EXPECT_EQ(four.on_found(FoundValue{kFour.write(0x7fffffff), 3}).error, Errc::bad_option);
    EXPECT_EQ(four.on_found(FoundValue{kFour.write(-1), 3}).write.data, std::string(4, '\0'));
}

TEST(ValueUpdateFsmTest, NumbersAreBigEndianAndNothingElseIsTakenForOne) {
    EXPECT_EQ(kEight.write(258), std::string("\0\0\0\0\0\0\1\2", 8));
    EXPECT_EQ(kEight.write(-2), "\xff\xff\xff\xff\xff\xff\xff\xfe");
    EXPECT_EQ(kFour.write(-2), "\xff\xff\xff\xfe");
    for (const std::int64_t number :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max()}) {
        EXPECT_EQ(kEight.read(kEight.write(number)), number);
    }
    EXPECT_EQ(from_big_endian<std::int32_t>(to_big_endian(std::numeric_limits<std::int32_t>::min())),
              std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(kEight.read(""), 0) << "as Curator and kazoo have it";
    EXPECT_FALSE(kEight.read(std::string(4, '\0')));
    EXPECT_FALSE(kFour.read(std::string(8, '\0')));
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.data = "four";
    world.run();
    EXPECT_EQ(world.end->error, Errc::bad_data);
    EXPECT_EQ(world.writes, 0);
}

TEST(ValueUpdateFsmTest, AComparisonThatFailsWritesNothingAndOneThatHoldsIsTriedUntilItIsDone) {
    NumberChange other(NumberChange::Kind::compare, kEight, 9, 1);
    ValueUpdateWorld unchanged(other);
    unchanged.put(2);
    unchanged.run();
    EXPECT_EQ(unchanged.end->how, ChangeHow::unchanged);
    EXPECT_EQ(other.before(), 2);
    EXPECT_EQ(unchanged.writes, 0);

    NumberChange same(NumberChange::Kind::compare, kEight, 9, 0);
    ValueUpdateWorld changed(same);
    changed.plans = {{1, ChangeEvent::made}, {3, ChangeEvent::removed}};
    changed.run();
    EXPECT_EQ(changed.end->how, ChangeHow::unchanged) << "it was made with another number in between";
    EXPECT_EQ(same.before(), 7);
}

// CURATOR-688: -1 means "whatever it is" to the servers, also where it is the version that was read.
TEST(ValueUpdateFsmTest, AVersionThatHasComeRoundToMinusOneIsNoLicenceToOverwrite) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    OverwriteVersion of_version("x", -1);
    for (ValueUpdateRule* each : std::initializer_list<ValueUpdateRule*>{&rule, &of_version}) {
        ValueUpdateWorld world(*each);
        world.put(5);
        world.version = -1;
        world.run();
        EXPECT_EQ(world.end->error, Errc::unsupported);
        EXPECT_EQ(world.writes, 0);
        EXPECT_EQ(world.number(), 5);
    }
    // Other versions below zero are as good as any.
    NumberChange negative(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(negative);
    world.put(5);
    world.version = std::numeric_limits<std::int32_t>::min();
    world.run();
    EXPECT_EQ(world.number(), 6);
    // Without a condition it is written, and the next version is 0.
    Overwrite any(kEight.write(7));
    ValueUpdateWorld overwritten(any);
    overwritten.put(5);
    overwritten.version = -1;
    overwritten.run();
    EXPECT_EQ(any.version(), 0);
}

TEST(ValueUpdateFsmTest, AfterADeadlineThatPassesDuringAWriteNothingIsSentAnyMore) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.put(5);
    world.fsm.start();
    while (world.writes == 0) ASSERT_TRUE(world.pump());
    world.fsm.deadline();
    EXPECT_EQ(world.answers, 0) << "the write has the same deadline";
    world.put(6);  // and so the write is refused
    world.run_on();
    ASSERT_EQ(world.answers, 1);
    EXPECT_EQ(world.end->how, ChangeHow::nothing);
    EXPECT_EQ(world.looks, 1);
    EXPECT_EQ(world.finishes, 1);
}

TEST(ValueUpdateFsmTest, AWriteMayBeAnsweredBeforeItReturns) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.answers_at_once = true;
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.answers, 1);
}

TEST(ValueUpdateFsmTest, BeforeTheFirstConnectNoPolicyGivesUpAndAPassedDeadlineWaitsForNobody) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.session = 0;
    world.is_connected = false;
    world.attempts_allowed = 0;
    world.fsm.start();
    EXPECT_EQ(world.answers, 0);
    world.session = 1;
    for (int i = 0; i < 20 && world.pump(); ++i) {
    }
    EXPECT_EQ(world.end->how, ChangeHow::changed);

    NumberChange other(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld once(other, false, true);
    once.is_connected = false;
    once.fsm.start();
    EXPECT_EQ(once.end->how, ChangeHow::nothing);
}

TEST(ValueUpdateFsmTest, ThePolicyCountsTheFailuresOfOneOutage) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.attempts_allowed = 1;
    world.plans = {{0, ChangeEvent::lost}, {2, ChangeEvent::parents_gone}, {3, ChangeEvent::lost}};  // a look, a create
    world.run();
    EXPECT_EQ(world.end->how, ChangeHow::changed);
    EXPECT_EQ(world.made_directories.size(), 2u);
}

TEST(ValueUpdateFsmTest, WhenThePolicyForConnectionsGivesUpNothingWasWritten) {
    NumberChange rule(NumberChange::Kind::add, kEight, 1);
    ValueUpdateWorld world(rule);
    world.attempts_allowed = 0;
    world.plans = {{0, ChangeEvent::lost}};
    world.run();
    EXPECT_EQ(world.end->error, Errc::connection_lost);
    EXPECT_EQ(world.applied, 0);
}

}  // namespace
}  // namespace zkrecipes::internal
