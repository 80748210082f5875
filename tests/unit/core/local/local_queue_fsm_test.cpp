// Who of a session gets the lock next, and how many places the session takes in its queue.
#include "core/local/local_queue_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using MayTake = LocalQueuePort::MayTake;

struct LocalWorld final : LocalQueuePort {
    explicit LocalWorld(const LocalQueueTerms& terms = {}) : fsm(*this, terms) {}

    Instant now() const override { return time; }
    void open_place() override { log("open"); }
    void close_place() override { log("close"); }
    void grant(WaiterId waiter) override { log("grant " + std::to_string(waiter)); }
    void refuse(WaiterId waiter) override { log("refuse " + std::to_string(waiter)); }
    void discard() override { log("discard"); }
    bool pass_on(WaiterId waiter) override {
        if (may_pass_on) log("pass on to " + std::to_string(waiter));
        if (when_told) when_told();
        return may_pass_on;
    }
    bool keep(Instant until) override {
        kept_until = until;
        if (may_keep) log("keep");
        return may_keep;
    }
    MayTake may_take_kept() override { return may_take; }
    void give_up_kept() override { log("give up"); }
    void look_for_room_later() override { log("look later"); }

    void log(std::string what) { did.push_back(std::move(what)); }
    std::vector<std::string> take() { return std::exchange(did, {}); }
    /// What an owner that gives back does. True: the node stays.
    bool release() {
        if (fsm.take_over()) return true;
        fsm.on_given_back();
        return false;
    }

    Instant time{};
    Instant kept_until{};
    bool may_pass_on = true, may_keep = true;
    MayTake may_take = MayTake::yes;
    std::function<void()> when_told;
    std::vector<std::string> did;
    LocalQueueFsm fsm;
};

// ---- one place for all who wait ------------------------------------------------------------------------------------

TEST(LocalQueueFsmTest, ManyWaitersTakeOnePlaceAndTheNextOneWhenTheFirstIsGranted) {
    LocalWorld w;
    for (WaiterId id : {1, 2, 3}) w.fsm.arrive(id);
    EXPECT_THAT(w.take(), ElementsAre("open"));
    w.fsm.on_granted();
    EXPECT_THAT(w.take(), ElementsAre("grant 1", "open"));
    EXPECT_FALSE(w.release());
    EXPECT_THAT(w.take(), IsEmpty());
    w.fsm.on_granted();
    EXPECT_THAT(w.take(), ElementsAre("grant 2", "open"));
    w.fsm.on_granted();  // the second was lost, and its owner has not given it back: the third is granted all the same
    EXPECT_THAT(w.take(), ElementsAre("grant 3"));
    EXPECT_TRUE(w.fsm.busy());
    w.release();
    EXPECT_FALSE(w.fsm.busy());
}

TEST(LocalQueueFsmTest, APlaceIsNotThatOfTheWaiterForWhomItWasOpened) {
    LocalWorld w;
    w.fsm.arrive(1);
    w.fsm.arrive(2);
    w.fsm.leave(1);
    EXPECT_THAT(w.take(), ElementsAre("open"));
    w.fsm.on_granted();
    EXPECT_THAT(w.take(), ElementsAre("grant 2"));
}

TEST(LocalQueueFsmTest, WhenTheLastWaiterLeavesThePlaceIsClosedAndTheNextOneOpensAnother) {
    LocalWorld w;
    w.fsm.arrive(1);
    w.fsm.leave(1);
    w.fsm.leave(1);  // harmless
    EXPECT_THAT(w.take(), ElementsAre("open", "close"));
    EXPECT_FALSE(w.fsm.busy());
    w.fsm.arrive(2);
    EXPECT_THAT(w.take(), ElementsAre("open"));
}

TEST(LocalQueueFsmTest, ARefusalIsToldToThoseWhoHadArrivedAndTheOthersAskAnew) {
    LocalWorld w;
    w.fsm.arrive(1);
    w.fsm.arrive(2);  // after the place was opened
    w.fsm.on_refused(false);
    EXPECT_THAT(w.take(), ElementsAre("open", "refuse 1", "open"));
    w.fsm.arrive(3);
    w.fsm.on_refused(false);
    EXPECT_THAT(w.take(), ElementsAre("refuse 2", "open"));
    w.fsm.on_granted();
    EXPECT_THAT(w.take(), ElementsAre("grant 3"));
}

TEST(LocalQueueFsmTest, NoRoomForASecondNodeFailsNobodyWhileTheFirstIsHeld) {
    LocalWorld w;
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.fsm.arrive(2);
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "open"));
    w.fsm.on_refused(true);
    w.fsm.arrive(3);
    EXPECT_THAT(w.take(), ElementsAre("look later"));
    w.release();
    EXPECT_THAT(w.take(), IsEmpty());
    w.fsm.on_node_gone();
    EXPECT_THAT(w.take(), ElementsAre("open"));
    w.fsm.on_refused(true);  // now there is nothing that could make room
    EXPECT_THAT(w.take(), ElementsAre("refuse 2", "refuse 3"));
}

