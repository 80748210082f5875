// The observer of a leadership: what it asks for, and what it tells, for every order of events.
#include "core/node/leader_watch_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kFirst = "_c_00000000-0000-4000-8000-000000000001-latch-0000000007";
const std::string kSecond = "_c_00000000-0000-4000-8000-000000000002-latch-0000000008";

/// Plays the surroundings: notes what is asked and told.
class LeaderWatchFsmTest : public ::testing::Test, protected LeaderWatchPort {
protected:
    bool connected() const override { return up; }
    std::uint64_t random() override { return 0; }
    void sync(Ticket t) override { ask("sync", t); }
    void list(Ticket t) override { ask("list", t); }
    bool watch_leader(Ticket t, const std::string& name) override {
        if (room) ask("watch " + name.substr(name.size() - 2), t);
        return room;
    }
    bool watch_directory(Ticket t) override {
        if (room) ask("watch directory", t);
        return room;
    }
    void unwatch() override { ++unwatched; }
    void start_timer(std::chrono::milliseconds delay) override {
        timer = true;
        delays.push_back(static_cast<int>(delay.count()));
    }
    void stop_timer() override { timer = false; }
    void refused(const char* why, int) override { complaints.emplace_back(why); }
    void tell(const SeenLeader& leader) override {
        told.push_back(leader.node.empty() ? "nobody" : leader.readable ? leader.data : "unreadable");
    }

    void ask(std::string what, Ticket t) {
        asked.push_back(std::move(what));
        ticket = t;
    }
    static NodeStat stat(std::int64_t zxid) {
        NodeStat out;
        out.czxid = out.pzxid = zxid;
        return out;
    }
    void listed(std::vector<std::string> names, std::int64_t pzxid = 1) {
        fsm.on_children(ticket, Rc::ok, names, stat(pzxid));
    }
    void missing() { fsm.on_children(ticket, Rc::no_node, {}, {}); }
    void leader(const std::string& id, std::int64_t czxid) { fsm.on_leader(ticket, Rc::ok, id, stat(czxid)); }
    void suspend() {
        up = false;
        fsm.on_suspended();
    }
    void connect(bool same_session) {
        up = true;
        fsm.on_connected(same_session);
    }
    void follow_first() {
        fsm.start();
        listed({kSecond, kFirst});
        leader("one", 7);
        asked.clear();
    }

    bool up = true;
    bool room = true;
    bool timer = false;
    int unwatched = 0;
    Ticket ticket = 0;
    std::vector<std::string> asked, told, complaints;
    std::vector<int> delays;
    LeaderWatchFsm fsm{*this};
};

TEST_F(LeaderWatchFsmTest, TwoReadsAndOneWatchForEachLeader) {
    fsm.start();
    listed({kSecond, "foreign", kFirst});
    EXPECT_THAT(told, IsEmpty());
    leader("one", 7);
    EXPECT_TRUE(fsm.is_watching());
    fsm.on_fired(ticket);
    listed({kSecond});
    leader("two", 8);
    EXPECT_THAT(asked, ElementsAre("list", "watch 07", "list", "watch 08"));
    EXPECT_THAT(told, ElementsAre("one", "two"));
}

TEST_F(LeaderWatchFsmTest, WhereNobodyLeadsTheDirectoryIsWatchedAlsoIfItIsMissing) {
    fsm.start();
    missing();
    fsm.on_directory(ticket, Rc::no_node, {});
    EXPECT_THAT(told, ElementsAre("nobody"));
    fsm.on_fired(ticket);  // it was made
    listed({}, 5);
    fsm.on_directory(ticket, Rc::ok, stat(5));
    EXPECT_THAT(told, ElementsAre("nobody"));  // nothing new
    fsm.on_fired(ticket);
    listed({kFirst}, 7);
    leader("one", 7);
    EXPECT_THAT(told, ElementsAre("nobody", "one"));
    EXPECT_THAT(asked, ElementsAre("list", "watch directory", "list", "watch directory", "list", "watch 07"));
}

TEST_F(LeaderWatchFsmTest, WhoeverCameBetweenTheListAndTheWatchIsSeen) {
    fsm.start();
    listed({}, 5);
    fsm.on_directory(ticket, Rc::ok, stat(6));
    EXPECT_THAT(told, IsEmpty());
    listed({kFirst}, 6);
    fsm.on_leader(ticket, Rc::no_node, {}, {});  // and whoever has gone in between is skipped (H66)
    EXPECT_THAT(told, IsEmpty());
    missing();
    fsm.on_directory(ticket, Rc::ok, stat(9));  // the directory is there after all
    EXPECT_THAT(told, IsEmpty());
    listed({kSecond}, 10);
    leader("two", 8);
    EXPECT_THAT(told, ElementsAre("two"));
}

