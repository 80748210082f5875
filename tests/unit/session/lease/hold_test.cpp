#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/lease/hold_table.hpp"
#include "support/fake_runtime.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using namespace internal;  // NOLINT: for tests only
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HoldTest : public ::testing::Test {
protected:
    std::shared_ptr<Hold> make(const std::string& node = "/l/n") { return make_all({node}); }
    std::shared_ptr<Hold> make_all(std::vector<std::string> of) {
        return std::make_shared<Hold>(runtime, lease, std::move(of), 7, 1, 1);
    }
    void lease_ends_at(Instant until) { lease->ends_at_ns = until.time_since_epoch().count(); }

    std::shared_ptr<FakeRuntime> runtime = std::make_shared<FakeRuntime>();
    std::shared_ptr<LeaseView> lease = std::make_shared<LeaseView>();
    const Instant start = runtime->now();
};

TEST_F(HoldTest, IsHeldUntilTheLeaseEndsAndNotAnInstantLonger) {
    lease_ends_at(start + 4s);
    const auto hold = make();
    EXPECT_EQ(hold->remaining_lease(), 4s);
    runtime->freeze_for(4s - 1ns);
    EXPECT_TRUE(hold->held());
    runtime->freeze_for(1ns);
    EXPECT_FALSE(hold->held());
}

TEST_F(HoldTest, ALaterLeaseRevivesNoHoldThatWasSeenToHaveEnded) {
    lease_ends_at(start + 4s);
    const auto hold = make();
    runtime->freeze_for(4s);
    EXPECT_FALSE(hold->held());
    lease_ends_at(start + 1h);
    EXPECT_FALSE(hold->held());
    EXPECT_EQ(hold->remaining_lease(), 0s);
}

TEST_F(HoldTest, MarkedLostItIsLostWhateverTheLeaseSays) {
    lease_ends_at(start + 4s);
    const auto hold = make();
    EXPECT_TRUE(hold->mark_lost());
    EXPECT_FALSE(hold->mark_lost()) << "the loss is reported once";
    EXPECT_FALSE(hold->held());
    EXPECT_FALSE(hold->lost().stop_requested());
    hold->request_stop();
    EXPECT_TRUE(hold->lost().stop_requested());
}

TEST_F(HoldTest, AnExpiredLeaseSeenByAReaderIsStillReportedOnce) {
    const auto hold = make();
    EXPECT_FALSE(hold->held());
    EXPECT_TRUE(hold->mark_lost());
}

TEST_F(HoldTest, GivenBackItIsNeverReportedLost) {
    lease_ends_at(start + 4s);
    const auto hold = make();
    hold->mark_ended();
    EXPECT_FALSE(hold->held());
    EXPECT_FALSE(hold->mark_lost());
}

class HoldTableTest : public HoldTest {
protected:
    std::vector<std::string> nodes(const std::vector<std::shared_ptr<Hold>>& group) {
        std::vector<std::string> out;
        for (const auto& hold : group) out.push_back(hold->node());
        return out;
    }
    HoldTable table;
};

TEST_F(HoldTableTest, AHeartbeatIsDueOneIntervalAfterTheOldestProof) {
    table.add(make("/a"), start);
    EXPECT_EQ(table.heartbeat_due(start, 1s), start + 1s);
    EXPECT_EQ(table.heartbeat_due(start - 500ms, 1s), start + 500ms) << "the lease is older than the hold";
}

TEST_F(HoldTableTest, CreatesOfOthersDoNotPutOffTheCheckOfALongHold) {
    table.add(make("/a"), start);
    EXPECT_EQ(table.heartbeat_due(start + 900ms, 1s), start + 1s);
}

TEST_F(HoldTableTest, ARoundThatWasNotAnsweredIsFollowedByTheNextOnlyAfterTheInterval) {
    table.add(make("/a"), start);
    table.begin_round(start + 1s);
    EXPECT_EQ(table.heartbeat_due(start, 1s), start + 2s);
}

