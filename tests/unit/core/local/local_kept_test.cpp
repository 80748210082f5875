// A node that stays without a holder: who gets it, and when it is given back.
#include <gmock/gmock.h>

#include "unit/core/local/local_queue_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using LocalKeptTest = LocalQueueTest;

TEST_F(LocalKeptTest, AKeptLockIsAcquiredAgainWithoutARequest) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    EXPECT_TRUE(nodes.contains(node));
    asked.clear();
    ask(1);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants.front().node(), node);
    EXPECT_THAT(asked, IsEmpty());
    release_first();
    EXPECT_THAT(asked, IsEmpty());
    for (int i = 0; i < 12; ++i) {
        runtime->advance(1s);
        serve();
    }
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalKeptTest, AKeptLockIsGivenBackWhenAnotherClientWantsIt) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    put("/l/_c_00000000-0000-4000-8000-00000000000f-lock-0000000099", "", 0x999);
    serve();
    EXPECT_FALSE(nodes.contains(node));
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalKeptTest, AContenderThatCameDuringAHoldEndsTheKeeping) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    ask(1);
    ASSERT_EQ(grants.front().node(), node);
    put("/l/_c_00000000-0000-4000-8000-00000000000f-lock-0000000099", "", 0x999);
    serve();
    EXPECT_TRUE(grants.front().held());
    release_first();
    EXPECT_FALSE(nodes.contains(node));
}

TEST_F(LocalKeptTest, AKeptLockIsNotTakenBeforeItIsKnownThatNobodyElseIsThere) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    grants.clear();
    runtime->run();  // the watch is on its way
    mutex->acquire_async(Deadline::never(), {},
                         [this](AcquireResult result) { grants.push_back(std::move(result.value)); });
    runtime->run();
    EXPECT_TRUE(grants.empty());
    put("/l/_c_00000000-0000-4000-8000-000000000009-lock-0000000009", "", 0x999);
    serve();
    ASSERT_TRUE(grants.empty() || grants.front().node() != node);
    EXPECT_FALSE(nodes.contains(node));
}

TEST_F(LocalKeptTest, WhoeverComesAtOnceGetsTheKeptLockWhenItIsKnownThatNobodyElseIsThere) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    grants.clear();
    asked.clear();
    ask(1);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_EQ(grants.front().node(), node);
    EXPECT_THAT(asked, Not(Contains(HasSubstr("create"))));
}

TEST_F(LocalKeptTest, AKeptLockIsGivenBackWhenTheConnectionBreaks) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    break_connection();
    serve();
    EXPECT_FALSE(nodes.contains(node));
}

TEST_F(LocalKeptTest, AKeptNodeThatAnOperatorDeletedIsNotTaken) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    erase(node);
    ask(1);
    ASSERT_EQ(grants.size(), 1u);
    EXPECT_NE(grants.front().node(), node);
    EXPECT_TRUE(nodes.contains(grants.front().node()));
}

TEST_F(LocalKeptTest, AKeptLockIsGivenBackWhenNobodyHereCanTakeItAnyMore) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    runtime->while_running([this] { mutex.reset(); });
    serve();
    EXPECT_FALSE(nodes.contains(node));
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalKeptTest, TheTimeOfALostNodeIsNotThatOfTheNext) {
    make_mutex(keeping(10s));
    ask(1);
    release_first();
    for (int i = 0; i < 5; ++i) {
        if (i == 3) nodes.erase("/l/" + children("/l").front());  // no event comes: a check finds that it is gone
        runtime->advance(1s);
        serve();
    }
    ask(1);
    ASSERT_EQ(grants.size(), 1u);
    const std::string node = grants.front().node();
    release_first();
    for (int i = 0; i < 9; ++i) {
        runtime->advance(1s);
        serve();
    }
    EXPECT_TRUE(nodes.contains(node));
    runtime->advance(2s);
    serve();
    EXPECT_EQ(nodes_of_lock(), 0u);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalKeptTest, AnOnlyNodeThatIsAnotherClientsIsAContender) {
    make_mutex(keeping(10s));
    ask(1);
    const std::string node = grants.front().node();
    grants.clear();
    runtime->run();     // the watch is on its way
    nodes.erase(node);  // by an operator, and no event has come yet
    put("/l/_c_00000000-0000-4000-8000-00000000000f-lock-0000000099", "", 0x999);
    asked.clear();
    serve();
    EXPECT_THAT(asked, Contains("remove " + node));
}

TEST_F(LocalKeptTest, WithoutItsDirectoryNothingIsKeptNorWatched) {
    make_mutex(keeping(10s));
    ask(1);
    nodes.erase(grants.front().node());  // by an operator, and no event has come yet
    nodes.erase("/l");
    release_first();
    runtime->while_running([this] { mutex.reset(); });
    EXPECT_EQ(leftovers(), "");
    put("/l");
    serve();
}

TEST_F(LocalKeptTest, AGrantToATryEndsWhatTheSessionHadBefore) {
    for (const bool keeps : {true, false}) {
        make_mutex(keeps ? keeping(10s) : LockOptions{});
        const auto call = [this](Deadline deadline) {
            mutex->acquire_async(deadline, {},
                                 [this](AcquireResult result) { grants.push_back(std::move(result.value)); });
            runtime->run();
        };
        call(Deadline::passed());  // its list is on its way
        call(Deadline::never());
        answer(client().take());  // so it creates a node behind that of the other call
        runtime->run();
        while (grants.empty()) {
            answer(client().take());
            runtime->run();
        }
        Grant first = std::move(grants.front());
        grants.clear();
        const std::string node = first.node();
        if (keeps) {
            first.release();
            runtime->run();
        }
        nodes.erase(node);  // by an operator, and no event comes
        serve();
        ASSERT_EQ(grants.size(), 1u);
        EXPECT_NE(grants.front().node(), node);
        EXPECT_FALSE(first.held());
        ask(1);
        EXPECT_EQ(grants.size(), 1u) << "it waits";
        EXPECT_TRUE(grants.front().held());
        release_first();
        EXPECT_EQ(grants.size(), 1u);
        grants.clear();
        first.release();
        serve();
        runtime->while_running([this] { mutex.reset(); });
        serve();
        EXPECT_EQ(nodes_of_lock(), 0u);
        EXPECT_EQ(leftovers(), "");
    }
}

TEST_F(LocalKeptTest, AKeptNodeThatAnotherClientAsksForIsGivenBack) {
    for (const bool is_watched : {true, false}) {
        make_mutex(keeping(10s));
        ask(1);
        const std::string node = grants.front().node();
        release_first();
        if (is_watched) {
            runtime->advance(600ms);
            serve();
        }
        write(node, std::string(internal::kRevocationRequest));
        runtime->advance(600ms);
        serve();
        EXPECT_FALSE(nodes.contains(node));
    }
    EXPECT_EQ(leftovers(), "");
}

TEST_F(LocalKeptTest, AKeptNodeThatIsGivenBackMakesRoomForAnother) {
    ends_in_the_middle = true;
    make_mutex(keeping(10s));
    leave_room_for_one_node();  // which is kept
    ask(1);
    const std::string node = grants.front().node();
    release_first();
    const std::string other = "/l/_c_00000000-0000-4000-8000-00000000000f-lock-0000000099";
    put(other, "", 0x999);
    runtime->run();  // the delete is on its way
    ask(1);
    EXPECT_FALSE(nodes.contains(node));
    erase(other);
    serve();
    EXPECT_EQ(grants.size(), 1u);
    EXPECT_EQ(answers.back(), "granted");
}

}  // namespace
}  // namespace zkrecipes::testing
