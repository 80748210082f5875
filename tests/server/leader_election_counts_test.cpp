// What an election costs, counted at a gate that knows the protocol.
#include "server/leader_election_support.hpp"

namespace zkrecipes::test {
namespace {

class LeaderElectionCountsTest : public LeaderElectionServerTest {
protected:
    void SetUp() override {
        LeaderElectionServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        observer().make_path(lock_path());
    }
};

TEST_F(LeaderElectionCountsTest, ToLeadIsOneRoundTripAndToResignOneRequest) {
    auto s = gated_session(kNoHeartbeat);
    LeaderElection candidate = election(s, "one");
    for (int round = 0; round < 3; ++round) {
        gate().reset_trace();
        Grant leadership = in_round_trips({2}, [&] { return candidate.campaign(); });
        EXPECT_EQ(to_string(counts()), "exists 1, create2 1");
        EXPECT_EQ(round_trips(trace(), s.info().session_id), 1) << to_string(trace());
        EXPECT_TRUE(leadership.release_and_wait(kMaxWait));
        EXPECT_EQ(counts().total(), 3u) << to_string(trace());
    }
}

TEST_F(LeaderElectionCountsTest, ToAskForTheLeaderIsTwoReadsHoweverManyCandidates) {
    auto s = session();
    std::vector<Acquiring> waiting;
    LeaderElection candidate = election(s, "one");
    const Grant leadership = candidate.campaign();
    std::stop_source stop;
    for (int i = 0; i < 5; ++i) candidate.campaign_async(Deadline::never(), stop.get_token(), [](AcquireResult) {});
    ASSERT_TRUE(await_nodes(6));
    auto asking = gated_session(kNoHeartbeat);
    LeaderElection outside = election(asking);
    gate().reset_trace();
    const auto leader = outside.leader();
    ASSERT_TRUE(leader);
    EXPECT_EQ(leader->id, "one");
    EXPECT_EQ(to_string(counts()), "get_data 1, get_children2 1");
    stop.request_stop();
}

}  // namespace
}  // namespace zkrecipes::test
