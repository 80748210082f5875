// Groups: who is told of whom, in which order, whatever breaks, and what it costs.
#include "server/nodes_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::ElementsAre;
using ::testing::Pair;

class GroupMemberTest : public NodesServerTest {
protected:
    void SetUp() override {
        NodesServerTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS_OWN_SERVER();
    }
};

TEST_F(GroupMemberTest, AnObserverIsToldWhoComesGoesAndSaysSomethingElse) {
    auto a = session(), b = session(), outside = session();
    Group group(outside, group_path());
    Heard heard, heard_by_member;
    auto subscription = group.observe(heard.members());
    ASSERT_TRUE(heard.await_last(""));  // not even the directory is there
    GroupMember one(a, group_path(), "one", "1");
    ASSERT_TRUE(one.wait_joined(kMaxWait));
    ASSERT_TRUE(heard.await_last("one=1"));
    auto by_member = one.observe(heard_by_member.members());
    {
        GroupMember two(b, group_path(), "two", "2");
        ASSERT_TRUE(heard.await_last("one=1 two=2"));
        two.set_payload("22");
        ASSERT_TRUE(heard.await_last("one=1 two=22"));
        EXPECT_THAT(group.members(), ElementsAre(Pair("one", "1"), Pair("two", "22")));
        EXPECT_EQ(one.members(), two.members());
        ASSERT_TRUE(heard_by_member.await_last("one=1 two=22"));
    }
    ASSERT_TRUE(heard.await_last("one=1"));
    EXPECT_TRUE(one.leave_and_wait(kMaxWait));
    ASSERT_TRUE(heard.await_last(""));
    EXPECT_THAT(heard.all(), ElementsAre("", "one=1", "one=1 two=2", "one=1 two=22", "one=1", ""));
    ASSERT_TRUE(heard_by_member.await_last(""));
    observer().remove(group_path());  // as the servers do with an empty container
    GroupMember again(a, group_path(), "one", "111");
    ASSERT_TRUE(heard.await_last("one=111"));
    ASSERT_TRUE(heard_by_member.await_last("one=111"));
    subscription.reset();
    by_member.reset();
    EXPECT_TRUE(again.leave_and_wait(kMaxWait));
    EXPECT_TRUE(await([&] { return server().watch_count() == 0; })) << server().four_letter("wchp");
}

TEST_F(GroupMemberTest, AMemberAndAnObserverOfOneSessionWatchTheSameNodesBesideEachOther) {
    auto s = session();
    PersistentNode on_directory(s, path("group/a/below"));  // a node with children whose own data are watched, too
    ASSERT_TRUE(on_directory.wait_present(kMaxWait));
    Heard above, below;
    Group parents(s, group_path()), children(s, path("group/a"));
    const auto first = parents.observe(above.members());
    auto second = children.observe(below.members());
    ASSERT_TRUE(above.await_last("a="));
    ASSERT_TRUE(below.await_last("below="));
    observer().set(path("group/a"), "says something");
    ASSERT_TRUE(above.await_last("a=says something"));
    on_directory.set_data("x");
    ASSERT_TRUE(below.await_last("below=x"));
    second.reset();
    observer().set(path("group/a"), "says more");
    ASSERT_TRUE(above.await_last("a=says more"));
}

TEST_F(GroupMemberTest, AnEndedSessionOfTheObserverIsFollowedByTheNextWithoutAStaleWord) {  // H56, H61
    auto a = session(), watching = gated_session();
    Group group(watching, group_path());
    Heard heard;
    const auto subscription = group.observe(heard.members());
    ASSERT_TRUE(heard.await_last(""));
    for (int round = 0; round < 2; ++round) {
        GroupMember one(a, group_path(), "one", "1");
        ASSERT_TRUE(heard.await_last("one=1"));
        const auto former = watching.info().session_id;
        gate().expire(former);
        EXPECT_TRUE(one.leave_and_wait(kMaxWait));
        ASSERT_TRUE(heard.await_last(""));
    }
    EXPECT_THAT(heard.all(), ElementsAre("", "one=1", "", "one=1", ""));
}

TEST_F(GroupMemberTest, AMemberWhoseSessionEndsComesBackInTheNext) {
    auto a = gated_session(), outside = session();
    Group group(outside, group_path());
    Heard heard;
    const auto subscription = group.observe(heard.members());
    GroupMember one(a, group_path(), "one", "1");
    ASSERT_TRUE(heard.await_last("one=1"));
    const auto former = a.info().session_id;
    gate().expire(former);
    EXPECT_TRUE(await([&] { return a.info().session_id != former; }));
    ASSERT_TRUE(one.wait_joined(kMaxWait));
    EXPECT_TRUE(await([&] { return owner_of(path("group/one")) == a.info().session_id; }));
    EXPECT_TRUE(heard.await_last("one=1"));
}

