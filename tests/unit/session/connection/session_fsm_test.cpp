#include "session/connection/session_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = SessionAction::Kind;

const Instant kStart{100h};

std::vector<Kind> kinds(const SessionActions& actions) {
    std::vector<Kind> out;
    for (const auto& action : actions) out.push_back(action.kind);
    return out;
}

ClientStatus connected(std::int64_t session_id, std::chrono::milliseconds timeout = 6000ms) {
    return {ClientState::connected, session_id, timeout, "server:2181"};
}
ClientStatus status(ClientState state) { return {state, 0, 0ms, ""}; }

class SessionFsmTest : public ::testing::Test {
protected:
    SessionActions connect(std::int64_t session_id = 1, Instant now = kStart) {
        return fsm.on_status(fsm.handle(), connected(session_id), now);
    }
    SessionActions say(ClientState state, Instant now = kStart) {
        return fsm.on_status(fsm.handle(), status(state), now);
    }
    SessionFsm fsm{SessionFsm::Config{}};
};

TEST_F(SessionFsmTest, ConnectsSuspendsAndComesBackAsTheSameSession) {
    EXPECT_THAT(kinds(fsm.start()), ElementsAre(Kind::open_handle));
    EXPECT_THAT(kinds(connect()), ElementsAre(Kind::state_changed, Kind::connected));
    EXPECT_TRUE(fsm.usable());
    EXPECT_THAT(kinds(say(ClientState::connecting)), ElementsAre(Kind::state_changed, Kind::suspended));
    EXPECT_EQ(fsm.state(), SessionState::suspended);
    EXPECT_FALSE(fsm.usable());
    const auto actions = connect();
    EXPECT_THAT(kinds(actions), ElementsAre(Kind::state_changed, Kind::connected));
    EXPECT_TRUE(actions.back().same_session);
    EXPECT_EQ(fsm.incarnation().number, 1u);
}

TEST_F(SessionFsmTest, WithoutAConnectionThereIsNoServer) {
    fsm.start();
    for (const ClientState end : {ClientState::connecting, ClientState::expired}) {
        connect();
        EXPECT_EQ(fsm.server(), "server:2181");
        say(end);
        EXPECT_EQ(fsm.server(), "");
    }
}

TEST_F(SessionFsmTest, AnExpiredSessionIsOverBeforeAnythingElseAndANewHandleIsOpenedAtOnce) {
    fsm.start();
    connect();
    EXPECT_THAT(kinds(say(ClientState::expired, kStart + 1h)),
                ElementsAre(Kind::session_over, Kind::state_changed, Kind::close_handle, Kind::open_handle));
    EXPECT_EQ(fsm.state(), SessionState::lost);
    const auto actions = connect(2);
    EXPECT_FALSE(actions.back().same_session);
    EXPECT_EQ(fsm.incarnation().number, 2u);
    EXPECT_EQ(fsm.incarnation().session_id, 2);
}

TEST_F(SessionFsmTest, EventsOfAFormerHandleAreIgnored) {
    fsm.start();
    const auto first = fsm.handle();
    connect();
    say(ClientState::expired, kStart + 1h);
    connect(2);
    for (const auto state :
         {ClientState::connecting, ClientState::expired, ClientState::dead, ClientState::auth_failed}) {
        EXPECT_THAT(fsm.on_status(first, status(state), kStart), IsEmpty());
    }
    EXPECT_THAT(fsm.on_status(first, connected(1), kStart), IsEmpty());
    EXPECT_THAT(fsm.on_auth(first, Rc::auth_failed, kStart), IsEmpty());
    EXPECT_EQ(fsm.state(), SessionState::connected);
    EXPECT_EQ(fsm.incarnation().session_id, 2);
}

TEST_F(SessionFsmTest, LostByOurOwnClockOneTimeoutAfterTwoThirdsBeforeTheDisconnectWasNoticed) {
    fsm.start();
    connect();
    say(ClientState::connecting, kStart + 60s);
    EXPECT_EQ(fsm.wake_at(), kStart + 60s - 4s + 6s);
    EXPECT_THAT(fsm.on_time(fsm.wake_at() - 1ns), IsEmpty());
    EXPECT_THAT(kinds(fsm.on_time(fsm.wake_at())), ElementsAre(Kind::state_changed));
    EXPECT_EQ(fsm.state(), SessionState::lost);
    EXPECT_TRUE(fsm.has_session()) << "the servers have not said that it is over";
}

