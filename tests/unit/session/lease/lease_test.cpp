#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Session timeout 6 s: the lease lasts 4 s, heartbeats come every second.
class SessionLeaseTest : public SessionTest {
protected:
    void SetUp() override { open_connected(); }
};

TEST_F(SessionLeaseTest, HeartbeatsCheckTheHeldNodesAndOnlyWhileSomethingIsHeld) {
    runtime->advance(10s);
    EXPECT_EQ(client().count("multi"), 0u);
    const auto held = hold("/l/n");
    runtime->advance(1s);
    ASSERT_EQ(client().count("multi"), 1u);
    const auto heartbeat = client().take("multi");
    ASSERT_EQ(heartbeat.ops.size(), 1u);
    EXPECT_EQ(heartbeat.ops[0].path, "/l/n");
    EXPECT_EQ(heartbeat.ops[0].kind, MultiOp::Kind::check);
    Reply ok;
    ok.results.resize(1);
    heartbeat.answer(ok);
    runtime->advance(1s);
    for (int i = 0; i < 20; ++i) {
        commit_heartbeats();
        runtime->advance(1s);
        EXPECT_TRUE(held->held());
    }
    EXPECT_EQ(client().count("multi"), 22u);
    inside([&] { core->end_hold(held); });
    client().take("remove").answer({});
    commit_heartbeats();
    runtime->advance(10s);
    EXPECT_EQ(client().count("multi"), 22u);
}

TEST_F(SessionLeaseTest, WithoutCommittedHeartbeatsTheHoldIsLostWhenTheLeaseEnds) {
    const auto held = hold("/l/n");
    runtime->advance(4s - 1ms);
    EXPECT_TRUE(held->held());
    EXPECT_FALSE(held->lost().stop_requested());
    runtime->advance(1ms);
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(held->lost().stop_requested());
    EXPECT_EQ(core->state(), SessionState::connected) << "the connection alone proves nothing";
}

TEST_F(SessionLeaseTest, AnswersToReadsDoNotExtendTheLease) {
    const auto held = hold("/l/n");
    for (int i = 0; i < 8; ++i) {
        inside([&] { core->exists("/l", [](Rc, const NodeStat&, Instant) {}); });
        client().take("exists").answer({});
        runtime->advance(500ms);
    }
    EXPECT_FALSE(held->held());
}

TEST_F(SessionLeaseTest, ACommitThatArrivesAfterTheLeasePassedRevivesNothing) {
    const auto held = hold("/l/n");
    runtime->advance(1s);
    const auto heartbeat = client().take("multi");
    runtime->freeze_for(3500ms);  // the process stood still; its timer has not fired yet
    Reply ok;
    ok.results.resize(1);
    heartbeat.answer(ok);
    EXPECT_FALSE(held->held());
    runtime->run();
    EXPECT_TRUE(held->lost().stop_requested());
    EXPECT_FALSE(held->held());
}

TEST_F(SessionLeaseTest, AnEndThatOnlyTheOwnerHasSeenIsToldByTheNextCommit) {
    const auto held = hold("/l/n"), other = hold("/l/m");
    runtime->advance(1s);
    const auto heartbeat = client().take("multi");
    runtime->freeze_for(3s);
    EXPECT_FALSE(held->held());
    runtime->freeze_for(-1ms);  // the clock as the session read it, just before the owner did
    Reply ok;
    ok.results.resize(2);
    heartbeat.answer(ok);
    runtime->run();
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(held->lost().stop_requested());
    EXPECT_TRUE(other->held());
    EXPECT_FALSE(other->lost().stop_requested());
}

TEST_F(SessionLeaseTest, ALeaseCountsFromTheSendingOfTheWrite) {
    const auto held = hold("/l/n");
    runtime->advance(1s);
    const auto heartbeat = client().take("multi");
    runtime->freeze_for(1500ms);
    Reply ok;
    ok.results.resize(1);
    heartbeat.answer(ok);
    EXPECT_EQ(held->remaining_lease(), 2500ms) << "not 4 s after the answer";
}

