// A node that is kept there: what it asks for, in every order of events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/core/node/persistent_node_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = PersistentNodeState;

class PersistentNodeFsmTest : public ::testing::Test {
protected:
    /// Answers requests and fires timers until so many complaints were made.
    void run_until_complaints(std::size_t count) {
        for (int i = 0; i < 12 && w.complaints.size() < count; ++i) {
            while (!w.queue.empty()) w.answer_one();
            if (std::exchange(w.timer, false)) w.fsm.on_timer();
        }
    }

    PersistentNodeWorld w;
};

TEST_F(PersistentNodeFsmTest, ACreateAndARead) {
    w.start();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read"));
    EXPECT_THAT(w.states, ElementsAre("present"));
    EXPECT_TRUE(w.fsm.settled());
    w.fsm.close();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "give back"));
    EXPECT_EQ(w.finishes, 1);
    EXPECT_THAT(w.states, ElementsAre("present", "closed"));
}

TEST_F(PersistentNodeFsmTest, WhateverIsGoneIsMadeAgain) {
    w.parent = false;
    w.start();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "parent", "create one", "read"));
    w.sent.clear();
    w.parent = false;
    w.vanish();
    w.run();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "parent", "create one", "read"));
    EXPECT_THAT(w.states, ElementsAre("present", "missing", "present"));
}

TEST_F(PersistentNodeFsmTest, ANewSessionMakesItAgainAndTheNodeOfTheFormerOneIsDeleted) {
    w.start();
    w.sent.clear();
    w.lingering = true;
    w.lose_session([] {});
    w.run();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "delete", "create one", "read"));
    EXPECT_EQ(w.node->owner, 2);
    EXPECT_THAT(w.states, ElementsAre("present", "missing", "present"));
}

TEST_F(PersistentNodeFsmTest, ANodeOfAnotherSessionIsWaitedFor) {
    w.node = {99, "theirs", 5};
    w.start();
    EXPECT_THAT(w.states, ElementsAre("taken"));
    EXPECT_FALSE(w.fsm.settled());
    w.write("theirs too");
    w.fsm.set_data("two");
    w.run();
    EXPECT_EQ(w.node->data, "theirs too");
    w.lose_connection([] {});
    w.run();
    EXPECT_THAT(w.states, ElementsAre("taken"));
    w.end_session_of(99);
    w.run();
    EXPECT_EQ(w.node->owner, 1);
    EXPECT_EQ(w.node->data, "two");
    EXPECT_THAT(w.states, ElementsAre("taken", "missing", "present"));
    EXPECT_THAT(w.notes, ElementsAre("a node of another session has this name: waiting until it is gone"));
}

TEST_F(PersistentNodeFsmTest, APersistentNodeOfTheNameIsWaitedForAndToldSo) {
    w.node = {0, "a directory", 5};
    w.start();
    EXPECT_THAT(w.states, ElementsAre("taken"));
    EXPECT_THAT(w.notes, ElementsAre("a persistent node has this name: waiting until somebody deletes it"));
}

TEST_F(PersistentNodeFsmTest, AParentThatAnotherMadeMeanwhileIsAsGood) {
    w.parent = false;
    w.fsm.start();
    while (w.sent.back() != "parent") {
        ASSERT_FALSE(w.queue.empty());
        w.answer_one();
    }
    w.parent = true;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_THAT(w.complaints, IsEmpty());
}

// Found by the simulation: workload nodes, seed 20450.
TEST_F(PersistentNodeFsmTest, WhatAnotherSessionMadeWhileWeWereAwayIsNotWritten) {
    w.start();
    w.meanwhile = [this] {
        w.vanish();
        w.node = {99, "theirs", 0};
        w.fsm.set_data("two");
    };
    w.lose_connection([] {});
    w.run();
    EXPECT_EQ(w.node->data, "theirs");
    EXPECT_THAT(w.states, ElementsAre("present", "taken"));
}

TEST_F(PersistentNodeFsmTest, DataThatMetTheNodeOfAnotherSessionAreNotTakenForOurs) {
    w.start();
    w.fsm.set_data("two");
    w.node = PersistentNodeWorld::Node{99, "theirs", 0};  // of the same version
    ASSERT_THAT(w.queue, SizeIs(1));
    w.answer_one();
    EXPECT_FALSE(w.fsm.settled()) << "the watch has not told yet";
    w.run();
    EXPECT_FALSE(w.fsm.settled());
    EXPECT_THAT(w.states, ElementsAre("present", "taken"));
}

