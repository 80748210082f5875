// LeaderElection on scripted handles: what happens between two steps of it.
#include <zkrecipes/leader_election.hpp>

#include "session/lease/hold.hpp"
#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

class LeadershipTest : public SessionTest {
protected:
    void connect() {
        open_connected(owner);
        session.emplace(SessionAccess::make(core));
    }
    ~LeadershipTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    /// The servers answer everything as an empty, well-behaved directory would.
    void answer_all() {
        for (int i = 0; i < 100; ++i) {
            runtime->run();
            Request request = client().take();
            if (!request.answer) return;
            Reply reply;
            if (request.op == "create" && request.mode == CreateMode::ephemeral_sequential) {
                created.push_back(request.path);
                reply.text = request.path + "0000000000";
                reply.stat.ephemeral_owner = owner;
                reply.stat.czxid = ++zxid;
            }
            if (request.op == "exists") {
                reply.stat.num_children = 1;
                reply.stat.pzxid = zxid;
            }
            if (request.op == "multi") reply.results.resize(request.ops.size());
            request.answer(reply);
        }
    }

    std::optional<Session> session;
    std::int64_t owner = kFirstSession;
    std::int64_t zxid = 10;
    std::vector<std::string> created;
};

TEST_F(LeadershipTest, OneThatIsLostBeforeLeadCouldBeginIsNotBegun) {  // H56
    connect();
    LeaderElection election(*session, "/e", ElectionOptions{});
    std::stop_source stop;
    std::vector<std::int64_t> led;
    boost::fibers::fiber running(boost::fibers::launch::dispatch, [&] {
        election.run(
            [&](const Grant& leadership, const std::stop_token& stopped) {
                EXPECT_TRUE(leadership.held());
                EXPECT_FALSE(stopped.stop_requested());
                led.push_back(leadership.session_id());
                stop.request_stop();
                EXPECT_TRUE(stopped.stop_requested());
            },
            stop.get_token());
    });
    answer_all();  // granted, but the fiber has not run since
    ASSERT_EQ(created.size(), 1u);
    client().expire();
    runtime->run();
    owner = kNextSession;
    client().connect(owner);
    for (int i = 0; i < 20; ++i) {
        boost::this_fiber::yield();
        answer_all();
    }
    running.join();
    EXPECT_EQ(led, std::vector<std::int64_t>{kNextSession});
    EXPECT_EQ(created.size(), 2u);
}

TEST_F(LeadershipTest, WhoStepsDownDoesSoWhenTheConnectionBreaksAndNobodyElseDoes) {
    connect();
    ElectionOptions stepping_down;
    stepping_down.when_suspended = WhenSuspended::step_down;
    LeaderElection hasty(*session, "/hasty", stepping_down), patient(*session, "/patient", ElectionOptions{});
    Grant first, second;
    hasty.campaign_async(Deadline::never(), {}, [&](AcquireResult result) { first = std::move(result.value); });
    patient.campaign_async(Deadline::never(), {}, [&](AcquireResult result) { second = std::move(result.value); });
    answer_all();
    ASSERT_TRUE(first.held() && second.held());
    client().disconnect();
    EXPECT_FALSE(first.held());
    EXPECT_TRUE(second.held());
    runtime->run();
    EXPECT_TRUE(first.lost().stop_requested());
    EXPECT_FALSE(second.lost().stop_requested());
    client().connect(owner);
    runtime->run();
    EXPECT_EQ(client().count("remove"), 0u);  // its owner may still be at work
    first.release();
    EXPECT_EQ(client().count("remove"), 1u);
    EXPECT_TRUE(second.held());
}

class ElectionUnitTest : public ServedTest {
protected:
    ElectionUnitTest() { connect(); }
    static ElectionOptions layout(ElectionLayout which) {
        ElectionOptions wanted;
        wanted.layout = which;
        wanted.id = "me";
        return wanted;
    }
    std::optional<Participant> leader_of(LeaderElection& election) {
        std::optional<Participant> leader;
        EXPECT_EQ(served([&] { leader = election.leader(); }), "ok");
        return leader;
    }
};

