#include "unit/session/requests/watch_table_fixture.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(WatchTableTest, ADirectoryIsWatchedByItsChildren) {
    const auto a = watch("a", "/d", WatchKind::children);
    watch("b", "/d", WatchKind::children);
    EXPECT_THAT(sent, ElementsAre("children /d"));
    read();
    table.remove(a);
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok"));
    event("/d", WatchEventType::children_changed);
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok", "b fired"));
    const auto c = watch("c", "/d", WatchKind::children);
    EXPECT_THAT(sent, ElementsAre("children /d", "children /d"));
    read();
    table.remove(c);
    EXPECT_THAT(sent, ElementsAre("children /d", "children /d", "remove /d"));
    removed();
    EXPECT_EQ(table.bytes(), 0u);
}

TEST_F(WatchTableTest, AMissingDirectoryIsWatchedForBeingMade) {
    const auto a = watch("a", "/d", WatchKind::directory);
    read(Rc::no_node);
    EXPECT_THAT(sent, ElementsAre("children /d", "exists /d"));
    EXPECT_THAT(told, IsEmpty());
    read(Rc::no_node);
    EXPECT_THAT(told, ElementsAre("a ready no node"));
    event("/d", WatchEventType::created);
    EXPECT_THAT(told, ElementsAre("a ready no node", "a fired"));
    table.remove(a);
    EXPECT_EQ(table.bytes(), 0u);
    EXPECT_THAT(sent, ElementsAre("children /d", "exists /d"));  // the event has used up the watch
}

TEST_F(WatchTableTest, ADirectoryThatIsMadeMeanwhileIsWatchedByItsChildren) {
    const auto a = watch("a", "/d", WatchKind::directory);
    read(Rc::no_node);
    watch("b", "/d", WatchKind::directory);
    read();
    EXPECT_THAT(sent, ElementsAre("children /d", "exists /d", "children /d"));
    read();
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok"));
    table.remove(a);
    event("/d", WatchEventType::children_changed);
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok", "b fired"));
    // The question whether it is there has left a watch on the node itself.
    EXPECT_THAT(sent, ElementsAre("children /d", "exists /d", "children /d", "remove /d"));
    removed();
    EXPECT_EQ(table.bytes(), 0u);
}

TEST_F(WatchTableTest, WhoLeavesAMissingDirectoryTakesTheWatchOffTheServer) {
    const auto a = watch("a", "/d", WatchKind::directory);
    read(Rc::no_node);
    table.remove(a);
    read(Rc::no_node);
    EXPECT_THAT(told, IsEmpty());
    EXPECT_THAT(sent, ElementsAre("children /d", "exists /d", "remove /d"));
    removed();
    EXPECT_EQ(table.bytes(), 0u);
}

TEST_F(WatchTableTest, AMissingNodeIsWatchedForBeingMadeByThoseWhoWantThat) {
    watch("a", "/n", WatchKind::existence);
    watch("b");
    read(Rc::no_node);
    EXPECT_THAT(told, ElementsAre("b ready no node"));
    watch("c");  // while the second read is on its way
    read(Rc::no_node);
    EXPECT_THAT(sent, ElementsAre("get /n", "exists /n"));
    EXPECT_THAT(told, ElementsAre("b ready no node", "a ready no node", "c ready no node"));
    told.clear();
    event("/n", WatchEventType::created);
    EXPECT_THAT(told, ElementsAre("a fired"));
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_EQ(table.listeners(), 0u);
}

TEST_F(WatchTableTest, ANodeThatIsMadeMeanwhileIsReadAfterAll) {
    watch("a", "/n", WatchKind::existence);
    read(Rc::no_node);
    watch("b");
    read(Rc::ok);
    EXPECT_THAT(told, IsEmpty());
    read(Rc::ok);
    EXPECT_THAT(sent, ElementsAre("get /n", "exists /n", "get /n"));
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok"));
}

TEST_F(WatchTableTest, ANodeAndItsChildrenAreWatchedBesideEachOther) {
    const auto a = watch("a");
    watch("b", "/n", WatchKind::directory);
    EXPECT_THAT(sent, ElementsAre("get /n", "children /n"));
    read();
    read();
    event("/n", WatchEventType::children_changed);
    const auto c = watch("c", "/n", WatchKind::children);
    read();
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok", "b fired", "c ready ok"));
    told.clear();
    table.remove(c);  // a removal would take the other watch, too
    EXPECT_THAT(sent, ElementsAre("get /n", "children /n", "children /n"));
    event("/n", WatchEventType::children_changed);
    EXPECT_THAT(told, IsEmpty());
    watch("d", "/n", WatchKind::children);
    read();
    table.remove(a);
    event("/n", WatchEventType::deleted);
    EXPECT_THAT(told, ElementsAre("d ready ok", "d fired"));
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchTableTest, TheLastToLeaveTakesBothWatchesOffAndNewcomersOfBothKindsWait) {
    const auto a = watch("a"), b = watch("b", "/n", WatchKind::children);
    read();
    read();
    table.remove(a);
    table.remove(b);
    EXPECT_THAT(sent, ElementsAre("get /n", "children /n", "remove /n"));
    watch("c");
    watch("d", "/n", WatchKind::children);
    removed();
    EXPECT_THAT(sent, ElementsAre("get /n", "children /n", "remove /n", "get /n", "children /n"));
    read();
    read();
    event("/n", WatchEventType::changed);
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok", "c ready ok", "d ready ok", "c fired"));
}

