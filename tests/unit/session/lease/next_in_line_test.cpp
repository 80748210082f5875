// Waiters that may hold on an event: heartbeats keep the lease fresh for them, and tell them if their node is gone.
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// Session timeout 6 s: the lease lasts 4 s, heartbeats come every second.
class NextInLineTest : public SessionTest {
protected:
    void SetUp() override { open_connected(); }
};

TEST_F(NextInLineTest, WhileSomebodyIsNextTheLeaseIsKeptFresh) {
    inside([&] { core->lease_committed(now()); });
    int told = 0;
    inside([&] { core->is_next("/l/waits", [&](Rc) { ++told; }); });
    for (int i = 0; i < 10; ++i) {
        runtime->advance(1s);
        const auto heartbeat = client().take("multi");
        ASSERT_EQ(heartbeat.ops.size(), 1u);
        EXPECT_EQ(heartbeat.ops[0].path, "/l/waits");
        EXPECT_EQ(heartbeat.ops[0].kind, MultiOp::Kind::check);
        Reply ok;
        ok.results.resize(1);
        heartbeat.answer(ok);
        inside([&] { EXPECT_TRUE(core->lease_clock().fresh(now())); });
    }
    EXPECT_EQ(told, 0);
    // Its node is gone: that is its own affair, and no reason to ask more often.
    runtime->advance(1s);
    Reply gone;
    gone.rc = Rc::no_node;
    client().take("multi").answer(gone);
    const auto asked = client().count("multi");
    runtime->advance(500ms);
    EXPECT_EQ(client().count("multi"), asked);
    EXPECT_EQ(told, 1);
    inside([&] { core->no_longer_next("/l/waits"); });
    runtime->advance(10s);
    EXPECT_EQ(client().count("multi"), asked);
}

TEST_F(NextInLineTest, WhoeverIsNextWithoutALeaseIsCheckedAtOnce) {
    inside([&] { core->is_next("/l/waits", {}); });  // found by a list, since the answer to its create was lost
    runtime->run();
    EXPECT_EQ(client().count("multi"), 1u);
}

TEST_F(NextInLineTest, AHeartbeatNamesThoseWhoAreNextBehindTheHolds) {
    const auto first = hold("/l/first"), second = hold("/l/second");
    std::vector<std::string> told;
    inside([&] {
        for (const std::string node : {"/l/a", "/l/b"})
            core->is_next(node, [&told, node](Rc) { told.push_back(node); });
    });
    const auto heartbeat = [this](std::size_t nodes) {
        auto out = client().take("multi");
        EXPECT_EQ(out.ops.size(), nodes);
        return out;
    };
    runtime->advance(1s);
    heartbeat(4).answer(refusal_at(3, 4));  // /l/b
    EXPECT_THAT(told, ElementsAre("/l/b"));
    heartbeat(2).answer(refusal_at(0, 2));  // the holds do not wait for what becomes of the others
    EXPECT_FALSE(first->held());
    heartbeat(1).answer(refusal_at(0, 1));  // /l/a
    EXPECT_THAT(told, ElementsAre("/l/b", "/l/a"));
    Reply ok;
    ok.results.resize(1);
    heartbeat(1).answer(ok);
    EXPECT_TRUE(second->held());
    EXPECT_EQ(client().count("multi"), 4u);
}

TEST_F(NextInLineTest, WhoeverIsNextAndMayNotReadItsNodeHarmsNoHold) {
    const auto held = hold("/l/held");
    std::vector<Rc> told;
    inside([&] { core->is_next("/l/next", [&told](Rc rc) { told.push_back(rc); }); });
    runtime->advance(1s);
    Reply refused = refusal_at(1, 2);
    refused.rc = refused.results[1].rc = Rc::no_auth;
    client().take("multi").answer(refused);
    EXPECT_THAT(told, ElementsAre(Rc::no_auth));
    const auto again = client().take("multi");
    ASSERT_EQ(again.ops.size(), 1u);
    EXPECT_EQ(again.ops[0].path, "/l/held");
    again.answer(refusal_at(0, 1));
    EXPECT_FALSE(held->held());
}

TEST_F(NextInLineTest, ARefusalThatNamesNobodyIsToldToAllWhoAreNextAndHarmsNoHold) {
    const auto held = hold("/l/held");
    std::vector<std::string> told;
    inside([&] {
        for (const std::string node : {"/l/a", "/l/b"})
            core->is_next(node, [&told, node](Rc) { told.push_back(node); });
    });
    runtime->advance(1s);
    Reply refused;
    refused.rc = Rc::no_auth;
    client().take("multi").answer(refused);
    EXPECT_THAT(told, ElementsAre("/l/a", "/l/b"));
    EXPECT_TRUE(held->held());
    const auto again = client().take("multi");
    ASSERT_EQ(again.ops.size(), 1u);
    EXPECT_EQ(again.path, "/l/held") << "it is asked about by itself";
    again.answer(refusal_at(0, 1));
    EXPECT_FALSE(held->held());
}

TEST_F(NextInLineTest, ManyWhoAreNextAreCheckedInRequestsOfBoundedSize) {
    inside([&] {
        for (int i = 0; i < 400; ++i) core->is_next("/l/" + std::string(600, 'n') + std::to_string(i), {});
    });
    runtime->run();
    ASSERT_EQ(client().count("multi"), 2u);
    std::size_t named = 0;
    for (const Request& check : client().open) named += check.ops.size();
    EXPECT_EQ(named, 400u);
}

}  // namespace
}  // namespace zkrecipes::testing
