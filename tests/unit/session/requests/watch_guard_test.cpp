#include "unit/session/requests/watch_table_fixture.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;

class WatchGuardTest : public WatchTableTest {};

TEST_F(WatchGuardTest, AGuardTellsWhichNodeIsThere) {
    table.guard("/n", czxid);
    EXPECT_EQ(table.guarded("/n"), 0) << "not known yet";
    read();
    EXPECT_EQ(table.guarded("/n"), 7);
    table.guard("/n", czxid);
    EXPECT_THAT(sent, ElementsAre("get /n")) << "it is in place";
    event("/n", WatchEventType::children_changed);
    EXPECT_EQ(table.guarded("/n"), 7);
    for (const auto type : {WatchEventType::changed, WatchEventType::deleted}) {
        event("/n", type);
        EXPECT_EQ(table.guarded("/n"), 0);
        EXPECT_EQ(table.paths(), 0u);
        ++czxid;
        table.guard("/n", czxid);
        read();
        EXPECT_EQ(table.guarded("/n"), czxid);
    }
}

TEST_F(WatchGuardTest, AGuardEndsWithItsEventAlsoWhereOthersWatchTheNode) {
    watch("a", "/n", WatchKind::children);
    read();
    table.guard("/n", czxid);
    read();
    EXPECT_EQ(table.guarded("/n"), 7);
    event("/n", WatchEventType::changed);
    EXPECT_EQ(table.guarded("/n"), 0);
    EXPECT_EQ(table.listeners(), 1u);
}

TEST_F(WatchGuardTest, AGuardOfAnotherNodeThanIsThereIsPutInPlaceAnew) {  // its event was kept back
    table.guard("/n", 7);
    read();
    czxid = 8;
    table.guard("/n", 8);
    EXPECT_EQ(table.guarded("/n"), 0);
    read();
    EXPECT_EQ(table.guarded("/n"), 8);
}

TEST_F(WatchGuardTest, AGuardThatIsInPlaceSurvivesAReadThatFails) {
    table.guard("/n", czxid);
    read();
    table.on_connected();
    table.guard("/n", czxid);
    read(Rc::connection_loss);
    EXPECT_EQ(table.guarded("/n"), 0);
    EXPECT_THAT(sent, ElementsAre("get /n", "get /n")) << "the watch stays";
}

TEST_F(WatchGuardTest, AGuardIsPutInPlaceAnewAfterAReconnect) {
    table.guard("/n", czxid);
    read();
    table.on_connected();
    EXPECT_EQ(table.guarded("/n"), 0);
    table.guard("/n", czxid);
    read();
    EXPECT_THAT(sent, ElementsAre("get /n", "get /n"));
    EXPECT_EQ(table.guarded("/n"), 7);
}

TEST_F(WatchGuardTest, AGuardStaysWhenTheListenersOfTheSameNodeLeave) {
    table.guard("/n", czxid);
    read();
    const auto id = watch("a");
    read();
    table.remove(id);
    EXPECT_EQ(table.guarded("/n"), 7);
    EXPECT_THAT(sent, ElementsAre("get /n", "get /n"));
    EXPECT_TRUE(table.unused());
}

TEST_F(WatchGuardTest, AGuardEndsWhereAWatchOnTheChildrenIsTakenOff) {
    table.guard("/n", czxid);
    read();
    const auto id = watch("a", "/n", WatchKind::children);
    read();
    EXPECT_FALSE(table.unused());
    table.remove(id);
    EXPECT_EQ(sent.back(), "remove /n");
    EXPECT_EQ(table.guarded("/n"), 0);
    table.guard("/n", czxid);
    EXPECT_EQ(sent.back(), "remove /n") << "the removal on its way would take the new guard, too";
    removed();
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchGuardTest, AnEventBeforeTheAnswerToAGuardsReadIsOlder) {
    const auto id = watch("a");
    read();
    table.guard("/n", czxid);
    event();
    read();
    EXPECT_NE(table.guarded("/n"), 0);
    table.remove(id);
    EXPECT_THAT(sent, ElementsAre("get /n", "get /n"));
}

TEST_F(WatchGuardTest, AMissingNodeAndALostAnswerLeaveNoGuard) {
    for (const Rc rc : {Rc::no_node, Rc::connection_loss}) {
        table.guard("/n", czxid);
        read(rc);
        EXPECT_EQ(table.guarded("/n"), 0);
        EXPECT_EQ(table.paths(), 0u);
    }
}

TEST_F(WatchGuardTest, GuardsLeaveMostOfTheBudgetToThoseWhoWait) {
    WatchTable small(*this, 100);
    const std::string path = "/" + std::string(30, 'n');
    small.guard(path, 7);
    small.guard("/second", 8);
    EXPECT_THAT(sent, ElementsAre("get " + path));
    EXPECT_EQ(small.paths(), 1u);
}

}  // namespace
}  // namespace zkrecipes::internal