TEST_F(WatchTableTest, WhoWantsNamesIsGivenThem) {
    WatchListener listener;
    listener.listed = [this](Rc, const std::vector<std::string>& names, const NodeStat&) { told = names; };
    table.add("/d", std::move(listener), WatchKind::directory);
    table.on_read(next(), Rc::ok, {}, NodeStat{}, {"x", "y"});
    EXPECT_THAT(told, ElementsAre("x", "y"));
}

TEST_F(WatchTableTest, OneReadServesAllWhoAskWhileItIsOnItsWay) {
    watch("a");
    watch("b");
    EXPECT_THAT(sent, ElementsAre("get /n"));
    read();
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok"));
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok", "a fired", "b fired"));
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_EQ(table.listeners(), 0u);
    EXPECT_EQ(table.bytes(), 0u);
}

TEST_F(WatchTableTest, TheLastToLeaveTakesTheWatchOffTheServer) {
    const auto a = watch("a"), b = watch("b");
    read();
    table.remove(a);
    EXPECT_THAT(sent, ElementsAre("get /n"));
    table.remove(b);
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
    removed();
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_EQ(table.bytes(), 0u);
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok"));
}

TEST_F(WatchTableTest, LeavingBeforeTheReadIsAnsweredTakesTheWatchOffAfterwards) {
    table.remove(watch("a"));
    EXPECT_THAT(sent, ElementsAre("get /n"));
    read();
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
    removed();
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_THAT(told, IsEmpty());
}

TEST_F(WatchTableTest, LeavingBeforeAReadThatFindsNoNodeNeedsNoRemoval) {
    table.remove(watch("a"));
    read(Rc::no_node);
    EXPECT_THAT(sent, ElementsAre("get /n"));
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchTableTest, ANewcomerAfterAllLeftSharesTheReadOnItsWay) {
    table.remove(watch("a"));
    watch("b");
    read();
    EXPECT_THAT(sent, ElementsAre("get /n"));
    EXPECT_THAT(told, ElementsAre("b ready ok"));
}

TEST_F(WatchTableTest, ANewcomerDuringARemovalWaitsForItsEnd) {
    table.remove(watch("a"));
    read();
    watch("b");
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
    removed();
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n", "get /n"));
    read();
    event();
    EXPECT_THAT(told, ElementsAre("b ready ok", "b fired"));
}

TEST_F(WatchTableTest, ANewcomerWhoLeavesDuringTheRemovalLeavesNothing) {
    table.remove(watch("a"));
    read();
    table.remove(watch("b"));
    removed();
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchTableTest, AnEventBeforeTheAnswerToAReadIsOlderThanThatRead) {
    watch("a");
    read();
    watch("b");
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok", "a fired")) << "b's read was executed after the event";
    read(Rc::no_node);
    EXPECT_THAT(told, ElementsAre("a ready ok", "a fired", "b ready no node"));
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchTableTest, AnEventDuringARemovalUsesUpTheWatch) {
    table.remove(watch("a"));
    read();
    event();
    removed(Rc::no_watcher);
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
}

TEST_F(WatchTableTest, ARemovalWhoseAnswerIsLostIsRepeatedWhenConnectedAgain) {
    table.remove(watch("a"));
    read();
    connected = false;
    removed(Rc::connection_loss);
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
    connected = true;
    table.on_connected();
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n", "remove /n"));
    removed();
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchTableTest, LeavingWhileDisconnectedTakesTheWatchOffAfterwards) {
    const auto a = watch("a");
    read();
    connected = false;
    table.remove(a);
    EXPECT_THAT(sent, ElementsAre("get /n"));
    connected = true;
    table.on_connected();
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
}

TEST_F(WatchTableTest, ARemovalThatWasNotSentAndIsAnsweredOnTheNextConnectionIsRepeated) {
    const WatchId a = watch("a");
    read();
    table.remove(a);
    table.on_connected();
    removed(Rc::not_connected);
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n", "remove /n"));
    removed();
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchTableTest, WatchesThatAreStillWantedSurviveAReconnectWithoutARequest) {
    watch("a");
    read();
    table.on_connected();
    EXPECT_THAT(sent, ElementsAre("get /n"));
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok", "a fired"));
}

TEST_F(WatchTableTest, AReadThatFailedIsToldAndLeavesNothing) {
    watch("a");
    read(Rc::connection_loss);
    EXPECT_THAT(told, ElementsAre("a ready connection lost"));
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_EQ(table.listeners(), 0u);
}

TEST_F(WatchTableTest, AFailedSecondReadDoesNotEndTheFirstListenersWatch) {
    watch("a");
    read();
    watch("b");
    read(Rc::connection_loss);
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready connection lost", "a fired"));
}

