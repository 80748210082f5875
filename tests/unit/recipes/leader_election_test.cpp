// LeaderElection on scripted handles: what happens between two steps of it.
#include <zkrecipes/leader_election.hpp>

#include <boost/fiber/all.hpp>

#include "support/session_fixture.hpp"

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
    std::int64_t owner = 0x100;
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
    owner = 0x200;
    client().connect(owner);
    for (int i = 0; i < 20; ++i) {
        boost::this_fiber::yield();
        answer_all();
    }
    running.join();
    EXPECT_EQ(led, std::vector<std::int64_t>{0x200});
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

}  // namespace
}  // namespace zkrecipes::testing
