// The watcher of a group: what it asks for, and what it tells, for every order of events.
#include "core/node/group_watch_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Plays the surroundings: notes what is asked and told.
class GroupWatchFsmTest : public ::testing::Test, protected GroupWatchPort {
protected:
    bool connected() const override { return up; }
    std::uint64_t random() override { return 0; }
    void sync(Ticket t) override { ask("sync", t); }
    bool watch_directory(Ticket t) override {
        if (room) ask("list", t);
        return room;
    }
    bool watch_member(Ticket t, const std::string& name) override {
        if (room) ask(name, t);
        return room;
    }
    void unwatch_member(const std::string& name) override { unwatched.push_back(name); }
    void unwatch_all() override { ++unwatched_all; }
    void start_timer(std::chrono::milliseconds delay) override {
        timer = true;
        last_delay = delay;
    }
    void stop_timer() override { timer = false; }
    void refused(const char* why, int) override { complaints.emplace_back(why); }
    void tell(const SeenGroup& group) override {
        std::string line;
        for (const auto& [name, member] : group) line += (line.empty() ? "" : " ") + name + "=" + member.data;
        told.push_back(line);
    }

    void ask(std::string what, Ticket t) {
        asked.push_back(std::move(what));
        ticket = t;
    }
    void listed(const std::vector<std::string>& names) { fsm.on_directory(ticket, Rc::ok, names); }
    void read(const std::string& name, const std::string& data, std::int64_t mzxid = 1) {
        NodeStat stat;
        stat.czxid = 1;
        stat.mzxid = mzxid;
        fsm.on_member(ticket, name, Rc::ok, data, stat);
    }
    void directory_fires() { fsm.on_directory_fired(ticket); }
    void fires(const std::string& name, WatchEventType type) { fsm.on_member_fired(ticket, name, type); }
    void begin() {
        fsm.start();
        listed({"a", "b"});
        read("a", "1");
        read("b", "2");
        asked.clear();
    }
    void suspend() { up = false; }
    void connect(bool same_session) {
        up = true;
        fsm.on_connected(same_session);
    }
    void timer_rings() {
        ASSERT_TRUE(std::exchange(timer, false));
        fsm.on_timer();
    }

    std::chrono::milliseconds last_delay{0};
    bool up = true, room = true, timer = false;
    int unwatched_all = 0;
    Ticket ticket = 0;
    std::vector<std::string> asked, told, unwatched, complaints;
    GroupWatchFsm fsm{*this};
};

TEST_F(GroupWatchFsmTest, AListAndOneReadForEachAndThenWhatIsNew) {
    fsm.start();
    listed({"b", "a"});
    EXPECT_THAT(told, IsEmpty());
    read("a", "1");
    EXPECT_THAT(told, IsEmpty());  // never half of it
    read("b", "2");
    directory_fires();
    listed({"a", "b", "c"});
    read("c", "3");
    fires("a", WatchEventType::changed);
    read("a", "4", 2);
    directory_fires();
    fires("b", WatchEventType::deleted);
    listed({"a", "c"});
    EXPECT_THAT(asked, ElementsAre("list", "a", "b", "list", "c", "a", "list"));
    EXPECT_THAT(told, ElementsAre("a=1 b=2", "a=1 b=2 c=3", "a=4 b=2 c=3", "a=4 c=3"));
    EXPECT_THAT(unwatched, IsEmpty());
}

TEST_F(GroupWatchFsmTest, AMissingDirectoryIsAnEmptyGroup) {
    fsm.start();
    fsm.on_directory(ticket, Rc::no_node, {});
    EXPECT_THAT(told, ElementsAre(""));
    directory_fires();
    listed({});
    EXPECT_THAT(told, ElementsAre(""));  // nothing new
}

TEST_F(GroupWatchFsmTest, WhoGoesBeforeItIsReadIsNotTold) {
    fsm.start();
    listed({"a", "b"});
    fsm.on_member(ticket, "b", Rc::no_node, {}, {});
    read("a", "1");
    EXPECT_THAT(told, ElementsAre("a=1"));
    directory_fires();
    listed({"a", "b"});  // it was made again
    directory_fires();   // and has gone while it is read
    listed({"a"});
    EXPECT_THAT(unwatched, ElementsAre("b"));
    read("b", "2");  // which nobody waits for any more
    directory_fires();
    listed({"a", "c"});
    read("c", "3");
    EXPECT_THAT(told, ElementsAre("a=1", "a=1 c=3"));
}

