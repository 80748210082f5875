// Elections when something breaks: sessions end, nodes and data vanish, connections are cut. The numbers are those of
// docs/hazards.md.
#include "server/leader_election_support.hpp"

namespace zkrecipes::test {
namespace {

using testenv::Match;
using testenv::Opcode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaderElectionFaultsTest : public LeaderElectionServerTest {
protected:
    void SetUp() override {
        LeaderElectionServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        observer().make_path(lock_path());
    }
    Match create() const { return Match::op(Opcode::create2).path(lock_path()); }
    ElectionOptions stepping_down(std::string id) {
        auto options = called(std::move(id));
        options.when_suspended = WhenSuspended::step_down;
        return options;
    }
    void expect_clean(const Running& running) {
        EXPECT_EQ(running.overlaps(), 0);
        EXPECT_EQ(running.begun_lost(), 0);
    }
};

TEST_F(LeaderElectionFaultsTest, ACandidateThatLeavesWhileItsCreateIsOnItsWayLeavesNothing) {  // H51
    auto s = gated_session();
    LeaderElection candidate = election(s, "one");
    {
        const auto fault = gate().hold_reply(create());
        Running running(candidate);
        ASSERT_TRUE(fault.wait_reached());
        running.end();
        EXPECT_TRUE(await([&] { return running.ended(); }));
        EXPECT_THAT(nodes(), SizeIs(1));  // nobody has heard of it yet
        fault.release();
        EXPECT_TRUE(await_nodes(0));
        EXPECT_EQ(running.begun(), 0);
    }
    const auto fault = gate().hold_reply(create());
    Running running(candidate);
    ASSERT_TRUE(fault.wait_reached());
    s.close();  // and the same by closing
    EXPECT_TRUE(await([&] { return running.ended(); }));
    EXPECT_EQ(running.error(), Errc::closed);
    fault.drop();
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(LeaderElectionFaultsTest, AfterTwoSessionsInARowThereIsOneNode) {  // H52, H57
    auto holder = session();
    LeaderElection leading = election(holder, "leader");
    Grant leadership = leading.campaign();
    auto s = gated_session();
    LeaderElection candidate = election(s, "one");
    Running running(candidate);
    ASSERT_TRUE(await_nodes(2));
    for (int round = 0; round < 2; ++round) {
        const auto former = s.info().session_id;
        gate().expire(former);
        ASSERT_TRUE(await([&] { return s.info().session_id != former; }));
    }
    ASSERT_TRUE(await_nodes(2));
    EXPECT_THAT(ids(leading.candidates()), ElementsAre("leader", "one"));
    EXPECT_FALSE(running.ended());  // still a candidate
    leadership.release();
    EXPECT_TRUE(await([&] { return running.leads(); }));
    EXPECT_THAT(nodes(), SizeIs(1));
}

TEST_F(LeaderElectionFaultsTest, TwoCandidatesConvergeOnOneLeaderThroughManyReconnects) {  // H53
    auto a = gated_session(60s), b = gated_session(60s);
    LeaderElection one = election(a, "one"), two = election(b, "two");
    Grant leadership = one.campaign();
    Acquiring waiting([&] { return two.campaign(); });
    ASSERT_TRUE(await_nodes(2));
    const auto before = ids(one.candidates());
    const auto queue = nodes();
    for (int round = 0; round < 20; ++round) {
        gate().reset_all();
        if (round % 10 != 9) continue;
        EXPECT_EQ(one.leader(kMaxWait)->id, "one");  // both are connected again now and then
    }
    EXPECT_TRUE(leadership.held());
    EXPECT_FALSE(waiting.done());
    EXPECT_EQ(nodes(), queue);  // the same nodes: nobody has lost its place
    EXPECT_THAT(ids(one.candidates(kMaxWait)), ElementsAre("one", "two"));
    EXPECT_TRUE(leadership.release_and_wait(kMaxWait));
    EXPECT_TRUE(waiting.get().held());
}

TEST_F(LeaderElectionFaultsTest, AShortCutEndsTheLeadershipOfWhoStepsDownAndOfNobodyElse) {  // H49
    auto a = gated_session(60s), b = session();
    LeaderElection patient(a, lock_path(), called("patient"));
    LeaderElection hasty(a, path("other"), stepping_down("hasty"));
    const Grant kept = patient.campaign();
    Running running(hasty, false);
    ASSERT_TRUE(await([&] { return running.leads(); }));
    LeaderElection next(b, path("other"), called("next"));
    Acquiring waiting([&] { return next.campaign(); });
    ASSERT_TRUE(await([&] { return nodes_of(path("other")).size() == 2; }));
    gate().reset_all();
    EXPECT_TRUE(await([&] { return running.stop_requested(); }));
    EXPECT_TRUE(kept.held());
    ASSERT_TRUE(a.wait_connected(kMaxWait));
    // While `lead` is still at work its node keeps the next one out.
    EXPECT_FALSE(waiting.done());
    EXPECT_EQ(running.begun(), 1);
    running.let_go();
    EXPECT_TRUE(waiting.get().held());
    EXPECT_TRUE(await([&] { return running.begun() == 2; }));  // back in the queue, and first again
    EXPECT_TRUE(kept.held());
    expect_clean(running);
}

TEST_F(LeaderElectionFaultsTest, WhoStepsDownIsNotRevivedByTheReconnect) {  // H56, H61
    auto s = gated_session(60s);
    LeaderElection hasty(s, lock_path(), stepping_down("hasty"));
    for (int round = 0; round < 2; ++round) {
        Grant leadership = hasty.try_campaign_until(kMaxWait);
        ASSERT_TRUE(leadership.held());
        gate().reset_all();
        ASSERT_TRUE(await([&] { return leadership.lost().stop_requested(); }));
        ASSERT_TRUE(await([&] { return s.state() == SessionState::connected; }));
        EXPECT_FALSE(leadership.held());
        EXPECT_THAT(nodes(), SizeIs(1));  // it keeps the others out until it is released
        EXPECT_TRUE(leadership.release_and_wait(kMaxWait));
    }
}

TEST_F(LeaderElectionFaultsTest, AnEndedSessionStopsLeadAndRunGoesOnWithTheNext) {  // H56, H57, H61
    auto s = gated_session();
    LeaderElection candidate = election(s, "one");
    Running running(candidate, false);
    ASSERT_TRUE(await([&] { return running.leads(); }));
    const auto former = running.session_id();
    gate().expire(former);
    ASSERT_TRUE(await([&] { return running.stop_requested(); }));
    ASSERT_TRUE(await([&] { return s.info().session_id != former && s.state() == SessionState::connected; }));
    // Never a second `lead` beside the first.
    EXPECT_EQ(running.begun(), 1);
    EXPECT_THAT(nodes(), IsEmpty());
    running.let_go();
    ASSERT_TRUE(await([&] { return running.begun() == 2; }));
    EXPECT_NE(running.session_id(), former);
    EXPECT_THAT(nodes(), SizeIs(1));
    expect_clean(running);
}

TEST_F(LeaderElectionFaultsTest, ADeletedNodeOrDirectoryEndsTheLeadershipAndRunEntersAgain) {  // H46, H47, H54
    auto a = session(), b = session();
    LeaderElection one = election(a, "one"), two = election(b, "two");
    Running first(one), second(two);
    ASSERT_TRUE(await([&] { return first.leads() || second.leads(); }));
    ASSERT_TRUE(await_nodes(2));
    Running& leader = first.leads() ? first : second;
    Running& other = first.leads() ? second : first;
    const auto leading = one.leader();
    ASSERT_TRUE(leading);
    observer().remove(lock_path() + "/" + leading->node);
    ASSERT_TRUE(await([&] { return other.leads() && !leader.leads(); }));
    ASSERT_TRUE(await_nodes(2));
    // Now everything, the directory too.
    const auto token = other.token();
    ASSERT_TRUE(await([&] {
        try {
            delete_all();
            observer().remove(lock_path());
        } catch (const testenv::RawError&) {
        }
        return leader.token() > token || other.token() > token;
    }));
    EXPECT_TRUE(await([&] { return nodes().size() == 2 && leader.leads() != other.leads(); }));
    expect_clean(first);
    expect_clean(second);
}

TEST_F(LeaderElectionFaultsTest, BeforeTheServersAreThereAndAfterTheyHaveForgottenEverything) {  // H54, H55
    testenv::ServerOptions options;
    options.deferred = true;
    testenv::ZkServer mine(options);
    Session a(session_options(mine.connect_string(), 1500ms)), b(session_options(mine.connect_string(), 1500ms));
    LeaderElection one(a, "/deep/down/here", called("one")), two(b, "/deep/down/here", called("two"));
    Running first(one), second(two);
    mine.start();
    ASSERT_TRUE(await([&] { return first.leads() || second.leads(); }));
    ASSERT_TRUE(await([&] { return one.candidates(kMaxWait).size() == 2; }));
    mine.stop();
    mine.wipe_data();
    const int before = first.begun() + second.begun();
    mine.start();
    ASSERT_TRUE(await([&] { return first.begun() + second.begun() > before; }));
    EXPECT_TRUE(await([&] { return one.candidates(kMaxWait).size() == 2 && first.leads() != second.leads(); }));
    EXPECT_EQ(first.overlaps() + second.overlaps(), 0);
    EXPECT_FALSE(first.ended() || second.ended());
}

TEST_F(LeaderElectionFaultsTest, AnOutageCostsTheAttemptsOfOnePolicy) {  // H63
    auto options = session_options("");
    std::atomic<int> asked{0};
    options.retry = RetryPolicy([&](const RetryState& state) -> std::optional<RetryPolicy::Milliseconds> {
        ++asked;
        if (state.failures >= 4) return std::nullopt;
        return RetryPolicy::Milliseconds(20);
    });
    auto s = gated_session(options);
    gate().refuse();
    gate().reset_all();
    ASSERT_TRUE(await([&] { return s.state() == SessionState::suspended; }));
    asked = 0;
    LeaderElection candidate = election(s, "one");
    Running running(candidate);
    EXPECT_TRUE(await([&] { return running.ended(); }));
    EXPECT_EQ(running.error(), Errc::connection_lost);
    EXPECT_EQ(asked, 4);
    gate().pass();
}

TEST_F(LeaderElectionFaultsTest, ClosingAnswersAThousandCandidatesAndTellsTheLeader) {  // H64, H67
    auto s = session();
    LeaderElection candidate = election(s, "one");
    Running running(candidate, false);
    ASSERT_TRUE(await([&] { return running.leads(); }));
    constexpr int kCandidates = 1000;
    std::atomic<int> closed{0}, other{0};
    for (int i = 0; i < kCandidates; ++i) {
        candidate.campaign_async(Deadline::never(), {}, [&](AcquireResult result) {
            try {
                if (result.error) std::rethrow_exception(result.error);
                ++other;
            } catch (const Error& error) {
                ++(error.errc() == Errc::closed ? closed : other);
            }
        });
    }
    s.close();
    EXPECT_TRUE(await([&] { return closed == kCandidates; })) << closed << " and " << other;
    EXPECT_TRUE(await([&] { return running.stop_requested(); }));
    running.let_go();
    EXPECT_TRUE(await([&] { return running.ended(); }));
    EXPECT_EQ(running.error(), Errc::closed);
    EXPECT_EQ(running.begun(), 1);
    EXPECT_TRUE(await_nodes(0));
}

TEST_F(LeaderElectionFaultsTest, ALeaderThatVanishesBetweenTheListAndTheReadIsSkipped) {  // H66
    auto a = session(), b = session();
    LeaderElection one = election(a, "one"), two = election(b, "two");
    Grant leadership = one.campaign();
    Acquiring waiting([&] { return two.campaign(); });
    ASSERT_TRUE(await_nodes(2));
    auto s = gated_session();
    LeaderElection asking = election(s);
    for (const bool all : {false, true}) {
        const auto fault = gate().hold_reply(Match::op(Opcode::get_children2).path(lock_path()));
        std::vector<std::string> said;
        std::thread reader([&] {
            if (all) {
                said = ids(asking.candidates());
            } else if (const auto leader = asking.leader()) {
                said = {leader->id};
            }
        });
        EXPECT_TRUE(fault.wait_reached());
        if (all) leadership = waiting.get();
        EXPECT_TRUE(leadership.release_and_wait(kMaxWait));
        EXPECT_TRUE(await_nodes(all ? 0 : 1));
        fault.release();
        reader.join();
        EXPECT_EQ(said, all ? std::vector<std::string>() : std::vector<std::string>{"two"});
    }
}

}  // namespace
}  // namespace zkrecipes::test