TEST_F(PersistentNodeFsmTest, ACloseLeavesTheNodeOfAnotherSessionAlone) {
    w.node = {99, "theirs", 0};
    w.start();
    w.fsm.close();
    EXPECT_THAT(w.sent, ElementsAre("create one", "read"));
    EXPECT_EQ(w.finishes, 1);
}

TEST_F(PersistentNodeFsmTest, TheLatestDataAreWrittenAndThoseOfOthersStayUntilThen) {
    w.start();
    w.sent.clear();
    w.fsm.set_data("two");
    w.fsm.set_data("three");
    w.fsm.set_data("four");
    EXPECT_FALSE(w.fsm.settled());
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_EQ(w.node->data, "four");
    EXPECT_THAT(w.sent, ElementsAre("set two", "read", "set four", "read"));
    w.write("an operator's");
    w.run();
    EXPECT_EQ(w.node->data, "an operator's");
    w.fsm.set_data("five");
    w.run();
    EXPECT_EQ(w.node->data, "five");
    w.vanish();
    w.run();
    EXPECT_EQ(w.node->data, "five");
}

TEST_F(PersistentNodeFsmTest, ARefusalIsToldAndTriedAgainMoreAndMoreRarely) {
    w.rc_of_create = Rc::no_auth;
    w.fsm.start();
    for (int i = 0; i < 7; ++i) {
        while (!w.queue.empty()) w.answer_one();
        EXPECT_EQ(w.fsm.refusal(), Errc::no_permission);
        w.timer = false;
        w.fsm.on_timer();
    }
    EXPECT_THAT(w.delays, ElementsAre(50, 100, 200, 400, 800, 1600, 2500));
    w.rc_of_create = Rc::ok;
    w.run();
    EXPECT_THAT(w.states, ElementsAre("refused", "present"));
}

TEST_F(PersistentNodeFsmTest, OnlySoManyFormerSessionsAreRemembered) {
    w.start();
    for (int i = 0; i < 17; ++i) {
        w.lose_session([] {});
        w.run();
    }
    ASSERT_TRUE(w.fsm.settled());
    for (const auto& [owner, state] : {std::pair<std::int64_t, std::string>(2, "present"), {1, "taken"}}) {
        w.vanish();
        w.node = {owner, "of a former session", 0};
        w.run();
        EXPECT_EQ(w.states.back(), state) << "the session " << owner;
    }
}

TEST_F(PersistentNodeFsmTest, ARefusalAfterASuccessIsTriedAgainAsSoonAsTheFirst) {
    w.rc_of_create = Rc::no_auth;
    w.fsm.start();
    run_until_complaints(3);
    w.rc_of_create = Rc::ok;
    w.run();
    ASSERT_TRUE(w.fsm.settled());
    w.delays.clear();
    w.rc_of_set = Rc::no_auth;
    w.fsm.set_data("two");
    run_until_complaints(w.complaints.size() + 1);
    EXPECT_THAT(w.delays, ElementsAre(50));
}

TEST_F(PersistentNodeFsmTest, ANodeOfOursIsPresentBeforeItsLatestDataAreWritten) {
    w.fsm.start();
    w.queue.front().execute();  // the answer is lost
    w.lose_connection([] {});
    w.fsm.set_data("two");
    w.answer_one();  // a create, that is answered "exists"
    w.answer_one();  // a read
    EXPECT_THAT(w.states, ElementsAre("missing", "present"));
    EXPECT_FALSE(w.fsm.settled());
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_EQ(w.node->data, "two");
}

TEST_F(PersistentNodeFsmTest, ACloseWhileItIsRefusedEndsTheAttempts) {
    w.room = false;
    w.fsm.start();
    ASSERT_TRUE(w.timer);
    w.fsm.close();
    EXPECT_FALSE(w.timer);
    EXPECT_EQ(w.finishes, 1);
}

TEST_F(PersistentNodeFsmTest, AReconnectThatComesBeforeTheAnswersOfTheLastConnectionLeavesOneWatch) {
    w.fsm.start();
    w.fsm.on_connected(true);  // the client has changed servers without a word
    EXPECT_THAT(w.sent, ElementsAre("create one", "read", "create one", "read"));
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_TRUE(w.watched.has_value());
}

TEST_F(PersistentNodeFsmTest, DataThatMayNotBeWrittenAreARefusalToo) {
    w.start();
    w.rc_of_set = Rc::no_auth;
    w.fsm.set_data("two");
    run_until_complaints(3);
    EXPECT_THAT(w.states, ElementsAre("present", "refused"));
    w.rc_of_set = Rc::ok;
    w.run();
    EXPECT_THAT(w.states, ElementsAre("present", "refused", "present"));
    EXPECT_EQ(w.node->data, "two");
}

