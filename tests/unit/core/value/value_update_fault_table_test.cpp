// Changes of a value: each request × everything that can go wrong at it, generated.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "unit/core/value/value_update_world.hpp"

namespace zkrecipes::internal {
namespace {

std::string describe_change(const ValueUpdateWorld& world) {
    std::ostringstream text;
    for (const auto& [at, event] : world.plans) text << static_cast<int>(event) << " at " << at << "; ";
    text << world.looks << " looks, " << world.writes << " writes, " << world.locks << " locks, applied "
         << world.applied;
    if (world.end) {
        text << ", end " << static_cast<int>(world.end->how) << " "
             << (world.end->ready ? world.end->ready->what() : world.end->detail);
    }
    return text.str();
}

void expect_honest_change(const ValueUpdateWorld& world) {
    ASSERT_EQ(world.answers, 1);
    EXPECT_FALSE(world.timer);
    EXPECT_FALSE(world.locked);
    EXPECT_FALSE(world.locking);
    EXPECT_LE(world.applied, 1) << "done twice";
    switch (world.end->how) {
        case ChangeHow::changed: EXPECT_EQ(world.applied, 1); break;
        case ChangeHow::unchanged:
        case ChangeHow::nothing: EXPECT_EQ(world.applied, 0); break;
        case ChangeHow::failed:
            if (world.end->error != Errc::outcome_unknown) {
                EXPECT_EQ(world.applied, 0);
            }
            break;
    }
}

/// Three events at the first requests, all combinations; `play` makes a world, runs it and looks at it.
template <class Play>
void three_events(Play play) {
    for (const ChangeEvent first : kChangeEvents) {
        for (const ChangeEvent second : kChangeEvents) {
            for (const ChangeEvent third : kChangeEvents) {
                play(std::map<int, ChangeEvent>{{0, first}, {1, second}, {2, third}});
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

TEST(ValueUpdateFaultTable, AnIncrementHappensAtMostOnceOnTopOfWhatItSawAndNeverSaysWhatIsNotSo) {
    for (const bool once : {false, true}) {
        for (const bool with_lock : {false, true}) {
            for (const bool exists : {false, true}) {
                three_events([&](std::map<int, ChangeEvent> plans) {
                    NumberChange rule(NumberChange::Kind::add, kEight, 1);
                    ValueUpdateWorld world(rule, with_lock, once);
                    world.conflicts_allowed = with_lock ? 0 : 3;
                    if (exists) world.put(41);
                    world.plans = std::move(plans);
                    world.run();
                    SCOPED_TRACE(describe_change(world));
                    expect_honest_change(world);
                    if (world.end && world.end->how == ChangeHow::changed) {
                        EXPECT_EQ(rule.after(), rule.before() + 1);
                        const auto& was = world.history;
                        bool seen = false;
                        for (std::size_t i = 1; i < was.size(); ++i) {
                            seen = seen || (was[i] == rule.after() && was[i - 1] == rule.before());
                        }
                        EXPECT_TRUE(seen) << "not on top of what it saw";
                    }
                });
            }
        }
    }
}

TEST(ValueUpdateFaultTable, WritesWithoutALookHappenAtMostOnceAndNeverSayWhatIsNotSo) {
    for (const int kind : {0, 1, 2}) {
        for (const bool exists : {false, true}) {
            three_events([&](std::map<int, ChangeEvent> plans) {
                Overwrite any(kEight.write(5));
                CreateOnly create(kEight.write(5));
                OverwriteVersion of_version(kEight.write(5), 0);
                ValueUpdateRule& rule = kind == 0   ? static_cast<ValueUpdateRule&>(any)
                                        : kind == 1 ? static_cast<ValueUpdateRule&>(create)
                                                    : static_cast<ValueUpdateRule&>(of_version);
                ValueUpdateWorld world(rule);
                if (exists) world.put(41);
                world.plans = std::move(plans);
                world.run();
                SCOPED_TRACE(describe_change(world));
                expect_honest_change(world);
                EXPECT_EQ(world.looks, 0);
            });
        }
    }
}

}  // namespace
}  // namespace zkrecipes::internal