TEST(LocalQueueFsmTest, ATryIsBusyWhileSomebodyHoldsWaitsOrTries) {
    LocalWorld w;
    EXPECT_FALSE(w.fsm.busy());
    w.fsm.begin_try();
    EXPECT_TRUE(w.fsm.busy());
    w.fsm.end_try(false);
    EXPECT_FALSE(w.fsm.busy());
    w.fsm.begin_try();
    w.fsm.end_try(true);
    EXPECT_TRUE(w.fsm.busy());
    w.fsm.arrive(1);
    w.release();
    EXPECT_TRUE(w.fsm.busy());
    w.fsm.leave(1);
    EXPECT_FALSE(w.fsm.busy());
}

// ---- hand-over in the process ---------------------------------------------------------------------------------------

TEST(LocalQueueFsmTest, ANodeGoesFromOneWaiterToTheNextUntilTheTurnHasSoManyHolds) {
    LocalWorld w({.holds_per_turn = 3, .turn = 1s});
    for (WaiterId id : {1, 2, 3, 4, 5}) w.fsm.arrive(id);
    w.fsm.on_granted();
    EXPECT_TRUE(w.release());
    EXPECT_TRUE(w.release());
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "pass on to 2", "pass on to 3"))
        << "a second place during the turn would let two turns go before an arrival";
    EXPECT_FALSE(w.release());
    EXPECT_THAT(w.take(), ElementsAre("open"));
    w.fsm.on_granted();
    EXPECT_TRUE(w.release()) << "a new turn";
    EXPECT_THAT(w.take(), ElementsAre("grant 4", "pass on to 5"));
}

TEST(LocalQueueFsmTest, ATurnEndsWithItsTimeWhichCountsFromItsFirstGrant) {
    LocalWorld w({.holds_per_turn = 100, .turn = 1s});
    for (WaiterId id : {1, 2, 3}) w.fsm.arrive(id);
    w.fsm.on_granted();
    w.time += 999ms;
    EXPECT_TRUE(w.release());
    w.time += 1ms;
    EXPECT_FALSE(w.release());
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "pass on to 2", "open"));
}

TEST(LocalQueueFsmTest, WhatMayNotBePassedOnIsDeletedAndTheQueueGoesOn) {
    LocalWorld w({.holds_per_turn = 100, .turn = 1s});
    w.fsm.arrive(1);
    w.fsm.arrive(2);
    w.fsm.on_granted();
    w.may_pass_on = false;  // the lease is not fresh, or the former owner has something under way
    EXPECT_FALSE(w.release());
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "open"));
    w.fsm.on_granted();
    EXPECT_THAT(w.take(), ElementsAre("grant 2"));
}

TEST(LocalQueueFsmTest, ALossEndsTheTurn) {
    LocalWorld w({.holds_per_turn = 100, .turn = 1s});
    w.fsm.arrive(1);
    w.fsm.arrive(2);
    w.fsm.on_granted();
    w.fsm.on_hold_over();
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "open"));
}

// ---- a node that is kept --------------------------------------------------------------------------------------------

TEST(LocalQueueFsmTest, AKeptNodeIsTakenWithoutAPlace) {
    LocalWorld w({.keep_for = 1s});
    w.fsm.arrive(1);
    w.time += 10s;
    w.fsm.on_granted();
    EXPECT_TRUE(w.release());
    EXPECT_EQ(w.kept_until, w.time + 1s);
    EXPECT_FALSE(w.fsm.busy());
    w.fsm.arrive(2);
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "keep", "grant 2"));
    w.time += 900ms;
    EXPECT_TRUE(w.release());
    EXPECT_EQ(w.kept_until, w.time + 100ms) << "use renews nothing";
    EXPECT_TRUE(w.fsm.take_kept());
    EXPECT_TRUE(w.fsm.busy());
    w.time += 100ms;
    EXPECT_FALSE(w.release());
}

TEST(LocalQueueFsmTest, AnotherContenderEndsTheKeeping) {
    LocalWorld w({.keep_for = 1s});
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.release();
    w.fsm.on_doubt();
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "keep", "give up"));
    EXPECT_FALSE(w.fsm.take_kept());
    w.fsm.arrive(2);
    w.fsm.on_granted();
    w.fsm.on_doubt();  // during the hold: it is remembered
    EXPECT_FALSE(w.release());
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 2"));
}

TEST(LocalQueueFsmTest, AKeptNodeInDoubtIsGivenUpAndTheQueueIsAsked) {
    LocalWorld w({.keep_for = 1s});
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.release();
    w.may_take = MayTake::no;  // the last check is old, or the lease is not fresh
    w.fsm.arrive(2);
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "keep", "give up", "open"));
}

TEST(LocalQueueFsmTest, WhoeverComesBeforeItIsKnownWhetherOthersAreThereWaitsForThat) {
    for (const bool nobody : {true, false}) {
        LocalWorld w({.keep_for = 1s});
        w.fsm.arrive(1);
        w.fsm.on_granted();
        w.release();
        w.may_take = MayTake::asked;
        w.fsm.arrive(2);
        w.fsm.arrive(3);
        EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "keep"));
        EXPECT_FALSE(w.fsm.take_kept());
        EXPECT_TRUE(w.fsm.busy());
        w.may_take = MayTake::yes;
        nobody ? w.fsm.on_nobody_else() : w.fsm.on_doubt();
        if (nobody) {
            EXPECT_THAT(w.take(), ElementsAre("grant 2", "open"));
        } else {
            EXPECT_THAT(w.take(), ElementsAre("give up", "open"));
        }
    }
}