TEST_F(SessionLeaseTest, AfterAStandstillLostFiresAtTheFirstStepOfTheProtocolLane) {
    const auto held = hold("/l/n");
    runtime->freeze_for(1h);
    EXPECT_FALSE(held->held()) << "read from the clock, before anything could run";
    runtime->run();
    EXPECT_TRUE(held->lost().stop_requested());
}

TEST_F(SessionLeaseTest, ANewHoldBeginsOnARenewedLeaseWhileTheOldOneStaysLost) {
    const auto old = hold("/l/a");
    runtime->advance(3s);
    runtime->freeze_for(1s);
    const auto fresh = hold("/l/b");
    ASSERT_TRUE(fresh);
    EXPECT_TRUE(fresh->held());
    EXPECT_FALSE(old->held());
}

TEST_F(SessionLeaseTest, NoHoldBeginsOnALeaseThatIsNotFresh) {
    inside([&] {
        EXPECT_EQ(core->begin_hold("/l/n", 7), nullptr) << "never proved";
        core->lease_committed(now());
    });
    runtime->advance(2s + 1ms);
    inside([&] { EXPECT_EQ(core->begin_hold("/l/n", 7), nullptr) << "less than a third of the timeout left"; });
    Rc renewed{};
    inside([&] {
        core->renew_lease({"/l/n"}, [&](Rc rc, Instant) {
            renewed = rc;
            EXPECT_NE(core->begin_hold("/l/n", 7), nullptr);
        });
    });
    commit_heartbeats();
    EXPECT_EQ(renewed, Rc::ok);
}

TEST_F(SessionLeaseTest, WhatTheClientRefusedByItselfIsNoTouch) {
    const auto sure_for_after = [&](Rc rc) {
        const auto before = hold("/l/before");
        runtime->freeze_for(2s);
        inside([&] { core->exists("/l", [](Rc, const NodeStat&, Instant) {}); });
        Reply reply;
        reply.rc = rc;
        client().take("exists").answer(reply);
        runtime->freeze_for(1600ms);  // enough for a ping to have carried a touch
        const auto after = hold("/l/after");
        return after->remaining_lease();
    };
    EXPECT_EQ(sure_for_after(Rc::too_large), 5940ms - 3600ms) << "since the connect the leader has heard nothing";
    EXPECT_EQ(sure_for_after(Rc::no_node), 4s);
}

TEST_F(SessionLeaseTest, AFailingCheckEndsExactlyThatHoldAndTheRestIsCheckedAtOnce) {
    const auto a = hold("/l/a"), b = hold("/l/b"), c = hold("/l/c");
    runtime->advance(1s);
    client().take("multi").answer(refusal_at(1, 3));
    runtime->run();
    EXPECT_TRUE(a->held());
    EXPECT_FALSE(b->held());
    EXPECT_TRUE(b->lost().stop_requested());
    EXPECT_TRUE(c->held());
    ASSERT_EQ(client().open.back().op, "multi");
    EXPECT_EQ(client().open.back().ops.size(), 2u);
    runtime->advance(2s);
    EXPECT_EQ(commit_heartbeats(), 1);
    runtime->advance(1500ms);
    EXPECT_TRUE(a->held()) << "renewed by the second check";
    EXPECT_FALSE(c->lost().stop_requested());
}

TEST_F(SessionLeaseTest, AFailingCheckThatNamesNoNodeIsRepeatedOneByOne) {
    const auto a = hold("/l/a"), b = hold("/l/b");
    runtime->advance(1s);
    Reply reply;
    reply.rc = Rc::no_node;
    client().take("multi").answer(reply);
    Reply ok;
    ok.results.resize(1);
    client().take("multi").answer(ok);
    client().take("multi").answer(reply);
    EXPECT_TRUE(a->held());
    EXPECT_FALSE(b->held());
}

TEST_F(SessionLeaseTest, AnUnknownAnswerToAHeartbeatProvesNothing) {
    const auto held = hold("/l/n");
    runtime->advance(1s);
    client().disconnect();
    EXPECT_TRUE(held->held());
    runtime->advance(3s);
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(held->lost().stop_requested()) << "told without any server";
    EXPECT_EQ(core->state(), SessionState::suspended);
}