TEST_F(SessionFsmTest, LostByOurOwnClockOneTimeoutAfterTheLastAnswerWhenThatIsLater) {
    fsm.start();
    connect();
    fsm.on_answer(fsm.handle(), kStart + 59s);
    say(ClientState::connecting, kStart + 60s);
    EXPECT_EQ(fsm.wake_at(), kStart + 59s + 6s);
}

TEST_F(SessionFsmTest, AnswersOfAFormerHandleAreNoSignOfLife) {
    fsm.start();
    connect();
    say(ClientState::expired, kStart + 50s);
    connect(2, kStart + 50s);
    fsm.on_answer(fsm.handle() - 1, kStart + 59s);
    say(ClientState::connecting, kStart + 60s);
    EXPECT_EQ(fsm.wake_at(), kStart + 56s + 6s);
}

TEST_F(SessionFsmTest, TheSameSessionMayComeBackAfterALossByOurOwnClock) {
    fsm.start();
    connect();
    say(ClientState::connecting, kStart);
    fsm.on_time(kStart + 1h);
    ASSERT_EQ(fsm.state(), SessionState::lost);
    const auto actions = connect();
    EXPECT_TRUE(actions.back().same_session);
    EXPECT_EQ(fsm.state(), SessionState::connected);
    EXPECT_EQ(fsm.incarnation().number, 1u);
}

TEST_F(SessionFsmTest, ASessionThatNobodyTakesBackForFourTimeoutsIsReplaced) {  // H54
    fsm.start();
    connect();
    say(ClientState::connecting, kStart + 4s);
    EXPECT_EQ(fsm.wake_at(), kStart + 6s);
    fsm.on_time(kStart + 6s);
    EXPECT_EQ(fsm.wake_at(), kStart + 24s);
    EXPECT_THAT(fsm.on_time(kStart + 23s), IsEmpty());
    const auto former = fsm.handle();
    EXPECT_THAT(kinds(fsm.on_time(kStart + 24s)),
                ElementsAre(Kind::session_over, Kind::close_handle, Kind::open_handle));
    EXPECT_EQ(fsm.state(), SessionState::lost);
    EXPECT_FALSE(fsm.has_session());
    EXPECT_EQ(fsm.wake_at(), Instant::max());  // a handle without a session is given all the time
    EXPECT_THAT(fsm.on_status(former, connected(1), kStart + 25s), IsEmpty());
    EXPECT_FALSE(connect(2, kStart + 25s).back().same_session);
}

TEST_F(SessionFsmTest, ExpiryAfterALossByOurOwnClockDoesNotAnnounceLostTwice) {
    fsm.start();
    connect();
    say(ClientState::connecting, kStart);
    fsm.on_time(kStart + 1h);
    EXPECT_THAT(kinds(say(ClientState::expired, kStart + 2h)),
                ElementsAre(Kind::session_over, Kind::close_handle, Kind::open_handle));
}

TEST_F(SessionFsmTest, AnotherSessionIdOnTheSameHandleIsAnExpiry) {
    fsm.start();
    connect(1);
    say(ClientState::connecting, kStart + 1h);
    EXPECT_EQ(kinds(connect(2, kStart + 1h)).front(), Kind::session_over);
}

TEST_F(SessionFsmTest, AReconnectWithoutADisconnectStillTellsOfBoth) {
    fsm.start();
    connect();
    EXPECT_THAT(kinds(connect()),
                ElementsAre(Kind::state_changed, Kind::suspended, Kind::state_changed, Kind::connected));
}

TEST_F(SessionFsmTest, HandlesThatDieAtOnceAreReopenedMoreAndMoreRarely) {
    fsm.start();
    Instant now = kStart;
    Nanoseconds last{0};
    for (int i = 0; i < 20; ++i) {
        const auto actions = say(ClientState::dead, now);
        EXPECT_THAT(kinds(actions), ElementsAre(Kind::close_handle));
        EXPECT_EQ(actions.back().detail, "the client handle broke down");
        const Nanoseconds delay = fsm.wake_at() - now;
        EXPECT_GT(delay, 0ns);
        EXPECT_GE(delay, last);
        EXPECT_LE(delay, 5s);
        last = delay;
        now = fsm.wake_at();
        EXPECT_THAT(kinds(fsm.on_time(now)), ElementsAre(Kind::open_handle));
    }
    EXPECT_EQ(last, 5s);
    EXPECT_EQ(fsm.state(), SessionState::connecting);
}