TEST_F(GroupWatchFsmTest, AReconnectOfTheSameSessionCostsNothing) {
    begin();
    suspend();
    connect(true);
    EXPECT_THAT(asked, IsEmpty());
    fires("a", WatchEventType::deleted);  // what was missed
    EXPECT_THAT(told, ElementsAre("a=1 b=2", "b=2"));
}

TEST_F(GroupWatchFsmTest, WhatWasLostIsAskedForAgainAndNothingElse) {
    fsm.start();
    listed({"a", "b"});
    read("a", "1");
    suspend();
    fsm.on_member(ticket, "b", Rc::connection_loss, {}, {});
    connect(true);
    EXPECT_FALSE(timer);
    EXPECT_THAT(asked, ElementsAre("list", "a", "b", "b"));
    read("b", "2");
    EXPECT_THAT(told, ElementsAre("a=1 b=2"));
    EXPECT_THAT(complaints, IsEmpty());
}

TEST_F(GroupWatchFsmTest, ANewSessionBeginsWithASyncAndTellsOnlyWhatIsNew) {  // H56
    begin();
    const Ticket former = ticket;
    unwatched_all = 0;
    suspend();
    fsm.on_session_lost();
    connect(false);
    EXPECT_GT(unwatched_all, 0) << "those of the former session would keep their room";
    fsm.on_synced(ticket, Rc::connection_loss);
    timer_rings();
    EXPECT_THAT(asked, ElementsAre("sync", "sync"));
    fsm.on_synced(ticket, Rc::ok);
    fsm.on_member_fired(former, "a", WatchEventType::deleted);
    fsm.on_directory(former, Rc::ok, {"a"});
    listed({"a", "b"});
    read("a", "1");
    read("b", "2");
    EXPECT_THAT(told, ElementsAre("a=1 b=2"));
}

TEST_F(GroupWatchFsmTest, ALargeGroupIsReadABitAtATime) {
    fsm.start();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < GroupWatchFsm::kReadsAtOnce + 10; ++i) names.push_back(std::to_string(1000 + i));
    listed(names);
    EXPECT_EQ(asked.size(), GroupWatchFsm::kReadsAtOnce + 1);
    for (std::size_t i = 0; i < names.size(); ++i) {
        EXPECT_THAT(told, IsEmpty());
        read(names[i], "x");
    }
    EXPECT_EQ(told.size(), 1u);
    EXPECT_EQ(asked.size(), names.size() + 1);
}

TEST_F(GroupWatchFsmTest, APayloadThatMayNotBeReadIsEmptyAndARefusedListIsSaidAndTriedAgain) {
    fsm.start();
    fsm.on_directory(ticket, Rc::no_auth, {});
    EXPECT_EQ(complaints.size(), 1u);
    timer_rings();
    listed({"a"});
    fsm.on_member(ticket, "a", Rc::no_auth, {}, {});
    EXPECT_THAT(told, ElementsAre("a="));
}

TEST_F(GroupWatchFsmTest, ThePausesGrowUntilSomethingWasSeen) {
    fsm.start();
    fsm.on_directory(ticket, Rc::no_auth, {});
    const auto first = last_delay;
    timer_rings();
    fsm.on_directory(ticket, Rc::no_auth, {});
    EXPECT_GT(last_delay, first);
    timer_rings();
    listed({});
    directory_fires();
    fsm.on_directory(ticket, Rc::no_auth, {});
    EXPECT_EQ(last_delay, first);
}

TEST_F(GroupWatchFsmTest, OverTheBudgetItTriesAgain) {
    room = false;
    fsm.start();
    EXPECT_EQ(complaints.size(), 1u);
    room = true;
    timer_rings();
    listed({"a"});
    read("a", "1");
    EXPECT_THAT(told, ElementsAre("a=1"));
}

}  // namespace
}  // namespace zkrecipes::internal
