#include <optional>

#include "session/common/internal_thread.hpp"
#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using SessionCoreTest = SessionTest;

TEST_F(SessionCoreTest, TellsObserversOfEachConnectAndEachLoss) {
    open();
    RecordingObserver observer;
    inside([&] { core->add_observer(observer); });
    client().connect(1);
    client().disconnect();
    client().connect(1);
    client().expire();
    EXPECT_THAT(observer.told, ElementsAre("connected", "suspended", "connected again", "lost"));
    EXPECT_EQ(clients->clients.size(), 2u);
    EXPECT_TRUE(clients->clients[0]->closed);
    client().connect(2);
    EXPECT_EQ(observer.told.back(), "connected");
    EXPECT_EQ(core->info().incarnation, 2u);
    EXPECT_EQ(core->info().session_id, 2);
    inside([&] { core->remove_observer(observer); });
}

TEST_F(SessionCoreTest, LateWordsOfAFormerHandleChangeNothing) {
    open_connected(1);
    const auto first = clients->clients[0];
    first->expire();
    client().connect(2);
    first->say(ClientState::connecting);
    first->say(ClientState::expired);
    EXPECT_EQ(core->state(), SessionState::connected);
    EXPECT_EQ(clients->clients.size(), 2u);
}

TEST_F(SessionCoreTest, AnswersOfAFormerSessionAreNeverOk) {
    open_connected(1);
    Rc answered{};
    inside([&] {
        core->create("/n", "", Acl::open(), CreateMode::ephemeral,
                     [&](Rc rc, const std::string&, const NodeStat&, Instant) { answered = rc; });
    });
    const auto late = client().take();
    clients->clients[0]->say(ClientState::expired);
    client().connect(2);
    late.answer({});
    EXPECT_EQ(answered, Rc::session_expired);
}

TEST_F(SessionCoreTest, RequestsWhileNotConnectedAreAnsweredLaterAndNeverSent) {
    open();
    int answers = 0;
    Rc answered{};
    inside([&] {
        core->exists("/n", [&](Rc rc, const NodeStat&, Instant) {
            ++answers;
            answered = rc;
        });
        EXPECT_EQ(answers, 0) << "answered from inside the request";
    });
    runtime->run();
    EXPECT_EQ(answers, 1);
    EXPECT_EQ(answered, Rc::not_connected);
    EXPECT_THAT(client().sent, IsEmpty());
}

TEST_F(SessionCoreTest, SentAtIsTheTimeBeforeTheRequestWentOut) {
    open_connected();
    const Instant sent = now();
    Instant told{};
    inside([&] { core->sync("/", [&](Rc, Instant sent_at) { told = sent_at; }); });
    runtime->advance(50ms);
    client().take("sync").answer({});
    EXPECT_EQ(told, sent);
}