TEST_F(SessionFsmTest, SessionsThatExpireOneRightAfterTheOtherAreSlowedDown) {
    fsm.start();
    connect(1);
    EXPECT_EQ(kinds(say(ClientState::expired, kStart + 10ms)).back(), Kind::open_handle);
    connect(2, kStart + 10ms);
    EXPECT_EQ(kinds(say(ClientState::expired, kStart + 20ms)).back(), Kind::close_handle);
    EXPECT_GT(fsm.wake_at(), kStart + 20ms);
}

TEST_F(SessionFsmTest, SessionsThatLivedLongAreMadeAgainAtOnceEachTime) {
    fsm.start();
    for (int i = 1; i <= 3; ++i) {
        const Instant begin = kStart + i * 1h;
        connect(i, begin);
        say(ClientState::connecting, begin + 10s);
        connect(i, begin + 10s);  // its life counts from the first connection
        EXPECT_EQ(kinds(say(ClientState::expired, begin + 10500ms)).back(), Kind::open_handle) << i;
    }
}

TEST_F(SessionFsmTest, ClosingTakesTwoStepsAndIsFinal) {
    fsm.start();
    connect();
    EXPECT_THAT(kinds(fsm.close(Errc::closed, "x")), ElementsAre(Kind::state_changed, Kind::closed));
    EXPECT_TRUE(fsm.usable()) << "what must be cleaned up still goes on";
    EXPECT_THAT(kinds(say(ClientState::connecting)), IsEmpty());
    EXPECT_FALSE(fsm.usable());
    EXPECT_THAT(kinds(connect()), ElementsAre(Kind::link_up));
    EXPECT_THAT(kinds(fsm.finish_close()), ElementsAre(Kind::session_over, Kind::close_handle));
    EXPECT_TRUE(fsm.finished());
    EXPECT_THAT(connect(), IsEmpty());
    EXPECT_THAT(fsm.close(Errc::closed, "y"), IsEmpty());
    EXPECT_THAT(fsm.finish_close(), IsEmpty());
    EXPECT_EQ(fsm.state(), SessionState::closed);
    EXPECT_EQ(fsm.wake_at(), Instant::max());
}

TEST_F(SessionFsmTest, AnExpiryWhileClosingEndsIt) {
    fsm.start();
    connect();
    fsm.close(Errc::closed, "x");
    EXPECT_THAT(kinds(say(ClientState::expired)), ElementsAre(Kind::session_over, Kind::close_handle));
    EXPECT_TRUE(fsm.finished());
}

TEST_F(SessionFsmTest, ClosingWhileAHandleWaitsToBeReopenedOpensNone) {
    fsm.start();
    say(ClientState::dead);
    fsm.close(Errc::closed, "x");
    EXPECT_THAT(fsm.finish_close(), IsEmpty());
    EXPECT_THAT(fsm.on_time(kStart + 1h), IsEmpty());
}

class SessionFsmAuthTest : public SessionFsmTest {
protected:
    SessionFsmAuthTest() { fsm_auth.start(); }
    SessionActions connect_auth(std::int64_t id = 1, Instant now = kStart) {
        return fsm_auth.on_status(fsm_auth.handle(), connected(id), now);
    }
    SessionFsm fsm_auth{SessionFsm::Config{5000ms, 2}};
};

TEST_F(SessionFsmAuthTest, ConnectedOnlyAfterEveryCredentialWasAccepted) {
    EXPECT_THAT(connect_auth(), IsEmpty());
    EXPECT_THAT(fsm_auth.on_auth(1, Rc::ok, kStart), IsEmpty());
    EXPECT_FALSE(fsm_auth.usable());
    EXPECT_THAT(kinds(fsm_auth.on_auth(1, Rc::ok, kStart)), ElementsAre(Kind::state_changed, Kind::connected));
}

TEST_F(SessionFsmAuthTest, ARefusalClosesForEver) {
    connect_auth();
    const auto actions = fsm_auth.on_auth(1, Rc::auth_failed, kStart);
    EXPECT_THAT(kinds(actions), ElementsAre(Kind::state_changed, Kind::closed, Kind::close_handle));
    EXPECT_EQ(actions[1].errc, Errc::auth_failed);
    EXPECT_TRUE(fsm_auth.finished());
}

TEST_F(SessionFsmAuthTest, TheHandleSayingSoClosesForEverToo) {
    connect_auth();
    const auto actions = fsm_auth.on_status(1, status(ClientState::auth_failed), kStart);
    EXPECT_THAT(kinds(actions), ElementsAre(Kind::state_changed, Kind::closed, Kind::close_handle));
}