TEST_F(SessionLeaseTest, AShortDisconnectIsSurvivedByAHeartbeatRightAfterIt) {
    const auto held = hold("/l/n");
    runtime->advance(900ms);
    client().disconnect();
    runtime->advance(2s);
    client().connect(kFirstSession);
    EXPECT_EQ(commit_heartbeats(), 1);
    runtime->advance(3s);
    EXPECT_TRUE(held->held());
}

TEST_F(SessionLeaseTest, TheFirstRequestAfterAReconnectIsTheHeartbeat) {
    RecordingObserver waiter;  // asks for something at once, as all that wait do
    waiter.then = [&] { core->children("/l", [](Rc, const std::vector<std::string>&, const NodeStat&, Instant) {}); };
    WatchId unwanted = 0;
    inside([&] { unwanted = core->watch_node("/w", {}); });
    client().take("get").answer({});
    const auto held = hold("/l/n");
    runtime->advance(600ms);  // its own node is watched by now
    client().disconnect();
    inside([&] {
        core->add_observer(waiter);
        core->unwatch(unwanted);          // taken off the server with the next connection
        core->delete_node("/l/deleted");  // likewise
    });
    const std::size_t sent = client().sent.size();
    client().connect(kFirstSession);
    EXPECT_THAT(std::vector(client().sent.begin() + static_cast<std::ptrdiff_t>(sent), client().sent.end()),
                ElementsAre("multi", "remove_watches", "remove", "get", "children"));
    const Request first = client().take();
    EXPECT_TRUE(first.heartbeat);
    EXPECT_EQ(first.path, "/l/n");
    inside([&] { core->remove_observer(waiter); });
}

TEST_F(SessionLeaseTest, OnlyHeartbeatsMayOvertakeWhatWaitsToBeSent) {
    const auto held = hold("/l/n");
    runtime->advance(1s);
    EXPECT_TRUE(client().take("multi").heartbeat);
    inside([&] { core->renew_lease({"/l/m"}, [](Rc, Instant) {}); });
    EXPECT_FALSE(client().take("multi").heartbeat) << "it stands for the requests before it";
}

TEST_F(SessionLeaseTest, ATimeoutThatShrankEndsTheLeaseEarlier) {
    const auto held = hold("/l/n");
    runtime->advance(900ms);
    client().disconnect();
    client().connect(kFirstSession, 4500ms);
    runtime->advance(2100ms - 1ms);
    EXPECT_TRUE(held->held());
    runtime->advance(1ms);
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(held->lost().stop_requested());
}

TEST_F(SessionLeaseTest, AnExpiredSessionEndsEveryHoldAtOnceAndANewLeaseDoesNotSpeakForThem) {
    const auto held = hold("/l/n");
    client().expire();
    EXPECT_FALSE(held->held());
    runtime->run();
    EXPECT_TRUE(held->lost().stop_requested());
    client().connect(kNextSession);
    const auto fresh = hold("/l/m");
    EXPECT_TRUE(fresh->held());
    EXPECT_FALSE(held->held());
    bool told = false;
    inside([&] {
        core->end_hold(held, [&](bool gone) {
            told = true;
            EXPECT_FALSE(gone);
        });
    });
    runtime->run();
    EXPECT_TRUE(told);
    EXPECT_EQ(client().count("remove"), 0u) << "the node went with its session";
}

TEST_F(SessionLeaseTest, AShortHoldCostsTheDeleteOnly) {
    const auto held = hold("/l/n");
    runtime->advance(499ms);
    bool gone = false;
    inside([&] { core->end_hold(held, [&](bool is) { gone = is; }); });
    client().take("remove").answer({});
    runtime->advance(10s);
    EXPECT_THAT(client().sent, ElementsAre("remove"));
    EXPECT_TRUE(gone);
    EXPECT_FALSE(held->held());
    EXPECT_FALSE(held->lost().stop_requested()) << "given back, not lost";
}

