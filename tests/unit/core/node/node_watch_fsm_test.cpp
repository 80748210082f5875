// The watcher of one node: what it asks for, and what it tells, for every order of events.
#include "core/node/node_watch_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Plays the surroundings: notes what is asked and told.
class NodeWatchFsmTest : public ::testing::Test, protected NodeWatchPort {
protected:
    bool connected() const override { return up; }
    std::uint64_t random() override { return 0; }
    void sync(Ticket t) override { ask("sync", t); }
    bool watch(Ticket t) override {
        if (room) ask("watch", t);
        return room;
    }
    void unwatch() override { ++unwatched; }
    void start_timer(std::chrono::milliseconds delay) override {
        timer = true;
        delays.push_back(static_cast<int>(delay.count()));
    }
    void stop_timer() override { timer = false; }
    void refused(const char* why, int) override { complaints.emplace_back(why); }
    void tell(const SeenNode& node) override { told.push_back(node.exists ? node.data : "none"); }

    void ask(std::string what, Ticket t) {
        asked.push_back(std::move(what));
        ticket = t;
    }
    void read(const std::string& data, std::int64_t czxid, std::int64_t mzxid) {
        NodeStat stat;
        stat.czxid = czxid;
        stat.mzxid = mzxid;
        fsm.on_node(ticket, Rc::ok, data, stat);
    }
    void missing() { fsm.on_node(ticket, Rc::no_node, {}, {}); }
    void suspend() {
        up = false;
        fsm.on_suspended();
    }
    void connect(bool same_session) {
        up = true;
        fsm.on_connected(same_session);
    }

    bool up = true;
    bool room = true;
    bool timer = false;
    int unwatched = 0;
    Ticket ticket = 0;
    std::vector<std::string> asked, told, complaints;
    std::vector<int> delays;
    NodeWatchFsm fsm{*this};
};

TEST_F(NodeWatchFsmTest, OneReadWithAWatchForEachChange) {
    fsm.start();
    EXPECT_FALSE(fsm.is_watching());
    missing();
    EXPECT_TRUE(fsm.is_watching());
    fsm.on_fired(ticket);
    read("one", 5, 5);
    fsm.on_fired(ticket);
    read("two", 5, 6);
    fsm.on_fired(ticket);
    missing();
    fsm.on_fired(ticket);
    read("two", 9, 9);
    EXPECT_THAT(told, ElementsAre("none", "one", "two", "none", "two"));
    EXPECT_THAT(asked, ElementsAre("watch", "watch", "watch", "watch", "watch"));
}

TEST_F(NodeWatchFsmTest, NothingIsToldTwiceAndAChangeBackIsTold) {
    fsm.start();
    read("one", 5, 5);
    fsm.on_fired(ticket);  // of its access list, say
    read("one", 5, 5);
    fsm.on_fired(ticket);
    read("one", 5, 7);  // written again, the same
    EXPECT_THAT(told, ElementsAre("one", "one"));
}

TEST_F(NodeWatchFsmTest, AReconnectOfTheSameSessionCostsNothing) {
    fsm.start();
    read("one", 5, 5);
    suspend();
    connect(true);
    EXPECT_TRUE(fsm.is_watching());
    EXPECT_THAT(asked, ElementsAre("watch"));
    fsm.on_fired(ticket);  // what was missed
    EXPECT_THAT(asked, ElementsAre("watch", "watch"));
}

TEST_F(NodeWatchFsmTest, ANewSessionBeginsWithASyncWhichIsOwedUntilItWasAnswered) {  // H56
    fsm.start();
    read("one", 5, 5);
    unwatched = 0;
    suspend();
    fsm.on_session_lost();
    connect(false);
    EXPECT_GT(unwatched, 0) << "the watch of the former session would keep its room";
    fsm.on_synced(ticket, Rc::connection_loss);
    suspend();
    connect(true);
    fsm.on_synced(ticket, Rc::ok);
    read("one", 5, 5);
    fsm.on_fired(ticket);
    EXPECT_THAT(asked, ElementsAre("watch", "sync", "sync", "watch", "watch"));
    EXPECT_THAT(told, ElementsAre("one"));
}

TEST_F(NodeWatchFsmTest, AnAnswerOfAFormerConnectionChangesNothing) {  // H5, H61
    fsm.start();
    const Ticket old = ticket;
    suspend();
    connect(true);
    fsm.on_node(old, Rc::ok, "old", {});
    EXPECT_THAT(told, IsEmpty());
    read("one", 5, 5);
    const Ticket watched = ticket;
    fsm.on_session_lost();
    fsm.on_fired(watched);
    EXPECT_THAT(asked, ElementsAre("watch", "watch"));
}

TEST_F(NodeWatchFsmTest, BeforeTheFirstConnectItWaits) {  // H55
    up = false;
    fsm.start();
    EXPECT_THAT(asked, IsEmpty());
    connect(false);
    EXPECT_THAT(asked, ElementsAre("watch"));  // nothing was told that could be newer
}

TEST_F(NodeWatchFsmTest, ARefusalIsSaidAndTriedAgainMoreAndMoreRarely) {
    fsm.start();
    for (int i = 0; i < 8; ++i) {
        fsm.on_node(ticket, Rc::no_auth, {}, {});
        ASSERT_TRUE(timer);
        fsm.on_timer();
    }
    EXPECT_EQ(complaints.size(), 8u);
    EXPECT_THAT(delays, ElementsAre(50, 100, 200, 400, 800, 1600, 2500, 2500));
    read("one", 5, 5);
    EXPECT_THAT(told, ElementsAre("one"));
    EXPECT_FALSE(timer);
}

TEST_F(NodeWatchFsmTest, ASyncThatIsRefusedIsSaidTooAndOneThatIsLostIsNot) {
    fsm.start();
    read("one", 5, 5);
    fsm.on_session_lost();
    connect(false);
    fsm.on_synced(ticket, Rc::no_auth);
    EXPECT_EQ(complaints.size(), 1u);
    ASSERT_TRUE(timer);
    fsm.on_timer();
    fsm.on_synced(ticket, Rc::operation_timeout);
    EXPECT_EQ(complaints.size(), 1u);
    EXPECT_THAT(asked, ElementsAre("watch", "sync", "sync"));
}

TEST_F(NodeWatchFsmTest, ALostAnswerIsAskedForAgainWithoutAWordAndAReconnectDoesNotWaitForTheTimer) {
    fsm.start();
    fsm.on_node(ticket, Rc::operation_timeout, {}, {});
    EXPECT_THAT(complaints, IsEmpty());
    EXPECT_TRUE(timer);
    connect(true);
    EXPECT_FALSE(timer);
    EXPECT_THAT(asked, ElementsAre("watch", "watch"));
}

TEST_F(NodeWatchFsmTest, OverTheBudgetItTriesAgain) {
    room = false;
    fsm.start();
    EXPECT_EQ(complaints.size(), 1u);
    room = true;
    fsm.on_timer();
    read("one", 5, 5);
    EXPECT_THAT(told, ElementsAre("one"));
}

}  // namespace
}  // namespace zkrecipes::internal