TEST_F(SessionCoreTest, WhatIsLetGoIsDestroyedAfterTheLockWasReleased) {
    open();
    std::vector<int> order;
    inside([&] {
        core->let_go(std::shared_ptr<void>(nullptr, [&](void*) {
            order.push_back(2);
            inside([&] { order.push_back(3); });
        }));
        order.push_back(1);
    });
    EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(SessionCoreTest, ACancelledTimerDoesNotRunEvenWhenItIsDue) {
    open();
    bool ran = false;
    TimerId timer = 0;
    inside([&] { timer = core->at(now() + 10ms, [&] { ran = true; }); });
    runtime->freeze_for(20ms);
    inside([&] { EXPECT_TRUE(core->cancel(timer)); });
    runtime->run();
    EXPECT_FALSE(ran);
}

TEST_F(SessionCoreTest, ObserversMayRemoveThemselvesAndOthersInACallback) {
    open();
    RecordingObserver first, second, third, added;
    inside([&] {
        for (auto* observer : {&first, &second, &third}) core->add_observer(*observer);
    });
    first.then = [&] {
        core->remove_observer(first);
        core->remove_observer(second);
        core->add_observer(added);
    };
    client().connect(1);
    EXPECT_THAT(first.told, ElementsAre("connected"));
    EXPECT_THAT(second.told, IsEmpty());
    EXPECT_THAT(third.told, ElementsAre("connected"));
    EXPECT_THAT(added.told, IsEmpty()) << "told of something that was before its time";
    client().disconnect();
    EXPECT_THAT(added.told, ElementsAre("suspended"));
    inside([&] {
        core->remove_observer(third);
        core->remove_observer(added);
    });
}

TEST_F(SessionCoreTest, WaitConnectedAnswersFalseAtTheDeadline) {
    open();
    bool connected = true;
    const Deadline deadline(runtime->steady_now() + 500ms);
    runtime->while_running([&] { connected = core->wait_connected(deadline, {}); });
    EXPECT_FALSE(connected);
    inside([&] { EXPECT_EQ(core->leftovers(), ""); });
}

TEST_F(SessionCoreTest, WaitConnectedIsEndedByAStop) {
    open();
    std::stop_source stop;
    bool connected = true;
    runtime->at(now() + 1s, [&] { stop.request_stop(); });
    runtime->while_running([&] { connected = core->wait_connected(Deadline::never(), stop.get_token()); });
    EXPECT_FALSE(connected);
    inside([&] { EXPECT_EQ(core->leftovers(), ""); });
}

TEST_F(SessionCoreTest, WaitConnectedReturnsWhenConnected) {
    open();
    bool connected = false;
    runtime->at(now() + 1s, [&] { client().connect(1); });
    runtime->while_running([&] { connected = core->wait_connected(Deadline::never(), {}); });
    EXPECT_TRUE(connected);
}

TEST_F(SessionCoreTest, WaitConnectedIsEndedByTheClose) {
    open();
    runtime->at(now() + 1s, [&] {
        const InternalThread internal;  // which does not wait
        core->close();
    });
    std::optional<Errc> thrown;
    const Deadline deadline(runtime->steady_now() + 5s);
    runtime->while_running([&] {
        try {
            core->wait_connected(deadline, {});
        } catch (const Error& error) {
            thrown = error.errc();
        }
    });
    EXPECT_EQ(thrown, Errc::closed);
}

TEST_F(SessionCoreTest, CloseFailsEverybodyAndClosesTheHandle) {
    open_connected();
    RecordingObserver observer;
    const auto held = hold("/lock/n");
    Rc answered = Rc::ok;
    inside([&] {
        core->add_observer(observer);
        core->get("/x", [&](Rc rc, const std::string&, const NodeStat&, Instant) { answered = rc; });
    });
    runtime->while_running([&] { core->close(); });
    EXPECT_EQ(core->state(), SessionState::closed);
    EXPECT_THAT(observer.told, ElementsAre("closed"));
    EXPECT_EQ(observer.why_closed, Errc::closed);
    EXPECT_FALSE(held->held());
    EXPECT_TRUE(held->lost().stop_requested());
    EXPECT_EQ(answered, Rc::closed);
    EXPECT_TRUE(client().closed);
    EXPECT_THROW(core->wait_connected(Deadline::passed(), {}), Error);
    runtime->while_running([&] { core->close(); });
}

TEST_F(SessionCoreTest, CloseIsBoundedWhenTheHandleDoesNotEnd) {
    open_connected();
    client().frozen = true;
    const Instant began = now();
    Instant ended{};
    runtime->while_running([&] {
        core->close();
        ended = now();
    });
    EXPECT_EQ(ended - began, Nanoseconds(options.close_timeout));
    EXPECT_EQ(core->state(), SessionState::closed);
    client().thaw();
    destroy();
    EXPECT_TRUE(runtime->stopped());
}

TEST_F(SessionCoreTest, CloseLetsTheNodeCleanerFinishFirst) {
    open_connected();
    bool gone = false;
    inside([&] { core->delete_node("/lock/n", [&](bool is) { gone = is; }); });
    runtime->at(now() + 200ms, [&] {
        EXPECT_FALSE(client().closed);
        client().take("remove").answer({});
    });
    runtime->while_running([&] { core->close(); });
    EXPECT_TRUE(gone);
    EXPECT_TRUE(client().closed);
}

TEST_F(SessionCoreTest, CloseWaitsForTheNodeCleanerForHalfOfItsTime) {
    open_connected();
    inside([&] { core->delete_node("/lock/n"); });
    {
        const InternalThread internal;  // which does not wait
        core->close();
    }
    runtime->advance(Nanoseconds(options.close_timeout) / 2 - 1ms);
    EXPECT_FALSE(client().closed);
    runtime->advance(1ms);
    EXPECT_TRUE(client().closed);
}

TEST_F(SessionCoreTest, NothingIsHeldWhileItIsBeingClosed) {
    open_connected();
    const auto held = hold("/lock/held");
    inside([&] { core->delete_node("/lock/n"); });  // for which the close waits
    {
        const InternalThread internal;
        core->close();
    }
    ASSERT_FALSE(client().closed);
    EXPECT_FALSE(held->held());
    inside([&] {
        EXPECT_EQ(core->begin_hold("/lock/late", 8), nullptr);
        core->lease_committed(now());  // an answer to what was sent before
        EXPECT_EQ(core->begin_hold("/lock/late", 8), nullptr);
    });
    EXPECT_EQ(core->stats().remaining_lease, 0ns);
}

TEST_F(SessionCoreTest, WhatWasToBeDeletedEndsWithItsSession) {
    open_connected();
    client().disconnect();
    std::vector<bool> told;
    inside([&] { core->delete_node("/lock/n", [&](bool gone) { told.push_back(gone); }); });
    client().expire();
    EXPECT_THAT(told, ElementsAre(false));
    client().connect(kNextSession);
    runtime->run();
    EXPECT_EQ(client().count("remove"), 0u) << "it may be another one by now";
    inside([&] { EXPECT_EQ(core->leftovers(), ""); });
}

TEST_F(SessionCoreTest, WatchesEndWithTheirSession) {
    open_connected();
    int fired = 0;
    WatchListener listener;
    listener.fired = [&](WatchEventType) { ++fired; };
    inside([&] { core->watch_node("/n", listener); });
    client().take("get").answer({});
    client().expire();
    client().connect(kNextSession);
    inside([&] { EXPECT_EQ(core->leftovers(), ""); });
    client().fire(WatchEventType::changed, "/n");
    EXPECT_EQ(fired, 0);
    inside([&] { core->watch_node("/n", listener); });
    EXPECT_EQ(client().count("get"), 1u) << "the servers know of no watch of the new session";
}

TEST_F(SessionCoreTest, CloseGoesOnCleaningUpWhenTheConnectionComesBack) {
    open_connected();
    client().disconnect();
    bool gone = false;
    inside([&] { core->delete_node("/lock/n", [&](bool is) { gone = is; }); });
    runtime->at(now() + 200ms, [&] {
        client().connect(kFirstSession);
        if (const Request request = client().take("remove"); request.answer) request.answer({});
    });
    runtime->while_running([&] { core->close(); });
    EXPECT_TRUE(gone);
    EXPECT_TRUE(client().closed);
}

TEST_F(SessionCoreTest, TheLanesEndWithTheCore) {
    open_connected();
    core.reset();
    runtime->run();
    EXPECT_TRUE(client().closed);
    EXPECT_TRUE(runtime->stopped());
    EXPECT_EQ(clients->clients[0].use_count(), 1) << "somebody still holds the handle";
}

TEST_F(SessionCoreTest, AWeakPointerKeepsNeitherTheSessionOpenNorItsParts) {
    open_connected();
    const std::weak_ptr<internal::SessionCore> weak = core->weak_from_this();
    EXPECT_EQ(weak.lock(), core);
    EXPECT_EQ(core->shared_from_this(), core);
    core.reset();
    EXPECT_EQ(weak.lock(), nullptr) << "a closed session is not opened again, although its handle is still closing";
    const auto parts = runtime.use_count();
    runtime->run();
    EXPECT_TRUE(client().closed);
    EXPECT_LT(runtime.use_count(), parts) << "the object lives on";
}

TEST_F(SessionCoreTest, TheLastPointerMayBeDroppedUnderTheLock) {
    open_connected();
    core->run_locked([this] { core.reset(); });
    runtime->run();
    EXPECT_TRUE(client().closed);
    EXPECT_TRUE(runtime->stopped());
}

TEST_F(SessionCoreTest, TheLastPointerOfAClosedSessionMayBeDroppedUnderTheLock) {
    open_connected();
    runtime->while_running([&] { core->close(); });
    EXPECT_FALSE(runtime->stopped());
    core->run_locked([this] { core.reset(); });
    runtime->run();
    EXPECT_TRUE(runtime->stopped());
}

TEST_F(SessionCoreTest, AHandleThatCannotBeOpenedIsThrownAtFirstAndTriedAgainLater) {
    clients->refuse = true;
    {
        const InternalThread internal;  // which does not wait for lanes: this thread moves them
        EXPECT_THROW(open(), Error);
    }
    runtime->run();
    runtime = std::make_shared<FakeRuntime>();
    clients = std::make_shared<FakeClientFactory>(runtime);
    open_connected();
    clients->refuse = true;
    client().expire();
    EXPECT_EQ(core->state(), SessionState::lost);
    runtime->advance(10s);
    clients->refuse = false;
    runtime->advance(10s);
    ASSERT_EQ(clients->clients.size(), 2u);
    client().connect(2);
    EXPECT_EQ(core->state(), SessionState::connected);
}

TEST_F(SessionCoreTest, CredentialsGoToEveryHandleAndHoldBackConnected) {
    options.auth.push_back({"digest", "u:p"});
    open_connected(1);
    EXPECT_EQ(client().auths.size(), 1u);
    EXPECT_EQ(core->state(), SessionState::connecting);
    client().answer_auth(Rc::ok);
    EXPECT_EQ(core->state(), SessionState::connected);
    client().expire();
    EXPECT_EQ(client().auths.size(), 1u);
    client().connect(2);
    EXPECT_EQ(core->state(), SessionState::lost);
    client().answer_auth(Rc::ok);
    EXPECT_EQ(core->state(), SessionState::connected);
}

TEST_F(SessionCoreTest, RefusedCredentialsCloseTheSessionWithAReason) {
    options.auth.push_back({"digest", "u:p"});
    open_connected(1);
    client().answer_auth(Rc::auth_failed);
    runtime->run();
    EXPECT_EQ(core->state(), SessionState::closed);
    try {
        core->wait_connected(Deadline::passed(), {});
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::auth_failed);
        EXPECT_THAT(error.what(), ::testing::HasSubstr("SessionOptions::auth"));
    }
}