TEST_F(SessionLeaseTest, ALongerHoldIsWatchedAndItsReleaseStillCostsTheDeleteOnly) {
    const auto held = hold("/l/n", 7);
    runtime->advance(500ms);
    const auto watch = client().take("get");
    ASSERT_TRUE(watch.answer);
    EXPECT_TRUE(watch.watch);
    Reply reply;
    reply.stat.czxid = 7;
    watch.answer(reply);
    inside([&] { core->end_hold(held); });
    EXPECT_THAT(client().sent, ElementsAre("get", "remove"));
    client().take("remove").answer({});
    client().fire(WatchEventType::deleted, "/l/n");
    EXPECT_FALSE(held->lost().stop_requested());
}

TEST_F(SessionLeaseTest, DeletingTheNodeOfAWatchedHoldLosesIt) {
    const auto held = hold("/l/n", 7);
    runtime->advance(500ms);
    Reply reply;
    reply.stat.czxid = 7;
    client().take("get").answer(reply);
    client().fire(WatchEventType::changed, "/l/n");
    EXPECT_TRUE(held->held()) << "new data is no loss";
    client().take("get").answer(reply);
    client().fire(WatchEventType::deleted, "/l/n");
    EXPECT_FALSE(held->held());
    runtime->run();
    EXPECT_TRUE(held->lost().stop_requested());
}

TEST_F(SessionLeaseTest, AHoldOfSeveralNodesIsCheckedWatchedLostAndGivenBackAsOne) {
    const auto single = hold("/l/single");
    std::shared_ptr<Hold> several, ended;
    inside([&] {
        several = core->begin_hold(std::vector<std::string>{"/l/a", "/l/b"}, 7);
        ended = core->begin_hold(std::vector<std::string>{"/l/c", "/l/d"}, 7);
    });
    bool gone = false;
    inside([&] { core->end_hold(ended, [&](bool is) { gone = is; }); });
    const auto release = client().take("multi");
    ASSERT_EQ(release.ops.size(), 2u);
    EXPECT_EQ(release.ops[0].kind, MultiOp::Kind::remove);
    EXPECT_EQ(release.ops[1].path, "/l/d");
    Reply refused;
    refused.rc = Rc::no_node;  // an operator was faster with one of them
    release.answer(refused);
    EXPECT_EQ(client().count("remove"), 2u);
    client().take("remove").answer({});
    EXPECT_FALSE(gone) << "one of them is still there";
    client().take("remove").answer({});
    EXPECT_TRUE(gone);

    runtime->advance(500ms);
    EXPECT_EQ(client().count("get"), 3u) << "each node is watched";
    Reply watched;
    watched.stat.czxid = 7;
    for (int i = 0; i < 3; ++i) client().take("get").answer(watched);
    runtime->advance(500ms);
    const auto check = client().take("multi");
    ASSERT_EQ(check.ops.size(), 3u);
    Reply reply;
    reply.rc = Rc::no_node;
    reply.results = {{Rc::ok, "", {}}, {Rc::ok, "", {}}, {Rc::no_node, "", {}}};
    check.answer(reply);  // the second node of the second hold
    EXPECT_FALSE(several->held());
    EXPECT_TRUE(single->held());
    runtime->run();
    EXPECT_TRUE(several->lost().stop_requested());
    EXPECT_EQ(client().take("multi").ops.size(), 1u) << "the other hold is asked about anew";
}

TEST_F(SessionLeaseTest, ANodeThatIsGoneWhenTheWatchIsSetIsALoss) {
    const auto held = hold("/l/n");
    runtime->advance(500ms);
    Reply reply;
    reply.rc = Rc::no_node;
    client().take("get").answer(reply);
    EXPECT_FALSE(held->held());
}

TEST_F(SessionLeaseTest, ANodeThatWasDeletedAndMadeAgainIsALoss) {
    const auto held = hold("/l/n", 7);
    runtime->advance(500ms);
    Reply reply;
    reply.stat.czxid = 8;
    client().take("get").answer(reply);
    EXPECT_FALSE(held->held());
}

