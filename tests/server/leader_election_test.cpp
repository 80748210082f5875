// Who leads, in which order, and how run() goes on.
#include <stdexcept>

#include "server/leader_election_support.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ElectionLayoutTest : public LeaderElectionServerTest, public ::testing::WithParamInterface<ElectionLayout> {
protected:
    static const char* base() {
        switch (GetParam()) {
            case ElectionLayout::latch: return "-latch-";
            case ElectionLayout::selector: return "-lock-";
            case ElectionLayout::kazoo: return "__lock__";
        }
        return "";
    }
};

TEST_P(ElectionLayoutTest, CandidatesLeadInTheOrderOfArrivalUnderTheirIds) {
    auto a = session(), b = session();
    LeaderElection one = election(a, "one", GetParam()), two = election(b, "two", GetParam());
    EXPECT_FALSE(one.leader());
    EXPECT_THAT(one.candidates(), SizeIs(0));
    Grant first = one.campaign();
    ASSERT_TRUE(first.held());
    EXPECT_FALSE(two.try_campaign());
    Acquiring second([&] { return two.campaign(); });
    ASSERT_TRUE(await_nodes(2));
    for (const auto& node : nodes()) {
        EXPECT_THAT(node, HasSubstr(base()));
        EXPECT_THAT(observer().get(lock_path() + "/" + node)->data, ::testing::AnyOf("one", "two"));
    }
    EXPECT_THAT(ids(two.candidates()), ElementsAre("one", "two"));
    const auto leader = two.leader();
    ASSERT_TRUE(leader);
    EXPECT_THAT(*leader, AllOf(Field(&Participant::id, "one"), Field(&Participant::token, first.token()),
                               Field(&Participant::holder, true), Field(&Participant::session_id, first.session_id())));
    EXPECT_EQ(lock_path() + "/" + leader->node, first.node());
    first.release();
    const Grant next = second.get();
    EXPECT_TRUE(next.held());
    EXPECT_GT(next.token(), leader->token);
    EXPECT_EQ(one.leader()->id, "two");
}

std::string layout_name(const ::testing::TestParamInfo<ElectionLayout>& layout) {
    return layout.param == ElectionLayout::latch   ? "Latch"
           : layout.param == ElectionLayout::kazoo ? "Kazoo"
                                                   : "Selector";
}
INSTANTIATE_TEST_SUITE_P(LeaderElection, ElectionLayoutTest,
                         ::testing::Values(ElectionLayout::latch, ElectionLayout::selector, ElectionLayout::kazoo),
                         layout_name);

TEST_F(LeaderElectionServerTest, LayoutsOnOnePathByMistakeStillHaveOneLeader) {
    auto s = session();
    LeaderElection latch = election(s, "latch"), selector = election(s, "selector", ElectionLayout::selector);
    ExclusiveMutex mutex(s, lock_path());
    Grant leadership = latch.campaign();
    EXPECT_FALSE(selector.try_campaign());
    EXPECT_FALSE(mutex.try_lock());
    leadership.release();
    leadership = selector.try_campaign_until(kMaxWait);
    EXPECT_FALSE(latch.try_campaign());
    EXPECT_FALSE(mutex.try_lock());
}