TEST_F(GroupMemberTest, EveryAnswerToAnObserverMayBeLost) {
    auto a = session();
    GroupMember one(a, group_path(), "one", "1"), two(a, group_path(), "two", "2");
    ASSERT_TRUE(one.wait_joined(kMaxWait));
    ASSERT_TRUE(two.wait_joined(kMaxWait));
    for (const auto& match : {Match::op(Opcode::get_children2).path_is(group_path()),
                              Match::op(Opcode::get_data).path_is(path("group/two"))}) {
        for (const bool after : {false, true}) {
            auto watching = gated_session(60s);
            Group group(watching, group_path());
            const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
            Heard heard;
            const auto subscription = group.observe(heard.members());
            ASSERT_TRUE(fault.wait_reached());
            ASSERT_TRUE(heard.await_last("one=1 two=2"));
            EXPECT_THAT(heard.all(), ElementsAre("one=1 two=2"));
        }
    }
}

TEST_F(GroupMemberTest, ASlowObserverIsToldTheLatestAndOneThatThrowsGoesOn) {  // H60
    auto a = session(), watching = session();
    Group group(watching, group_path());
    GroupMember one(a, group_path(), "one", "0");
    ASSERT_TRUE(one.wait_joined(kMaxWait));
    Heard heard;
    std::promise<void> busy;
    std::atomic<bool> entered{false};
    const auto write = heard.members();
    const auto subscription = group.observe([&](const GroupMembers& members) {
        write(members);
        if (!entered.exchange(true)) busy.get_future().wait();
        throw std::runtime_error("an observer that fails");
    });
    ASSERT_TRUE(await([&] { return entered.load(); }));
    for (int i = 1; i <= 50; ++i) {
        one.set_payload(std::to_string(i));
        ASSERT_TRUE(one.wait_joined(kMaxWait));
    }
    busy.set_value();
    EXPECT_TRUE(heard.await_last("one=50"));
    EXPECT_LT(heard.all().size(), 50u);
}

TEST_F(GroupMemberTest, WhatItCostsIsCounted) {
    auto a = session(), watching = gated_session(60s);
    GroupMember one(a, group_path(), "one", "1"), two(a, group_path(), "two", "2");
    ASSERT_TRUE(one.wait_joined(kMaxWait));
    ASSERT_TRUE(two.wait_joined(kMaxWait));
    Group group(watching, group_path());
    Heard heard;
    gate().reset_trace();
    const auto subscription = group.observe(heard.members());
    ASSERT_TRUE(heard.await_last("one=1 two=2"));
    EXPECT_EQ(counted("group"), "get_data 2, get_children2 1");
    gate().reset_trace();
    {
        GroupMember three(a, group_path(), "three", "3");
        ASSERT_TRUE(heard.await_last("one=1 three=3 two=2"));
        EXPECT_EQ(counted("group"), "get_data 1, get_children2 1");
        gate().reset_trace();
        three.set_payload("33");
        ASSERT_TRUE(heard.await_last("one=1 three=33 two=2"));
        EXPECT_EQ(counted("group"), "get_data 1");
        gate().reset_trace();
    }
    ASSERT_TRUE(heard.await_last("one=1 two=2"));
    EXPECT_TRUE(await([&] { return counted("group") == "get_children2 1"; })) << counted("group");
    (void)group.members(kMaxWait);  // so that the list has been answered, too
    gate().reset_trace();
    gate().reset_all();  // a short cut costs nothing but the client's setting of its watches
    ASSERT_TRUE(watching.wait_connected(kMaxWait));
    one.set_payload("11");
    ASSERT_TRUE(heard.await_last("one=11 two=2"));
    EXPECT_EQ(counted("group"), "get_data 1");
}

TEST_F(GroupMemberTest, MisuseIsAnErrorAndNothingIsToldAfterTheEnd) {
    auto s = session();
    EXPECT_EQ(error_of([&] { GroupMember(s, group_path(), ""); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { GroupMember(s, group_path(), "a/b"); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { GroupMember(s, "no slash", "a"); }).errc(), Errc::bad_path);
    Group group(s, group_path());
    EXPECT_EQ(error_of([&] { (void)group.observe({}); }).errc(), Errc::bad_option);
    Heard heard;
    const auto subscription = group.observe(heard.members());
    GroupMember one(s, group_path(), "one", "1");
    ASSERT_TRUE(heard.await_last("one=1"));
    s.close();
    EXPECT_EQ(error_of([&] { (void)group.observe(heard.members()); }).errc(), Errc::closed);
    EXPECT_EQ(error_of([&] { (void)group.members(kMaxWait); }).errc(), Errc::closed);
    EXPECT_EQ(one.state(), PersistentNodeState::closed);
    EXPECT_THAT(heard.all().back(), "one=1");
}

}  // namespace
}  // namespace zkrecipes::test