TEST_F(SessionCoreTest, HoldsAreShownFromTheOldestGrantOnAndKeptNodesAreNot) {
    open_connected();
    const auto kept = hold("/l/kept"), younger = hold("/l/younger"), older = hold("/l/older");
    const auto grant = [this](const std::shared_ptr<Hold>& to, const std::string& path, FencingToken token) {
        WaitRecord wait;
        inside([&] {
            core->wait_begins(wait, core->label("SharedLock", "shared", path));
            core->granted(wait, to->record(), token);
        });
    };
    grant(older, "/older", 5);
    runtime->advance(100ms);
    grant(younger, "/younger", 6);
    runtime->advance(10ms);
    const auto shown = core->holds();
    ASSERT_THAT(shown, SizeIs(2));
    EXPECT_EQ(shown[0].path, "/older");
    EXPECT_EQ(shown[0].recipe, "SharedLock");
    EXPECT_EQ(shown[0].mode, "shared");
    EXPECT_EQ(shown[0].token, 5);
    EXPECT_THAT(shown[0].nodes, ElementsAre("/l/older"));
    EXPECT_EQ(shown[0].held_for, 110ms);
    EXPECT_EQ(shown[0].remaining_lease, older->remaining_lease());
    EXPECT_EQ(shown[1].path, "/younger");
    EXPECT_EQ(shown[1].held_for, 10ms);
    for (const auto& each : {kept, younger, older}) inside([&] { core->end_hold(each); });
    EXPECT_THAT(core->holds(), IsEmpty());
}

