// A node that is kept there: by whom it is deleted, which answer is lost, whose it was before, what it costs.
#include "server/nodes_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::ElementsAre;

class PersistentNodeTest : public NodesServerTest {
protected:
    void SetUp() override {
        NodesServerTest::SetUp();
        if (!IsSkipped()) ZKRECIPES_NEEDS_OWN_SERVER();
    }
    bool await_gone() {
        return await([&] { return owner_of(node_path()) == -1; });
    }
    bool await_owner(const Session& s) {
        return await([&] { return owner_of(node_path()) == s.info().session_id; });
    }
};

TEST_F(PersistentNodeTest, ItIsMadeWithItsParentsSaysWhatIsSetAndGoesWithItsObject) {
    auto s = session();
    Heard heard;
    {
        PersistentNode node(s, node_path(), {.data = "one"});
        const auto subscription = node.watch_state(heard.states());
        ASSERT_TRUE(node.wait_present(kMaxWait));
        EXPECT_EQ(node.state(), PersistentNodeState::present);
        EXPECT_EQ(data_of(node_path()), "one");
        EXPECT_EQ(owner_of(node_path()), s.info().session_id);
        node.set_data("two");
        ASSERT_TRUE(node.wait_present(kMaxWait));
        EXPECT_EQ(data_of(node_path()), "two");
        EXPECT_EQ(node.data(), "two");
        EXPECT_TRUE(node.close_and_wait(kMaxWait));
        EXPECT_EQ(owner_of(node_path()), -1);
        EXPECT_TRUE(heard.await_last("closed"));
        EXPECT_EQ(error_of([&] { node.set_data("three"); }).errc(), Errc::closed);
        EXPECT_EQ(error_of([&] { node.wait_present(kMaxWait); }).errc(), Errc::closed);
    }
    { const PersistentNode node(s, node_path()); }
    PersistentNode last(s, path("other"));
    ASSERT_TRUE(last.wait_present(kMaxWait));
    EXPECT_TRUE(await_gone());
    last = PersistentNode(s, node_path());
    ASSERT_TRUE(last.wait_present(kMaxWait));
    EXPECT_TRUE(await([&] { return owner_of(path("other")) == -1; }));
}

TEST_F(PersistentNodeTest, AnOperatorsDeleteOfTheNodeOrOfItsParentIsMended) {
    auto s = gated_session(60s);
    PersistentNode node(s, node_path(), {.data = "one"});
    Heard heard;
    const auto subscription = node.watch_state(heard.states());
    ASSERT_TRUE(node.wait_present(kMaxWait));
    for (int round = 0; round < 3; ++round) {
        const auto before = observer().exists(node_path())->czxid;
        observer().remove(node_path());
        EXPECT_TRUE(await([&] {
            const auto found = observer().exists(node_path());
            return found && found->czxid > before;
        }));
    }
    ASSERT_TRUE(node.wait_present(kMaxWait));
    EXPECT_EQ(data_of(node_path()), "one");
    gate().blackhole(testenv::Direction::to_client);  // it hears of both at once, or it would be faster
    observer().remove(node_path());
    observer().remove(group_path());
    gate().pass();
    EXPECT_TRUE(await_owner(s));
    EXPECT_TRUE(heard.await_last("present"));
}

TEST_F(PersistentNodeTest, AReplacedSessionMakesItAgain) {  // H57
    auto s = gated_session();
    PersistentNode node(s, node_path(), {.data = "one"});
    ASSERT_TRUE(node.wait_present(kMaxWait));
    for (int round = 0; round < 2; ++round) {
        const auto former = s.info().session_id;
        gate().expire(former);
        ASSERT_TRUE(
            await([&] { return s.info().session_id != former && owner_of(node_path()) == s.info().session_id; }));
    }
    EXPECT_EQ(data_of(node_path()), "one");
}

TEST_F(PersistentNodeTest, ANodeOfAnotherSessionIsWaitedForAndNotTouched) {
    auto s = session();
    observer().make_path(group_path());
    testenv::RawClient other(connect_string());
    other.create(node_path(), "theirs", testenv::CreateMode::ephemeral);
    PersistentNode node(s, node_path(), {.data = "ours"});
    Heard heard;
    const auto subscription = node.watch_state(heard.states());
    EXPECT_TRUE(heard.await_last("taken"));
    node.set_data("ours still");
    EXPECT_FALSE(node.wait_present(20ms));
    EXPECT_EQ(data_of(node_path()), "theirs");
    other.close();
    EXPECT_TRUE(node.wait_present(kMaxWait));
    EXPECT_EQ(data_of(node_path()), "ours still");
    std::stop_source stop;
    stop.request_stop();
    EXPECT_TRUE(node.wait_present(Deadline::passed()));
    EXPECT_FALSE(node.wait_present(kMaxWait, stop.get_token()));
}