TEST(LocalQueueFsmTest, ATryDoesNotWaitForThat) {
    LocalWorld w({.keep_for = 1s});
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.release();
    w.may_take = MayTake::asked;
    EXPECT_FALSE(w.fsm.take_kept());
    EXPECT_FALSE(w.fsm.busy());
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "keep", "give up"));
}

TEST(LocalQueueFsmTest, AKeptNodeIsNotTakenAfterItsTime) {
    LocalWorld w({.keep_for = 1s});
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.release();
    w.time += 1s;
    EXPECT_FALSE(w.fsm.take_kept());
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "keep", "give up"));
}

TEST(LocalQueueFsmTest, AKeptNodeThatIsLostIsNotTaken) {
    LocalWorld w({.keep_for = 1s});
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.release();
    w.fsm.on_hold_over();
    w.fsm.arrive(2);
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "keep", "open"));
}

TEST(LocalQueueFsmTest, ANodeIsNotKeptWhileSomebodyHereWaits) {
    LocalWorld w({.keep_for = 1s});
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.fsm.arrive(2);
    EXPECT_FALSE(w.release());
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "open"));
}

// ---- no room for another node ---------------------------------------------------------------------------------------

TEST(LocalQueueFsmTest, AsLongAsANodeIsBeingDeletedThereWillBeRoom) {
    LocalWorld w;
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.release();
    w.fsm.arrive(2);
    w.fsm.on_refused(true);
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "open", "look later"));
    w.fsm.on_node_gone();
    EXPECT_THAT(w.take(), ElementsAre("open"));
    w.fsm.on_refused(true);
    EXPECT_THAT(w.take(), ElementsAre("refuse 2"));
}

TEST(LocalQueueFsmTest, ThereWillBeRoomWhenALostHoldIsGivenBack) {
    LocalWorld w;
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.fsm.on_hold_over();
    w.fsm.arrive(2);
    w.fsm.on_refused(true);
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "open", "look later"));
    EXPECT_TRUE(w.fsm.held()) << "it waits for that one";
    w.fsm.on_time_to_look();
    w.fsm.on_refused(true);
    EXPECT_THAT(w.take(), ElementsAre("open", "look later"));
    w.fsm.on_node_gone();
    EXPECT_THAT(w.take(), ElementsAre("open"));
    EXPECT_FALSE(w.fsm.held());
    w.fsm.on_granted();
    EXPECT_THAT(w.take(), ElementsAre("grant 2"));
}

TEST(LocalQueueFsmTest, ANodeThatATryHasLostMakesRoomToo) {
    LocalWorld w;
    w.fsm.begin_try();
    w.fsm.end_try(true);
    w.fsm.on_hold_over();
    w.fsm.arrive(1);
    w.fsm.on_refused(true);
    EXPECT_THAT(w.take(), ElementsAre("open", "look later"));
    w.fsm.on_node_gone();
    w.fsm.on_refused(true);
    EXPECT_THAT(w.take(), ElementsAre("open", "refuse 1"));
}

TEST(LocalQueueFsmTest, WhoeverLeavesTakesTheLackOfRoomAlong) {
    LocalWorld w;
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.fsm.arrive(2);
    w.fsm.on_refused(true);
    w.fsm.leave(2);
    w.take();
    w.fsm.arrive(3);
    EXPECT_THAT(w.take(), ElementsAre("open"));
}

TEST(LocalQueueFsmTest, WhoeverGetsTheNodeWaitsNoMoreWhenItIsTold) {
    LocalWorld w({.holds_per_turn = 2, .turn = 1h});
    w.fsm.arrive(1);
    w.fsm.on_granted();
    w.fsm.arrive(2);
    bool again = true;
    w.when_told = [&] {
        EXPECT_EQ(w.fsm.waiting(), 0u);
        w.fsm.arrive(3);
        again = w.fsm.take_over();  // at once; the turn is over
    };
    EXPECT_TRUE(w.release());
    EXPECT_FALSE(again);
    EXPECT_EQ(w.fsm.waiting(), 1u);
}

TEST(LocalQueueFsmTest, ANodeThatMayNotGoOnLeavesTheOrderAsItWas) {
    LocalWorld w({.holds_per_turn = 9, .turn = 1h});
    for (WaiterId id : {1, 2, 3}) w.fsm.arrive(id);
    w.fsm.on_granted();
    w.may_pass_on = false;
    EXPECT_FALSE(w.fsm.take_over());
    w.fsm.on_given_back();
    w.fsm.on_granted();
    EXPECT_THAT(w.take(), ElementsAre("open", "grant 1", "open", "grant 2"));
}

}  // namespace
}  // namespace zkrecipes::internal