TEST_F(WatchTableTest, AnAbandonedWatchEndsWithTheNodeAndCostsNoRequest) {
    const auto a = watch("a");
    read();
    table.abandon(a);
    EXPECT_THAT(sent, ElementsAre("get /n"));
    EXPECT_EQ(table.paths(), 1u);
    event();
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_THAT(told, ElementsAre("a ready ok"));
}

TEST_F(WatchTableTest, AnAbandonedWatchWhoseEventWasMissedIsTakenOffAfterAReconnect) {
    table.abandon(watch("a"));
    read();
    table.on_connected();
    EXPECT_THAT(sent, ElementsAre("get /n", "remove /n"));
    removed(Rc::no_watcher);
    EXPECT_EQ(table.paths(), 0u);
}

TEST_F(WatchTableTest, NothingIsKeptOfARequestThatWasAnswered) {
    for (const Rc rc : {Rc::ok, Rc::no_node, Rc::connection_loss}) {
        const auto a = watch("a");
        EXPECT_EQ(table.unanswered(), 1u);
        read(rc);
        EXPECT_EQ(table.unanswered(), 0u) << to_string(rc);
        table.remove(a);
        if (rc == Rc::ok) removed();
        EXPECT_EQ(table.unanswered(), 0u) << to_string(rc);
    }
}

TEST_F(WatchTableTest, TheEndOfTheSessionEndsAllSilently) {
    watch("a");
    read();
    watch("b", "/m");
    table.reset();
    EXPECT_EQ(table.paths(), 0u);
    EXPECT_EQ(table.listeners(), 0u);
    EXPECT_EQ(table.bytes(), 0u);
    read();
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok"));
}

TEST_F(WatchTableTest, APathThatIsWatchedAsNodeAndAsDirectoryCountsTwice) {
    const std::string path(396, 'x');
    const auto node = watch("a", path);
    EXPECT_EQ(table.bytes(), 400u);
    const auto children = watch("b", path, WatchKind::children);
    EXPECT_EQ(table.bytes(), 800u);
    EXPECT_EQ(watch("c", std::string(300, 'y'), WatchKind::children), 0u);
    EXPECT_NE(watch("d", path, WatchKind::directory), 0u) << "both are counted already";
    EXPECT_EQ(watch("e", std::string(150, 'z'), WatchKind::directory), 0u) << "which may leave both";
    EXPECT_EQ(table.bytes(), 800u);
    EXPECT_EQ(table.paths(), 1u);
    table.reset();
    EXPECT_EQ(table.bytes(), 0u);
    table.remove(node);
    table.remove(children);
}

TEST_F(WatchTableTest, BeyondTheBudgetNothingIsSentAndOthersGoOn) {
    EXPECT_NE(watch("a", std::string(900, 'x')), 0u);
    EXPECT_FALSE(table.room_for(100));
    EXPECT_EQ(watch("b", std::string(100, 'y')), 0u);
    EXPECT_NE(watch("c", std::string(900, 'x')), 0u) << "a path that is watched already costs nothing more";
    EXPECT_EQ(sent.size(), 1u);
    read();
    EXPECT_THAT(told, ElementsAre("a ready ok", "c ready ok"));
}

TEST_F(WatchTableTest, AListenerThatRemovesAnotherOneInItsCallbackSilencesIt) {
    watch("a");
    const auto b = watch("b");
    on_told = [&](const std::string& name) {
        if (name == "a") table.remove(b);
    };
    read();
    EXPECT_THAT(told, ElementsAre("a ready ok"));
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok", "a fired"));
}

TEST_F(WatchTableTest, AListenerThatRemovesAnotherOneWhenThereIsNothingToWatchSilencesIt) {
    watch("a");
    const auto b = watch("b");
    on_told = [&](const std::string& name) {
        if (name == "a") table.remove(b);
    };
    read(Rc::no_node);
    EXPECT_THAT(told, ElementsAre("a ready no node"));
}

TEST_F(WatchTableTest, AListenerThatRemovesAnotherOneWhenFiredSilencesIt) {
    watch("a");
    const auto b = watch("b");
    read();
    on_told = [&](const std::string& name) {
        if (name == "a") table.remove(b);
    };
    event();
    EXPECT_THAT(told, ElementsAre("a ready ok", "b ready ok", "a fired"));
}

TEST_F(WatchTableTest, AListenerMayAskAgainWhenFired) {
    watch("a");
    read();
    on_told = [&](const std::string& name) {
        on_told = nullptr;
        watch(name + "2");
    };
    event();
    EXPECT_THAT(sent, ElementsAre("get /n", "get /n"));
    read();
    EXPECT_THAT(told, ElementsAre("a ready ok", "a fired", "a2 ready ok"));
}

TEST_F(WatchTableTest, EventsOfUnknownPathsAndRemovedEventsChangeNothing) {
    watch("a");
    read();
    event("/other");
    table.on_event(WatchEventType::removed, "/n");
    EXPECT_THAT(told, ElementsAre("a ready ok"));
    EXPECT_EQ(table.paths(), 1u);
}

}  // namespace
}  // namespace zkrecipes::internal