TEST_F(SessionCoreTest, AnAnswerIsTheSignOfLifeFromWhichALossIsCounted) {
    open_connected();
    runtime->advance(10s);
    inside([&] { core->sync("/", [](Rc, Instant) {}); });
    client().take("sync").answer({});
    client().disconnect();
    runtime->advance(options.timeout - 1ms);
    EXPECT_EQ(core->state(), SessionState::suspended);
    runtime->advance(1ms);
    EXPECT_EQ(core->state(), SessionState::lost);
}

TEST_F(SessionCoreTest, ALateAnswerIsNudgedEveryHundredMilliseconds) {
    open_connected();
    inside([&] { core->sync("/", [](Rc, Instant) {}); });
    runtime->advance(99ms);
    EXPECT_EQ(client().touches, 0);
    runtime->advance(1ms);
    EXPECT_EQ(client().touches, 1);
    runtime->advance(250ms);
    EXPECT_EQ(client().touches, 3);
    client().take("sync").answer({});
    runtime->advance(1s);
    EXPECT_EQ(client().touches, 3);
    EXPECT_EQ(core->stats().stalled_replies, 3u);
}

TEST_F(SessionCoreTest, ATouchThatIsNotAnsweredIsNudgedToo) {  // ZOOKEEPER-4537 leaves lone requests lying
    open_connected();
    client().answers_touches = false;
    runtime->advance(1499ms);
    EXPECT_THAT(client().sent, IsEmpty());
    runtime->advance(1ms);
    EXPECT_THAT(client().sent, SizeIs(1));
    runtime->advance(100ms);
    EXPECT_THAT(client().sent, SizeIs(2));
    client().take("exists").answer({});
    client().take("exists").answer({});
    runtime->advance(1s);
    EXPECT_THAT(client().sent, SizeIs(2));
}

TEST_F(SessionCoreTest, AnIdleSessionIsHeardOfEveryQuarterOfItsTimeout) {
    open_connected();
    runtime->advance(15s);
    EXPECT_EQ(client().touches, 10);
    EXPECT_THAT(client().sent, IsEmpty());
    client().disconnect();
    runtime->advance(15s);
    EXPECT_EQ(client().touches, 10);
}

TEST_F(SessionCoreTest, AnErrorOfAClosedSessionSaysWhatToDoOrWhyItIsOver) {
    open_connected();
    runtime->while_running([this] { core->close(); });
    EXPECT_THAT(core->closed_error("acquire", "/l")->what(), HasSubstr("make a new Session"));
    destroy();
    options.auth = {{"digest", "a:b"}};
    open();
    client().connect(2);
    client().answer_auth(Rc::auth_failed);
    runtime->run();
    EXPECT_THAT(core->closed_error("acquire", "/l")->what(), Not(HasSubstr("make a new Session")));
    EXPECT_EQ(core->closed_error("acquire", "/l")->errc(), Errc::auth_failed);
}

}  // namespace
}  // namespace zkrecipes::testing