TEST_F(PersistentNodeTest, EveryAnswerMayBeLostBeforeOrAfterTheExecution) {  // H1
    for (const auto op : {Opcode::create2, Opcode::get_data, Opcode::set_data}) {
        for (const bool after : {false, true}) {
            SCOPED_TRACE(std::string(to_string(op)) + (after ? " after" : " before"));
            auto s = gated_session(60s);
            const auto match = Match::op(op).path_is(node_path());
            const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
            PersistentNode node(s, node_path(), {.data = "one"});
            if (op == Opcode::set_data) {
                ASSERT_TRUE(node.wait_present(kMaxWait));
                node.set_data("two");
            }
            ASSERT_TRUE(fault.wait_reached());
            ASSERT_TRUE(node.wait_present(kMaxWait));
            EXPECT_EQ(data_of(node_path()), op == Opcode::set_data ? "two" : "one");
            EXPECT_EQ(owner_of(node_path()), s.info().session_id);
            EXPECT_TRUE(node.close_and_wait(kMaxWait));
            EXPECT_EQ(owner_of(node_path()), -1);
        }
    }
}

TEST_F(PersistentNodeTest, AClosedOneLeavesNothingWhateverAnswerIsLost) {  // H51
    observer().make_path(group_path());
    auto s = gated_session(60s);
    {
        const auto fault = gate().hold_reply(Match::op(Opcode::create2).path_is(node_path()));
        PersistentNode node(s, node_path());
        ASSERT_TRUE(fault.wait_reached());
        node.close();
        EXPECT_FALSE(node.close_and_wait(Deadline::passed()));
        EXPECT_EQ(owner_of(node_path()), s.info().session_id);
        fault.drop();
        EXPECT_TRUE(node.close_and_wait(kMaxWait));
        EXPECT_EQ(owner_of(node_path()), -1);
    }
    for (const bool after : {false, true}) {
        PersistentNode node(s, node_path());
        ASSERT_TRUE(node.wait_present(kMaxWait));
        const auto match = Match::op(Opcode::remove).path_is(node_path());
        const auto fault = after ? gate().cut_after(match) : gate().cut_before(match);
        node.close();
        ASSERT_TRUE(fault.wait_reached());
        if (after) {
            // Somebody else takes the name before we are connected again, and keeps it.
            testenv::RawClient other(connect_string());
            ASSERT_TRUE(await_gone());
            other.create(node_path(), "theirs", testenv::CreateMode::ephemeral);
            EXPECT_TRUE(node.close_and_wait(kMaxWait));
            EXPECT_EQ(data_of(node_path()), "theirs");
        } else {
            EXPECT_TRUE(node.close_and_wait(kMaxWait));
            EXPECT_EQ(owner_of(node_path()), -1);
        }
    }
}

TEST_F(PersistentNodeTest, WhatTheServersRefuseIsAnErrorForWhoWaitsAndTriedAgain) {  // H13
    auto s = session();
    EXPECT_EQ(error_of([&] { PersistentNode(s, "/"); }).errc(), Errc::bad_path);
    EXPECT_EQ(error_of([&] { PersistentNode(s, node_path(), {.acl = std::vector<Acl>()}); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { PersistentNode(s, node_path(), {.data = std::string(1'000'000, 'x')}); }).errc(),
              Errc::too_large);
    PersistentNode node(s, node_path(), {.create_parents = false});
    EXPECT_EQ(error_of([&] { node.wait_present(kMaxWait); }).errc(), Errc::no_parent);
    observer().make_path(group_path());
    EXPECT_TRUE(await_owner(s));
    s.close();
    EXPECT_EQ(error_of([&] { node.wait_present(kMaxWait); }).errc(), Errc::closed);
    EXPECT_TRUE(node.close_and_wait(kMaxWait));
    EXPECT_EQ(error_of([&] { PersistentNode(s, node_path()); }).errc(), Errc::closed);
    EXPECT_TRUE(await_gone());
}

TEST_F(PersistentNodeTest, ItsCostIsCounted) {
    observer().make_path(group_path());
    auto s = gated_session(60s);
    gate().reset_trace();
    PersistentNode node(s, node_path(), {.data = "one"});
    ASSERT_TRUE(node.wait_present(kMaxWait));
    EXPECT_EQ(counted("group"), "get_data 1, create2 1");
    gate().reset_trace();
    gate().reset_all();  // a short cut costs nothing but the client's setting of its watch
    ASSERT_TRUE(s.wait_connected(kMaxWait));
    node.set_data("two");
    ASSERT_TRUE(await_data(node_path(), "two"));
    observer().remove(node_path());
    ASSERT_TRUE(await_owner(s));
    EXPECT_TRUE(node.close_and_wait(kMaxWait));
    EXPECT_TRUE(await([&] { return server().watch_count() == 0; })) << server().four_letter("wchp");
}

TEST_F(PersistentNodeTest, AWaitingFiberLeavesItsThreadToOthers) {
    auto s = session();
    observer().make_path(group_path());
    testenv::RawClient other(connect_string());
    other.create(node_path(), "theirs", testenv::CreateMode::ephemeral);
    PersistentNode node(s, node_path());
    bool present = false;
    boost::fibers::fiber waiting([&] { present = node.wait_present(kMaxWait); });
    boost::fibers::fiber working([&] { other.close(); });
    working.join();
    waiting.join();
    EXPECT_TRUE(present);
}

}  // namespace
}  // namespace zkrecipes::test