TEST_F(HoldTableTest, ARoundChecksEachHoldOnceInRequestsOfBoundedSize) {
    std::vector<std::shared_ptr<Hold>> holds;
    for (int i = 0; i < 3'000; ++i) {
        holds.push_back(make("/" + std::string(200, 'x') + std::to_string(i)));
        table.add(holds.back(), start);
    }
    const auto groups = table.begin_round(start);
    std::size_t count = 0;
    for (const auto& group : groups) {
        std::size_t bytes = 0;
        for (const auto& hold : group) bytes += hold->node().size();
        EXPECT_LE(bytes, HoldTable::kChunkBytes);
        EXPECT_FALSE(group.empty());
        count += group.size();
    }
    EXPECT_EQ(count, 3'000u);
    EXPECT_LE(groups.size(), 5u);
    table.checked(groups[0], start + 1s);
    EXPECT_EQ(table.heartbeat_due(start + 1s, 1s), start + 1s) << "the other groups were not proved";
}

TEST_F(HoldTableTest, TheRestOfAFailedCheckLeavesOutWhatIsGone) {
    const auto a = make("/a"), b = make("/b"), c = make("/c"), d = make("/d");
    for (const auto& hold : {a, b, c, d}) table.add(hold, start);
    const auto group = table.begin_round(start).front();
    table.remove(b.get());
    table.remove(d.get());  // ended meanwhile
    const auto rest = table.rest_of(group, 1);
    ASSERT_EQ(rest.size(), 1u);
    EXPECT_THAT(nodes(rest[0]), ElementsAre("/a", "/c"));
}

TEST_F(HoldTableTest, ALargeRestIsHalved) {
    for (int i = 0; i < 1'000; ++i) table.add(make("/" + std::to_string(i)), start);
    const auto group = table.begin_round(start).front();
    const auto rest = table.rest_of(group, 0);
    ASSERT_EQ(rest.size(), 2u);
    EXPECT_EQ(rest[0].size() + rest[1].size(), 999u);
}

TEST_F(HoldTableTest, OnlyHoldsThatLastAreWatched) {
    const auto brief = make("/brief"), lasting = make("/lasting");
    table.add(brief, start);
    table.add(lasting, start + 100ms);
    EXPECT_EQ(table.watch_due_at(), start + 500ms);
    table.remove(brief.get());
    EXPECT_THAT(table.take_due_for_watch(start + 599ms), IsEmpty());
    EXPECT_THAT(nodes(table.take_due_for_watch(start + 600ms)), ElementsAre("/lasting"));
    EXPECT_THAT(nodes(table.unwatched()), ElementsAre("/lasting"));
    table.find(lasting.get())->watches = {1};
    EXPECT_THAT(table.unwatched(), IsEmpty());
    EXPECT_EQ(table.watch_due_at(), Instant::max());
}

TEST_F(HoldTableTest, AHoldOfSeveralNodesCountsWithAllOfThem) {
    const std::string name(HoldTable::kChunkBytes / 4, 'x');
    const auto pair = make_all({"/a" + name, "/b" + name}), other = make_all({"/c" + name, "/d" + name});
    table.add(pair, start);
    table.add(other, start);
    EXPECT_EQ(table.begin_round(start).size(), 2u);
    table.take_due_for_watch(start + 500ms);
    table.find(pair.get())->watches = {1, 0};
    table.find(other.get())->watches = {2, 3};
    EXPECT_THAT(table.unwatched(), ElementsAre(pair));
}

TEST_F(HoldTableTest, ShortHoldsLeaveNothingBehind) {
    for (int i = 0; i < 1'000; ++i) {
        const auto hold = make();
        table.add(hold, start);
        EXPECT_TRUE(table.remove(hold.get()).has_value());
    }
    EXPECT_EQ(table.watch_due_at(), Instant::max());
    EXPECT_TRUE(table.empty());
}

TEST_F(HoldTableTest, WhoStandsOnTheSameNodesIsFoundUntilTheLastOneIsOut) {
    for (const bool at_once : {false, true}) {
        const auto first = make("/a");
        const auto second = std::make_shared<Hold>(first);
        table.add(first, start);
        table.add_beside(first.get(), second, start);
        if (at_once) {
            EXPECT_EQ(table.remove_all().size(), 2u);
        } else {
            table.remove(first.get());
            const auto* left = table.find_on_nodes_of(first.get());
            ASSERT_NE(left, nullptr);
            EXPECT_EQ(left->hold, second);
            table.remove(second.get());
        }
        EXPECT_EQ(table.find_on_nodes_of(first.get()), nullptr);
        EXPECT_EQ(table.find_on_nodes_of(second.get()), nullptr);
    }
}

}  // namespace
}  // namespace zkrecipes::testing