TEST_F(SessionLeaseTest, OnlyTheRequestToGiveWayIsOneAndOnlyForWhoeverAsked) {
    const auto held = hold("/l/n", 7);
    runtime->advance(500ms);
    Reply reply;
    reply.stat.czxid = 7;
    reply.text = kRevocationRequest;
    client().take("get").answer(reply);
    runtime->run();
    EXPECT_FALSE(held->revocation().stop_requested()) << "nobody has asked to be told";
    inside([&] { core->watch_revocation(held); });
    const auto read = client().take("get");
    ASSERT_TRUE(read.answer) << "what was written before is read";
    reply.text = "something else";
    read.answer(reply);
    runtime->run();
    EXPECT_FALSE(held->revocation().stop_requested());
    client().fire(WatchEventType::changed, "/l/n");
    reply.text = kRevocationRequest;
    client().take("get").answer(reply);
    runtime->run();
    EXPECT_TRUE(held->revocation().stop_requested());
    EXPECT_TRUE(held->held()) << "it is a request";
}

class SessionFirstLeaseTest : public SessionTest {};

TEST_F(SessionFirstLeaseTest, ASlowConnectCountsFromTheOpeningOfTheHandle) {
    open();
    runtime->advance(5400ms);
    client().connect(kFirstSession);
    EXPECT_EQ(hold("/l/n"), nullptr) << "the connect request may have gone out 0.9 T ago";
}

TEST_F(SessionLeaseTest, AWatchThatCouldNotBeSetIsSetWhenConnectedAgain) {
    const auto held = hold("/l/n");
    runtime->advance(500ms);
    client().disconnect();
    client().connect(kFirstSession);
    EXPECT_EQ(client().count("get"), 2u);
    EXPECT_TRUE(held->held());
}

TEST_F(SessionLeaseTest, AWatchThatAServerHadNoTimeForIsSetWithTheNextHeartbeat) {
    const auto held = hold("/l/n");
    runtime->advance(500ms);
    Reply throttled;
    throttled.rc = Rc::throttled;
    client().take("get").answer(throttled);
    runtime->advance(500ms);
    EXPECT_EQ(client().count("get"), 2u);
    EXPECT_TRUE(held->held());
}

TEST_F(SessionLeaseTest, ALostHoldKeepsItsNodeUntilItIsReleased) {
    const auto held = hold("/l/n");
    runtime->advance(4s);
    ASSERT_FALSE(held->held());
    EXPECT_EQ(client().count("remove"), 0u);
    inside([&] { core->end_hold(held); });
    EXPECT_EQ(client().count("remove"), 1u);
}

TEST_F(SessionLeaseTest, AHeartbeatThatIsNotPermittedIsNotRepeatedInAHotLoop) {
    const auto held = hold("/l/n");
    Reply reply;
    reply.rc = Rc::no_auth;
    for (int i = 0; i < 40; ++i) {
        runtime->advance(100ms);
        if (const auto heartbeat = client().take("multi"); heartbeat.answer) heartbeat.answer(reply);
    }
    EXPECT_LE(client().count("multi"), 4u);
    EXPECT_FALSE(held->held());
}

TEST_F(SessionLeaseTest, ASecondHeartbeatIsNotSentBesideAnUnansweredOne) {
    const auto held = hold("/l/n");
    runtime->advance(3500ms);
    EXPECT_EQ(client().count("multi"), 1u);
    EXPECT_EQ(commit_heartbeats(), 1);
    runtime->advance(1ms);
    EXPECT_EQ(client().count("multi"), 2u) << "it is overdue by now";
    EXPECT_TRUE(held->held());
}

TEST_F(SessionLeaseTest, LossesAreToldBeforeTheStateThatComesWithThem) {
    const auto held = hold("/l/n");
    bool told_before = false;
    const auto subscription = core->watch_state([&](SessionState state) {
        if (state == SessionState::lost) told_before = held->lost().stop_requested();
    });
    runtime->run();
    client().expire();
    runtime->run();
    EXPECT_TRUE(told_before);
}

TEST_F(SessionLeaseTest, TheEphemeralBudgetIsGivenBackByTheEndOfTheSession) {
    inside([&] {
        EXPECT_TRUE(core->reserve_ephemeral(890'000));
        EXPECT_FALSE(core->reserve_ephemeral(10'000));
        core->release_ephemeral(890'000);
        EXPECT_TRUE(core->reserve_ephemeral(890'000));
    });
    client().expire();
    client().connect(kNextSession);
    inside([&] { EXPECT_TRUE(core->reserve_ephemeral(890'000)); });
}

}  // namespace
}  // namespace zkrecipes::testing