TEST_F(LeaderElectionServerTest, OptionsThatCannotWorkAreRefused) {
    auto s = session();
    EXPECT_EQ(error_of([&] { election(s, std::string(600, 'x')); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { election(s, "__REVOKE__"); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { LeaderElection(s, "/"); }).errc(), Errc::bad_path);
    LeaderElection candidate = election(s);
    EXPECT_THAT(candidate.id(), HasSubstr(":"));
    EXPECT_EQ(error_of([&] { candidate.run({}); }).errc(), Errc::bad_option);
    EXPECT_EQ(error_of([&] { candidate.campaign_async(Deadline::never(), {}, {}); }).errc(), Errc::bad_option);
}

TEST_F(LeaderElectionServerTest, RunLeadsResignsAndCampaignsAgainAtTheBack) {
    auto a = session(), b = session();
    LeaderElection one = election(a, "one"), two = election(b, "two");
    Running first(one);
    ASSERT_TRUE(await([&] { return first.leads(); }));
    Running second(two);
    ASSERT_TRUE(await_nodes(2));
    for (int round = 1; round <= 5; ++round) {
        EXPECT_TRUE(one.resign());
        ASSERT_TRUE(await([&] { return second.begun() == round && second.leads(); }));
        ASSERT_TRUE(await_nodes(2));
        EXPECT_THAT(ids(one.candidates()), ElementsAre("two", "one"));
        EXPECT_FALSE(one.resign());  // it does not lead
        EXPECT_TRUE(two.resign());
        ASSERT_TRUE(await([&] { return first.begun() == round + 1 && first.leads(); }));
        ASSERT_TRUE(await_nodes(2));
    }
    EXPECT_EQ(first.overlaps() + second.overlaps() + first.begun_lost() + second.begun_lost(), 0);
    first.end();
    second.end();
    EXPECT_TRUE(await([&] { return first.ended() && second.ended(); }));
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(LeaderElectionServerTest, AResignationThatIsFollowedByACampaignAtOnceIsNotSwallowed) {  // H58
    auto s = session();
    LeaderElection candidate = election(s, "one");
    Running running(candidate);
    for (int round = 1; round <= 50; ++round) {
        ASSERT_TRUE(await([&] { return running.begun() >= round; }));
        ASSERT_TRUE(await([&] { return candidate.resign(); }));
    }
    EXPECT_TRUE(await([&] { return running.begun() == 51; }));
    EXPECT_EQ(running.overlaps(), 0);
    for (int round = 0; round < 20; ++round) {  // and the same without run()
        running.end();
        Grant leadership = candidate.try_campaign_until(kMaxWait);
        EXPECT_TRUE(leadership.held());
        leadership.release();
    }
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(LeaderElectionServerTest, WhatLeadThrowsIsPassedOnAfterResigning) {  // H57
    auto s = session();
    LeaderElection candidate = election(s, "one");
    FencingToken token = 0;
    EXPECT_THROW(candidate.run([&](const Grant& leadership, const std::stop_token&) {
        token = leadership.token();
        throw std::runtime_error("the work failed");
    }),
                 std::runtime_error);
    EXPECT_GT(token, 0);
    EXPECT_TRUE(await_nodes(0));
    EXPECT_FALSE(candidate.resign());
    Running again(candidate);  // it is as good as new
    EXPECT_TRUE(await([&] { return again.leads(); }));
}

TEST_F(LeaderElectionServerTest, AStopEndsRunWhetherItWaitsOrLeads) {  // H59
    auto a = session(), b = session();
    LeaderElection one = election(a, "one"), two = election(b, "two");
    Running leading(one), waiting(two);
    ASSERT_TRUE(await([&] { return leading.leads() || waiting.leads(); }));
    Running& leader = leading.leads() ? leading : waiting;
    Running& other = leading.leads() ? waiting : leading;
    ASSERT_TRUE(await_nodes(2));
    other.end();
    EXPECT_TRUE(await([&] { return other.ended(); }));
    EXPECT_EQ(other.begun(), 0);
    EXPECT_TRUE(await_nodes(1));
    leader.end();
    EXPECT_TRUE(await([&] { return leader.ended(); }));
    EXPECT_TRUE(leader.stop_requested());
    EXPECT_EQ(leader.error(), Errc{});
    EXPECT_TRUE(await_nodes(0));
    std::stop_source requested;
    requested.request_stop();
    one.run([](const Grant&, const std::stop_token&) { ADD_FAILURE() << "stopped before"; }, requested.get_token());
}

TEST_F(LeaderElectionServerTest, OneRunAtATimeOnOneObject) {
    auto s = session();
    LeaderElection candidate = election(s, "one");
    Running running(candidate);
    ASSERT_TRUE(await([&] { return running.leads(); }));
    const Error error = error_of([&] { candidate.run([](const Grant&, const std::stop_token&) {}); });
    EXPECT_EQ(error.errc(), Errc::bad_option);
    EXPECT_TRUE(running.leads());
    EXPECT_THAT(nodes(), SizeIs(1));
}

TEST_F(LeaderElectionServerTest, RunSuspendsOnlyItsFiber) {
    auto s = session();
    LeaderElection one = election(s, "one"), two = election(s, "two");
    std::stop_source stop;
    std::vector<std::string> order;
    const auto lead = [&](std::string who) {
        return [&order, &stop, who = std::move(who)](const Grant& leadership, const std::stop_token&) {
            EXPECT_TRUE(leadership.held());
            order.push_back(who);
            boost::this_fiber::yield();
            if (order.size() == 6) stop.request_stop();
        };
    };
    boost::fibers::fiber first([&] { one.run(lead("one"), stop.get_token()); });
    boost::fibers::fiber second([&] { two.run(lead("two"), stop.get_token()); });
    first.join();
    second.join();
    ASSERT_GE(order.size(), 6u);
    for (std::size_t i = 1; i < 6; ++i) EXPECT_NE(order[i], order[i - 1]);  // each goes to the back
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(LeaderElectionServerTest, TheObjectMayBeDestroyedWhileItRunsAndLeads) {
    auto s = session();
    auto candidate = std::make_unique<LeaderElection>(election(s, "one"));
    Grant leadership = candidate->campaign();
    auto running = std::make_unique<Running>(*candidate);
    ASSERT_TRUE(await_nodes(2));
    candidate.reset();
    EXPECT_TRUE(leadership.held());
    leadership.release();
    EXPECT_TRUE(await([&] { return running->leads(); }));
}

TEST_F(LeaderElectionServerTest, CallbacksMayCallTheElectionAndBlockOnAnotherFiberOrThread) {  // H62, H65
    auto s = session();
    LeaderElection candidate = election(s, "one");
    std::atomic<int> done{0};
    Grant second;
    candidate.campaign_async(kMaxWait, {}, [&](AcquireResult first) {
        candidate.campaign_async(kMaxWait, {}, [&](AcquireResult result) {
            second = std::move(result.value);
            ++done;
        });
        EXPECT_FALSE(candidate.resign());
        first.value.release();
        ++done;
    });
    EXPECT_TRUE(await([&] { return done == 2; }));
    EXPECT_TRUE(second.held());
}

}  // namespace
}  // namespace zkrecipes::test