TEST_F(ElectionUnitTest, WhatCannotWorkIsRefusedWithoutARequest) {
    ElectionOptions wanted;
    wanted.id = std::string(kRevocationRequest);
    EXPECT_EQ(code_of([&] { LeaderElection(*session, "/e", wanted); }), Errc::bad_option);
    wanted.id = std::string(100'000, 'x');
    EXPECT_EQ(code_of([&] { LeaderElection(*session, "/e", wanted); }), Errc::bad_option);
    wanted.id = "me";
    wanted.acl.emplace();
    EXPECT_EQ(code_of([&] { LeaderElection(*session, "/e", wanted); }), Errc::bad_option);
    LeaderElection election(*session, "/e");
    EXPECT_EQ(code_of([&] { (void)election.observe(nullptr); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { election.run(nullptr); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { election.campaign_async({}, {}, nullptr); }), Errc::bad_option);
    EXPECT_FALSE(election.resign());
    EXPECT_NE(election.id(), "");
    EXPECT_TRUE(client().sent.empty());
}

TEST_F(ElectionUnitTest, EachLayoutHasItsNodes) {
    const auto campaign = [this](ElectionLayout which) {
        nodes = {{"/", {}}};
        LeaderElection election(*session, "/e", layout(which));
        std::string made;
        EXPECT_EQ(served([&] {
                      const Grant grant = election.campaign();
                      EXPECT_TRUE(grant.held());
                      made = grant.node();
                      EXPECT_EQ(nodes[made].data, "me");
                      EXPECT_EQ(nodes[made].owner, owner);
                  }),
                  "ok");
        return made.substr(made.rfind('/') + 1);
    };
    EXPECT_THAT(campaign(ElectionLayout::latch), ::testing::MatchesRegex("_c_.*-latch-0000000000"));
    EXPECT_EQ(nodes["/e"].mode, CreateMode::container);
    EXPECT_THAT(campaign(ElectionLayout::selector), ::testing::MatchesRegex("_c_.*-lock-0000000000"));
    EXPECT_EQ(nodes["/e"].mode, CreateMode::container);
    EXPECT_THAT(campaign(ElectionLayout::kazoo), ::testing::MatchesRegex("[0-9a-f]*__lock__0000000000"));
    EXPECT_EQ(nodes["/e"].mode, CreateMode::persistent);
}

TEST_F(ElectionUnitTest, WithoutPermissionToMakeItADirectoryIsMissing) {
    ElectionOptions wanted;
    wanted.create_parents = false;
    LeaderElection election(*session, "/e", wanted);
    EXPECT_EQ(code_served([&] { (void)election.campaign(); }), Errc::no_parent);
    EXPECT_FALSE(nodes.contains("/e"));
}

TEST_F(ElectionUnitTest, TheLeaderIsTheFirstWhoIsThere) {
    LeaderElection election(*session, "/e");
    EXPECT_FALSE(leader_of(election));
    put("/e");
    put("/e/other");
    EXPECT_FALSE(leader_of(election));
    const std::string first = "/e/_c_00000000-0000-4000-8000-000000000009-latch-0000000001";
    const std::string second = "/e/_c_00000000-0000-4000-8000-000000000001-latch-0000000002";
    put(second, R"({"v":1,"id":"json"})");
    put(first, "10.0.0.1");
    auto leader = leader_of(election);
    ASSERT_TRUE(leader);
    EXPECT_TRUE(leader->holder);
    EXPECT_EQ(leader->path, first);
    EXPECT_EQ(leader->id, "10.0.0.1");
    EXPECT_EQ(leader->token, nodes[first].czxid);
    std::vector<Participant> candidates;
    EXPECT_EQ(served([&] { candidates = election.candidates(); }), "ok");
    ASSERT_EQ(candidates.size(), 2u);
    EXPECT_EQ(candidates[0].id, "10.0.0.1");
    EXPECT_TRUE(candidates[0].holder);
    EXPECT_EQ(candidates[1].path, second);
    EXPECT_FALSE(candidates[1].holder);

    nodes[first].data = kRevocationRequest;
    leader = leader_of(election);
    EXPECT_EQ(leader->id, "");
    EXPECT_TRUE(leader->revocation_requested);
    refusals = {{"get " + first, Rc::no_auth}};
    leader = leader_of(election);
    EXPECT_EQ(leader->path, first) << "it leads, whatever it is called";
    EXPECT_EQ(leader->id, "");
    refusals = {{"get " + first, Rc::bad_arguments}};
    EXPECT_NE(code_served([&] { (void)election.leader(); }), Errc{});
    refusals.clear();
    before_answer = [&](const std::string& what) {
        if (what == "get " + first) erase(first);
    };
    EXPECT_EQ(leader_of(election)->path, second);
    refusals = {{"children /e", Rc::no_auth}};
    EXPECT_EQ(code_served([&] { (void)election.leader(); }), Errc::no_permission);
    EXPECT_EQ(code_unserved(std::chrono::seconds(2), [&] { (void)election.leader(in(std::chrono::seconds(1))); }),
              Errc::unreachable);
}

TEST_F(ElectionUnitTest, AnIdThatIsLikeOurOwnDataIsStillOnlyAnId) {
    LeaderElection election(*session, "/e", layout(ElectionLayout::selector));
    put("/e");
    put("/e/_c_00000000-0000-4000-8000-000000000001-lock-0000000001", R"({"v":1,"id":"json"})");
    EXPECT_EQ(leader_of(election)->id, "json");
    erase("/e/_c_00000000-0000-4000-8000-000000000001-lock-0000000001");
    put("/e/_c_00000000-0000-4000-8000-000000000001-latch-0000000001", R"({"v":1,"id":"json"})");
    EXPECT_EQ(leader_of(election)->id, R"({"v":1,"id":"json"})");
}

TEST_F(ElectionUnitTest, OneRunAtATimeAndResigningEndsOneLeadership) {
    LeaderElection election(*session, "/e");
    std::stop_source stop;
    int led = 0;
    EXPECT_EQ(served([&] {
                  election.run(
                      [&](const Grant& leadership, const std::stop_token& stopped) {
                          EXPECT_TRUE(leadership.held());
                          EXPECT_FALSE(stopped.stop_requested());
                          EXPECT_EQ(code_of([&] { election.run([](auto&&...) {}); }), Errc::bad_option);
                          EXPECT_TRUE(election.resign());
                          EXPECT_TRUE(stopped.stop_requested());
                          EXPECT_FALSE(election.resign());
                          if (++led == 2) stop.request_stop();
                      },
                      stop.get_token());
              }),
              "ok");
    EXPECT_EQ(led, 2);
    EXPECT_FALSE(election.resign());
    EXPECT_EQ(served([&] { election.run([](auto&&...) { FAIL(); }, stop.get_token()); }), "ok") << "again, later";
    EXPECT_TRUE(children("/e").empty());
}

TEST_F(ElectionUnitTest, ALeadershipThatIsOverCannotBeResigned) {
    LeaderElection election(*session, "/e");
    EXPECT_EQ(served([&] {
                  EXPECT_THROW(election.run([](auto&&...) { throw std::runtime_error("of lead"); }),
                               std::runtime_error);
              }),
              "ok");
    EXPECT_FALSE(election.resign());
    EXPECT_TRUE(children("/e").empty());
}

TEST_F(ElectionUnitTest, AnObserverThatHasEndedDoesNotKeepTheSession) {
    LeaderElection election(*session, "/e");
    const auto before = core.use_count();
    auto subscription = election.observe([](const std::optional<Participant>&) {});
    runtime->run();
    EXPECT_GT(core.use_count(), before);
    subscription.reset();
    runtime->run();
    EXPECT_FALSE(client().open.empty()) << "no answer is still to come";
    EXPECT_EQ(core.use_count(), before);
    serve();
}

TEST_F(ElectionUnitTest, AnObserverThatLooksAgainLeavesNoWatch) {
    put("/e");
    LeaderElection election(*session, "/e");
    before_answer = [this](const std::string& what) {
        if (what == "children /e" && times(what) == 2)  // the read that sets the watch
            put("/e/_c_00000000-0000-4000-8000-000000000001-latch-0000000007", "", 99);
    };
    auto subscription = election.observe([](const std::optional<Participant>&) {});
    serve();
    EXPECT_GE(times("children /e"), 3u);
    subscription.reset();
    EXPECT_EQ(leftovers(), "");
}

}  // namespace
}  // namespace zkrecipes::testing