TEST_F(SessionFsmAuthTest, AServerThatIsSilentIsLeftForAnotherAndNamed) {
    connect_auth();
    EXPECT_EQ(fsm_auth.wake_at(), kStart + 5s);
    const auto actions = fsm_auth.on_time(kStart + 5s);
    ASSERT_THAT(kinds(actions), ElementsAre(Kind::close_handle));
    EXPECT_THAT(actions[0].detail, ::testing::AllOf(HasSubstr("server:2181"), HasSubstr("5000 ms")));
    EXPECT_THAT(kinds(fsm_auth.on_time(fsm_auth.wake_at())), ElementsAre(Kind::open_handle, Kind::add_auth));
    connect_auth(2, kStart + 6s);
    fsm_auth.on_auth(2, Rc::ok, kStart + 6s);
    fsm_auth.on_auth(2, Rc::ok, kStart + 6s);
    EXPECT_TRUE(fsm_auth.usable());
}

TEST_F(SessionFsmAuthTest, AcceptedCredentialsAreNeverTakenForRefusedBeforeTheNextHandleIsRefused) {
    connect_auth();
    fsm_auth.on_auth(1, Rc::ok, kStart);
    fsm_auth.on_auth(1, Rc::ok, kStart);
    EXPECT_THAT(
        kinds(fsm_auth.on_status(1, status(ClientState::auth_failed), kStart + 1h)),
        ElementsAre(Kind::session_over, Kind::state_changed, Kind::close_handle, Kind::open_handle, Kind::add_auth));
    EXPECT_EQ(fsm_auth.state(), SessionState::lost);
    connect_auth(2, kStart + 1h);
    EXPECT_THAT(kinds(fsm_auth.on_status(2, status(ClientState::auth_failed), kStart + 1h)),
                ElementsAre(Kind::state_changed, Kind::closed, Kind::close_handle));
}

TEST_F(SessionFsmTest, ASessionWithoutCredentialsHasNoneThatCouldBeRefused) {
    fsm.start();
    connect();
    EXPECT_THAT(kinds(say(ClientState::auth_failed, kStart + 1h)),
                ElementsAre(Kind::session_over, Kind::state_changed, Kind::close_handle, Kind::open_handle));
}

TEST_F(SessionFsmTest, ServersThatDemandCredentialsCloseTheSessionForEver) {
    fsm.start();
    connect();
    EXPECT_THAT(fsm.on_credentials_demanded(fsm.handle() + 1), IsEmpty());
    const auto actions = fsm.on_credentials_demanded(fsm.handle());
    ASSERT_THAT(kinds(actions), ElementsAre(Kind::state_changed, Kind::closed, Kind::session_over, Kind::close_handle));
    EXPECT_EQ(actions[1].errc, Errc::auth_failed);
    EXPECT_THAT(actions[1].detail, HasSubstr("the servers demand credentials"));
}

TEST_F(SessionFsmAuthTest, TheTimeoutRunsOnlyWhileConnected) {
    connect_auth();
    fsm_auth.on_status(1, status(ClientState::connecting), kStart + 4s);
    EXPECT_EQ(fsm_auth.wake_at(), Instant::max());
    connect_auth(1, kStart + 60s);
    EXPECT_EQ(fsm_auth.wake_at(), kStart + 65s);
}

TEST_F(SessionFsmAuthTest, AnAnswerThatWasLostWithTheConnectionIsAskedForAgain) {
    connect_auth();
    fsm_auth.on_auth(1, Rc::ok, kStart);
    EXPECT_THAT(fsm_auth.on_auth(1, Rc::connection_loss, kStart), IsEmpty());
    fsm_auth.on_status(1, status(ClientState::connecting), kStart);
    EXPECT_THAT(kinds(connect_auth()), ElementsAre(Kind::add_auth));
    fsm_auth.on_auth(1, Rc::ok, kStart);
    EXPECT_THAT(kinds(fsm_auth.on_auth(1, Rc::ok, kStart)), ElementsAre(Kind::state_changed, Kind::connected));
}

TEST_F(SessionFsmAuthTest, ANewHandlePresentsThemAgain) {
    connect_auth();
    fsm_auth.on_auth(1, Rc::ok, kStart);
    fsm_auth.on_auth(1, Rc::ok, kStart);
    const auto actions = fsm_auth.on_status(1, status(ClientState::expired), kStart + 1h);
    EXPECT_THAT(kinds(actions), ElementsAre(Kind::session_over, Kind::state_changed, Kind::close_handle,
                                            Kind::open_handle, Kind::add_auth));
}

}  // namespace
}  // namespace zkrecipes::internal