TEST_F(LeaderWatchFsmTest, ALeaderThatMayNotBeReadIsToldAndLookedAtAgain) {
    fsm.start();
    for (int i = 0; i < 2; ++i) {
        listed({kFirst});
        fsm.on_leader(ticket, Rc::no_auth, {}, {});
        ASSERT_TRUE(timer);
        fsm.on_timer();
    }
    EXPECT_THAT(told, ElementsAre("unreadable"));
    listed({kFirst});
    leader("one", 7);
    listed({kSecond});
    EXPECT_THAT(told, ElementsAre("unreadable", "one"));
}

TEST_F(LeaderWatchFsmTest, AReconnectOfTheSameSessionCostsNothing) {
    follow_first();
    suspend();
    connect(true);
    EXPECT_TRUE(fsm.is_watching());
    EXPECT_THAT(asked, IsEmpty());
    fsm.on_fired(ticket);  // what was missed
    EXPECT_THAT(asked, ElementsAre("list"));
}

TEST_F(LeaderWatchFsmTest, ANewSessionBeginsWithASyncSoThatNothingOldIsTold) {  // H56
    follow_first();
    unwatched = 0;
    suspend();
    fsm.on_session_lost();
    connect(false);
    EXPECT_GT(unwatched, 0) << "the watch of the former session would keep its room";
    EXPECT_THAT(asked, ElementsAre("sync"));
    fsm.on_synced(ticket, Rc::ok);
    listed({kFirst, kSecond});
    leader("one", 7);
    EXPECT_THAT(told, ElementsAre("one"));  // not a second time
    fsm.on_fired(ticket);
    EXPECT_THAT(asked, ElementsAre("sync", "list", "watch 07", "list"));
}

TEST_F(LeaderWatchFsmTest, TheSyncIsOwedUntilItWasAnswered) {
    follow_first();
    fsm.on_session_lost();
    connect(false);
    fsm.on_synced(ticket, Rc::connection_loss);
    suspend();
    connect(true);
    EXPECT_THAT(asked, ElementsAre("sync", "sync"));
}

TEST_F(LeaderWatchFsmTest, AnAnswerOfAFormerConnectionChangesNothing) {  // H5, H61
    fsm.start();
    const Ticket old = ticket;
    suspend();
    connect(true);
    fsm.on_children(old, Rc::ok, {kFirst}, stat(1));
    fsm.on_leader(old, Rc::ok, "one", stat(7));
    EXPECT_THAT(told, IsEmpty());
    listed({kSecond});
    const Ticket watched = ticket;
    leader("two", 8);
    fsm.on_session_lost();
    fsm.on_fired(watched);
    EXPECT_THAT(asked, ElementsAre("list", "list", "watch 08"));
    EXPECT_THAT(told, ElementsAre("two"));
}

TEST_F(LeaderWatchFsmTest, ChangedDataOfTheSameLeaderIsNoNewLeader) {
    follow_first();
    fsm.on_fired(ticket);
    listed({kFirst});
    leader("__REVOKE__", 7);
    EXPECT_TRUE(fsm.is_watching());
    EXPECT_THAT(told, ElementsAre("one"));
}

TEST_F(LeaderWatchFsmTest, BeforeTheFirstConnectItWaits) {  // H55
    up = false;
    fsm.start();
    EXPECT_THAT(asked, IsEmpty());
    connect(false);
    EXPECT_THAT(asked, ElementsAre("list"));  // nothing was told that could be newer
}

TEST_F(LeaderWatchFsmTest, ARefusalIsSaidAndTriedAgainMoreAndMoreRarely) {
    fsm.start();
    for (int i = 0; i < 9; ++i) {
        fsm.on_children(ticket, Rc::no_auth, {}, {});
        ASSERT_TRUE(timer);
        fsm.on_timer();
    }
    EXPECT_EQ(complaints.size(), 9u);
    EXPECT_THAT(delays, ElementsAre(50, 100, 200, 400, 800, 1600, 2500, 2500, 2500));
    listed({kFirst});
    leader("one", 7);
    EXPECT_THAT(told, ElementsAre("one"));
    EXPECT_FALSE(timer);
}

TEST_F(LeaderWatchFsmTest, ALostAnswerIsAskedForAgainWithoutAWord) {
    fsm.start();
    fsm.on_children(ticket, Rc::operation_timeout, {}, {});
    EXPECT_THAT(complaints, IsEmpty());
    EXPECT_TRUE(timer);
    connect(true);  // which does not wait for the timer
    EXPECT_FALSE(timer);
    EXPECT_THAT(asked, ElementsAre("list", "list"));
}

TEST_F(LeaderWatchFsmTest, OverTheBudgetItTriesAgain) {
    room = false;
    fsm.start();
    listed({kFirst});
    EXPECT_EQ(complaints.size(), 1u);
    room = true;
    fsm.on_timer();
    listed({kFirst});
    leader("one", 7);
    EXPECT_THAT(told, ElementsAre("one"));
}

}  // namespace
}  // namespace zkrecipes::internal