TEST_F(PersistentNodeFsmTest, TheAnswerToASetEndsARefusalWithoutTheNextRead) {
    const auto next = [this](const std::string& what) {
        ASSERT_FALSE(w.queue.empty());
        const auto request = std::move(w.queue.front());
        w.queue.pop_front();
        ASSERT_EQ(request.what, what);
        request.execute()();
    };
    w.start();
    w.rc_of_set = Rc::no_auth;
    w.fsm.set_data("two");
    run_until_complaints(1);
    ASSERT_EQ(w.states.back(), "refused");
    w.rc_of_set = Rc::ok;
    next("read");
    ASSERT_EQ(w.states.back(), "refused");
    next("set two");
    EXPECT_EQ(w.states.back(), "present");
    EXPECT_TRUE(w.fsm.settled());
}

TEST_F(PersistentNodeFsmTest, ANodeOfTheFormerSessionThatMayNotBeDeletedIsARefusalToo) {
    w.start();
    w.rc_of_remove = Rc::no_auth;
    w.lingering = true;
    w.lose_session([] {});
    run_until_complaints(3);
    EXPECT_THAT(w.complaints, SizeIs(3));
    EXPECT_EQ(w.fsm.refusal(), Errc::no_permission);
    w.rc_of_remove = Rc::ok;
    w.run();
    EXPECT_EQ(w.node->owner, 2);
    EXPECT_EQ(w.states.back(), "present");
}

TEST_F(PersistentNodeFsmTest, AParentThatVanishesEachTimeIsARefusal) {
    w.parent = false;
    w.parent_vanishes = true;
    w.fsm.start();
    while (w.complaints.empty()) {
        ASSERT_FALSE(w.queue.empty());
        w.answer_one();
    }
    EXPECT_EQ(w.fsm.refusal(), Errc::no_parent);
    w.parent_vanishes = false;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
}

TEST_F(PersistentNodeFsmTest, AnAncestorThatVanishesBeforeTheParentIsMadeIsMadeAgainWithoutAPause) {
    w.parent = false;
    w.rc_of_parent = Rc::no_node;
    w.fsm.start();
    while (w.sent.size() < 8) {
        ASSERT_FALSE(w.queue.empty());
        w.answer_one();
    }
    EXPECT_THAT(w.sent,
                ElementsAre("create one", "read", "parent", "create one", "read", "parent", "create one", "read"));
    EXPECT_THAT(w.complaints, IsEmpty());
    w.rc_of_parent = Rc::ok;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
}

TEST_F(PersistentNodeFsmTest, AParentThatMayNotBeMadeIsARefusal) {
    w.parent = false;
    w.rc_of_parent = Rc::no_auth;
    w.fsm.start();
    run_until_complaints(1);
    EXPECT_EQ(w.fsm.refusal(), Errc::no_permission);
    EXPECT_THAT(w.complaints, ElementsAre("making the parent was refused"));
    w.rc_of_parent = Rc::ok;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
}

TEST_F(PersistentNodeFsmTest, AParentThatWasThereWhenAnotherHadTheNameHasNotVanishedEachTime) {
    w.start();
    for (int i = 0; i < 20; ++i) {
        w.parent = false;
        w.vanish();  // an operator deletes the directory, and another session is faster
        w.node = PersistentNodeWorld::Node{99, "theirs", 0};
        w.run();
        ASSERT_EQ(w.states.back(), "taken");
    }
    EXPECT_THAT(w.complaints, IsEmpty());
}

TEST_F(PersistentNodeFsmTest, OverTheBudgetItIsRefusedAndTriedAgain) {
    w.room = false;
    w.fsm.start();
    EXPECT_EQ(w.fsm.refusal(), Errc::budget_exceeded);
    w.room = true;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
}

TEST_F(PersistentNodeFsmTest, WithoutRoomForAWatchItIsRefusedAndTriedAgain) {
    w.watch_room = false;
    w.fsm.start();
    w.answer_one();
    EXPECT_EQ(w.fsm.refusal(), Errc::budget_exceeded);
    EXPECT_FALSE(w.fsm.settled());
    w.watch_room = true;
    w.run();
    EXPECT_TRUE(w.fsm.settled());
    EXPECT_TRUE(w.watched.has_value());
}

TEST_F(PersistentNodeFsmTest, ADeletionWhileNobodyIsConnectedIsSeenAfterwards) {
    w.start();
    w.meanwhile = [this] { w.vanish(); };
    w.lose_connection([] {});
    w.run();
    EXPECT_TRUE(w.node);
    EXPECT_TRUE(w.fsm.settled());
}

}  // namespace
}  // namespace zkrecipes::internal
