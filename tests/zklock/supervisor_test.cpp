#include "zklock/process/supervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanoseconds kT = 12s;     // session timeout
constexpr Nanoseconds kLease = 8s;  // two thirds
constexpr Nanoseconds kK = 2s;      // from the stop signal to SIGKILL

Instant at(Nanoseconds after_start) { return Instant(1000s + after_start); }

Action to_group(int signal) { return {Action::signal_group, signal, {}}; }
const Action kKill{Action::kill_tree, SIGKILL, {}};
const Action kSuspended{Action::report_suspended, 0, {}};
const Action kResumed{Action::report_resumed, 0, {}};
Action stopping(int signal) { return {Action::report_stopping, signal, {}}; }
Action lost(const std::string& reason) { return {Action::report_lost, 0, reason}; }
const char* const kUnconfirmed = "no server confirmed the lock in time";

/// The lock was got at 0, by a write that was sent then: it is sure until 8 s.
class SupervisorTest : public testing::Test {
protected:
    Supervisor make(OnSuspend policy = OnSuspend::ride, std::optional<Nanoseconds> max_run = {},
                    Nanoseconds min_hold = 0s) {
        Supervisor supervisor({policy, SIGTERM, kK, kT, max_run, min_hold}, at(0s), at(kLease));
        EXPECT_THAT(supervisor.command_started(at(0s)), IsEmpty());
        return supervisor;
    }
    /// A check that was sent at `sent` was committed.
    static Actions renewed(Supervisor& supervisor, Nanoseconds sent) {
        return supervisor.lease_until(at(sent), at(sent + kLease));
    }
    static void end(Supervisor& supervisor, Nanoseconds when) {
        supervisor.leader_exited(at(when));
        supervisor.group_gone(at(when));
    }
};

TEST_F(SupervisorTest, WhileTheLeaseIsRenewedNothingHappens) {
    Supervisor supervisor = make();
    for (int i = 1; i < 100; ++i) {
        EXPECT_THAT(renewed(supervisor, i * 2s), IsEmpty());
        EXPECT_EQ(supervisor.next(), at(i * 2s + kLease - kK));
    }
    end(supervisor, 200s);
    EXPECT_TRUE(supervisor.finished());
    EXPECT_EQ(supervisor.end(), Supervisor::End::command);
}

TEST_F(SupervisorTest, NoKillAfterThatIsAcceptedStopsACommandUnderALockThatIsConfirmedInTime) {
    EXPECT_EQ(kill_delay({}, kT), kT / 6);
    EXPECT_EQ(kill_delay(3s, kT), 3s);
    for (const Nanoseconds wanted : {kT * 2 / 5, kT * 9 / 20, kT / 2 - 1ns}) {
        Supervisor supervisor({OnSuspend::ride, SIGTERM, kill_delay(wanted, kT), kT, {}, 0s}, at(0s), at(kLease));
        EXPECT_THAT(supervisor.command_started(at(0s)), IsEmpty());
        // Checks are sent each sixth of T; before an answer the lease has fallen to 0.49 T or so.
        for (Nanoseconds sent = 0s; sent < 10 * kT; sent += kT / 6) {
            EXPECT_THAT(supervisor.tick(at(sent + kLease - kT * 49 / 100)), IsEmpty());
            EXPECT_THAT(renewed(supervisor, sent + kT / 6), IsEmpty());
        }
    }
}

TEST_F(SupervisorTest, RideStopsTheCommandAtDMinusKAndKillsItAtD) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.disconnected(at(1s)), ElementsAre(kSuspended));
    EXPECT_EQ(supervisor.next(), at(6s));
    EXPECT_THAT(supervisor.tick(at(6s - 1ns)), IsEmpty());
    EXPECT_THAT(supervisor.tick(at(6s)), ElementsAre(lost(kUnconfirmed), stopping(SIGTERM), to_group(SIGTERM)));
    EXPECT_EQ(supervisor.next(), at(8s));
    EXPECT_THAT(supervisor.tick(at(8s - 1ns)), IsEmpty());
    EXPECT_THAT(supervisor.tick(at(8s)), ElementsAre(kKill));
    end(supervisor, 8s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
    EXPECT_EQ(supervisor.lost_reason(), kUnconfirmed);
    EXPECT_TRUE(supervisor.finished());
}

TEST_F(SupervisorTest, ALeaseThatBecomesShorterCountsAtOnce) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.lease_until(at(1s), at(5s)), IsEmpty());
    EXPECT_EQ(supervisor.dead_by(), at(5s));
    EXPECT_THAT(supervisor.tick(at(3s)), ElementsAre(lost(kUnconfirmed), stopping(SIGTERM), to_group(SIGTERM)));
    EXPECT_THAT(supervisor.lease_until(at(3s), at(4s)), IsEmpty()) << "also after the loss";
    EXPECT_EQ(supervisor.dead_by(), at(4s));
    EXPECT_THAT(supervisor.lease_until(at(3s), at(9s)), IsEmpty());
    EXPECT_EQ(supervisor.dead_by(), at(4s));
    EXPECT_THAT(supervisor.tick(at(4s)), ElementsAre(kKill));
}

TEST_F(SupervisorTest, ALeaseThatEndsBecauseItBecameShorterLeavesNoTimeToStop) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.lease_until(at(1s), at(1s)), ElementsAre(lost(kUnconfirmed), stopping(SIGKILL), kKill));
}

TEST_F(SupervisorTest, AShorterTimeoutMakesKShorterAndALongerOneDoesNotMakeItLonger) {
    Supervisor supervisor = make();
    supervisor.negotiated(kT / 4, kK / 4);
    EXPECT_THAT(supervisor.lease_until(at(1s), at(1s + kLease / 4)), IsEmpty());
    EXPECT_EQ(supervisor.next(), at(1s + kLease / 4 - kK / 4));
    supervisor.negotiated(kT, kK);
    EXPECT_THAT(supervisor.lease_until(at(2s), at(2s + kLease)), IsEmpty());
    EXPECT_EQ(supervisor.next(), at(2s + kLease - kK / 4));
}

TEST_F(SupervisorTest, APausedCommandGoesOnAfterTheFirstCheckUnderAShorterTimeout) {
    Supervisor supervisor = make(OnSuspend::pause);
    EXPECT_THAT(supervisor.disconnected(at(1s)), ElementsAre(kSuspended, to_group(SIGSTOP)));
    EXPECT_THAT(supervisor.reconnected(at(2s)), IsEmpty());
    supervisor.negotiated(kT / 4, kK / 4);
    EXPECT_THAT(supervisor.lease_until(at(2s), at(2s + kLease / 4)), ElementsAre(kResumed, to_group(SIGCONT)));
}

TEST_F(SupervisorTest, SigkillIsRepeatedUntilTheGroupIsGone) {
    Supervisor supervisor = make();
    supervisor.tick(at(6s));
    EXPECT_THAT(supervisor.tick(at(8s)), ElementsAre(kKill));
    EXPECT_THAT(supervisor.tick(at(8s + 50ms)), IsEmpty());
    EXPECT_EQ(supervisor.next(), at(8s + 100ms));
    EXPECT_THAT(supervisor.tick(at(8s + 100ms)), ElementsAre(kKill));
    EXPECT_FALSE(supervisor.group_is_gone());
}

TEST_F(SupervisorTest, AfterAFreezeBeyondTheDeadlineTheFirstThingIsSigkill) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.tick(at(100s)), ElementsAre(lost(kUnconfirmed), stopping(SIGKILL), kKill));
}

TEST_F(SupervisorTest, AfterAFreezeALateRenewalDoesNotHelp) {
    Supervisor supervisor = make();
    supervisor.tick(at(8s));
    EXPECT_THAT(supervisor.lease_until(at(8s + 1ms), at(20s)), IsEmpty());
    EXPECT_EQ(supervisor.dead_by(), at(8s));
    end(supervisor, 9s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
}

TEST_F(SupervisorTest, RideSurvivesAShortDisconnect) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.disconnected(at(1s)), ElementsAre(kSuspended));
    EXPECT_THAT(supervisor.disconnected(at(1s)), IsEmpty());
    EXPECT_THAT(supervisor.reconnected(at(5s)), IsEmpty());
    EXPECT_THAT(renewed(supervisor, 5s), ElementsAre(kResumed));
    EXPECT_THAT(supervisor.tick(at(8s)), IsEmpty());
    end(supervisor, 9s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::command);
}

TEST_F(SupervisorTest, StopActsAtTheFirstDisconnect) {
    Supervisor supervisor = make(OnSuspend::stop);
    EXPECT_THAT(supervisor.disconnected(at(1s)),
                ElementsAre(kSuspended, lost("the connection broke"), stopping(SIGTERM), to_group(SIGTERM)));
    EXPECT_THAT(supervisor.tick(at(3s)), ElementsAre(kKill));
    end(supervisor, 3s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
}

TEST_F(SupervisorTest, PauseFreezesAndThawsOnlyAfterACheckSentOnTheNewConnection) {
    Supervisor supervisor = make(OnSuspend::pause);
    EXPECT_THAT(supervisor.disconnected(at(1s)), ElementsAre(kSuspended, to_group(SIGSTOP)));
    // A check that was on its way when the connection broke proves nothing about now.
    EXPECT_THAT(supervisor.lease_until(at(2s), at(900ms + kLease)), IsEmpty());
    EXPECT_THAT(supervisor.reconnected(at(4s)), IsEmpty());
    EXPECT_THAT(supervisor.lease_until(at(4s), at(4s - 1ns + kLease)), IsEmpty());
    EXPECT_THAT(renewed(supervisor, 4s), ElementsAre(kResumed, to_group(SIGCONT)));
}

TEST_F(SupervisorTest, PauseKillsAtTheDeadlineWithoutThawing) {
    Supervisor supervisor = make(OnSuspend::pause);
    supervisor.disconnected(at(1s));
    EXPECT_THAT(supervisor.tick(at(6s)), IsEmpty());
    EXPECT_EQ(supervisor.next(), at(8s));
    EXPECT_THAT(supervisor.tick(at(8s)), ElementsAre(lost(kUnconfirmed), stopping(SIGKILL), kKill));
}

TEST_F(SupervisorTest, ALossWhileFrozenKillsAtOnce) {
    Supervisor supervisor = make(OnSuspend::pause);
    supervisor.disconnected(at(1s));
    supervisor.reconnected(at(2s));
    EXPECT_THAT(supervisor.lost(at(2s), "gone"), ElementsAre(lost("gone"), stopping(SIGKILL), kKill));
    EXPECT_THAT(renewed(supervisor, 3s), ElementsAre(kKill)) << "never SIGCONT";
}

TEST_F(SupervisorTest, NobodyThawsAFrozenCommandFromOutside) {
    Supervisor supervisor = make(OnSuspend::pause);
    supervisor.disconnected(at(1s));
    EXPECT_THAT(supervisor.signal(at(2s), SIGCONT), IsEmpty());
}

TEST_F(SupervisorTest, ADeletedNodeStopsAndAfterKKills) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.lost(at(1s), "gone"), ElementsAre(lost("gone"), stopping(SIGTERM), to_group(SIGTERM)));
    EXPECT_THAT(supervisor.lost(at(1s), "again"), IsEmpty());
    EXPECT_EQ(supervisor.next(), at(3s));
    EXPECT_EQ(supervisor.dead_by(), at(3s));
    EXPECT_THAT(supervisor.tick(at(3s)), ElementsAre(kKill));
    end(supervisor, 3s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
    EXPECT_EQ(supervisor.lost_reason(), "gone");
}

TEST_F(SupervisorTest, ALossNearTheDeadlineDoesNotGetMoreThanTheDeadline) {
    Supervisor supervisor = make();
    renewed(supervisor, 1s);  // sure until 9 s
    supervisor.lost(at(6s + 900ms), "gone");
    EXPECT_EQ(supervisor.next(), at(8s + 900ms));
    Supervisor late = make();
    late.lost(at(7s), "gone");  // D - K has passed already
    EXPECT_EQ(late.dead_by(), at(8s));
    EXPECT_THAT(late.tick(at(8s)), ElementsAre(kKill));
}

TEST_F(SupervisorTest, SignalsAreForwardedAndTheSecondStopRequestArmsTheKill) {
    Supervisor supervisor = make();
    for (const int signal : {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTERM}) {
        EXPECT_THAT(supervisor.signal(at(1s), signal), ElementsAre(to_group(signal)));
    }
    EXPECT_EQ(supervisor.next(), at(6s));
    EXPECT_THAT(supervisor.signal(at(2s), SIGINT), ElementsAre(to_group(SIGINT), stopping(SIGINT)));
    EXPECT_THAT(supervisor.tick(at(4s)), ElementsAre(kKill));
    end(supervisor, 4s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::command);
}

TEST_F(SupervisorTest, ASignalThatIsNotPassedOnStopsThenKills) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.signal(at(1s), SIGALRM), ElementsAre(stopping(SIGTERM), to_group(SIGTERM)));
    EXPECT_THAT(supervisor.signal(at(2s), SIGXCPU), IsEmpty());
    EXPECT_TRUE(supervisor.asked_to_stop());
    EXPECT_THAT(supervisor.tick(at(3s)), ElementsAre(kKill));
    end(supervisor, 3s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::interrupted);
    EXPECT_EQ(supervisor.ended_by(), SIGXCPU);
}

TEST_F(SupervisorTest, ALossOutranksASignalThatIsNotPassedOn) {
    Supervisor supervisor = make();
    supervisor.signal(at(1s), SIGALRM);
    supervisor.lost(at(2s), "gone");
    end(supervisor, 2s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
}

TEST_F(SupervisorTest, MaxRunStopsThenKills) {
    Supervisor supervisor = make(OnSuspend::ride, 5s);
    EXPECT_EQ(supervisor.next(), at(5s));
    EXPECT_THAT(supervisor.tick(at(5s)), ElementsAre(stopping(SIGTERM), to_group(SIGTERM)));
    renewed(supervisor, 6s);
    EXPECT_THAT(supervisor.tick(at(7s)), ElementsAre(kKill));
    end(supervisor, 7s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::max_run);
}

TEST_F(SupervisorTest, ALossOutranksMaxRun) {
    Supervisor supervisor = make(OnSuspend::ride, 5s);
    supervisor.tick(at(5s));
    EXPECT_THAT(supervisor.lost(at(5s + 500ms), "gone"), ElementsAre(lost("gone")));
    EXPECT_EQ(supervisor.next(), at(7s));
    end(supervisor, 6s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
}

TEST_F(SupervisorTest, TheLockIsKeptWhileAnyoneOfTheGroupLives) {
    Supervisor supervisor = make();
    supervisor.leader_exited(at(1s));
    EXPECT_FALSE(supervisor.finished());
    EXPECT_FALSE(supervisor.group_is_gone());
    EXPECT_THAT(supervisor.signal(at(2s), SIGTERM), ElementsAre(to_group(SIGTERM)));
    EXPECT_THAT(supervisor.tick(at(6s)), ElementsAre(lost(kUnconfirmed), stopping(SIGTERM), to_group(SIGTERM)));
    supervisor.group_gone(at(7s));
    EXPECT_TRUE(supervisor.finished());
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
}

TEST_F(SupervisorTest, MinHoldKeepsTheLockAfterTheCommand) {
    Supervisor supervisor = make(OnSuspend::ride, {}, 5s);
    end(supervisor, 1s);
    EXPECT_TRUE(supervisor.group_is_gone());
    EXPECT_FALSE(supervisor.finished());
    EXPECT_EQ(supervisor.next(), at(5s));
    EXPECT_THAT(supervisor.signal(at(2s), SIGWINCH), IsEmpty());
    EXPECT_FALSE(supervisor.finished());
    supervisor.tick(at(5s));
    EXPECT_TRUE(supervisor.finished());
}

TEST_F(SupervisorTest, MinHoldEndsWithASignalOrWithTheLock) {
    Supervisor told = make(OnSuspend::ride, {}, 50s);
    end(told, 1s);
    EXPECT_THAT(told.signal(at(2s), SIGTERM), IsEmpty());
    EXPECT_TRUE(told.finished());
    Supervisor broken = make(OnSuspend::ride, {}, 50s);
    end(broken, 1s);
    EXPECT_THAT(broken.lost(at(2s), "gone"), IsEmpty());
    EXPECT_TRUE(broken.finished());
    EXPECT_EQ(broken.end(), Supervisor::End::command);  // nothing ran any more when it was lost
    Supervisor silent = make(OnSuspend::ride, {}, 50s);
    end(silent, 1s);
    silent.tick(at(8s));
    EXPECT_TRUE(silent.finished());
}

TEST_F(SupervisorTest, AfterCtrlZTheLockIsCheckedBeforeTheCommandGoesOn) {
    Supervisor supervisor = make();
    EXPECT_THAT(supervisor.job_stopped(at(1s)), IsEmpty());
    EXPECT_THAT(supervisor.job_continued(at(3s)), IsEmpty());
    EXPECT_THAT(supervisor.lease_until(at(3s), at(3s - 1ns + kLease)), IsEmpty());
    EXPECT_THAT(renewed(supervisor, 3s), ElementsAre(kResumed, to_group(SIGCONT)));
}

TEST_F(SupervisorTest, AfterCtrlZAnAnswerToAQuestionThatWasAskedAfterwardsIsEnough) {
    Supervisor supervisor = make();
    supervisor.job_stopped(at(1s));
    supervisor.job_continued(at(3s));
    EXPECT_THAT(supervisor.confirmed(at(3s), at(3s - 1ns)), IsEmpty());
    EXPECT_THAT(supervisor.confirmed(at(4s), at(3s)), ElementsAre(kResumed, to_group(SIGCONT)));
    EXPECT_EQ(supervisor.dead_by(), at(8s)) << "no more time is left than before";
}

TEST_F(SupervisorTest, AfterCtrlZAnAnswerThatComesTooLateContinuesNothing) {
    Supervisor supervisor = make();
    supervisor.job_stopped(at(1s));
    supervisor.job_continued(at(3s));
    EXPECT_THAT(supervisor.confirmed(at(8s), at(3s)), ElementsAre(lost(kUnconfirmed), stopping(SIGKILL), kKill));
    Supervisor broken = make();
    broken.job_stopped(at(1s));
    broken.job_continued(at(3s));
    broken.disconnected(at(4s));
    EXPECT_THAT(broken.confirmed(at(5s), at(3s)), IsEmpty());
}

TEST_F(SupervisorTest, AfterCtrlZForTooLongTheCommandIsKilledAndNeverContinued) {
    Supervisor supervisor = make();
    supervisor.job_stopped(at(1s));
    EXPECT_THAT(supervisor.tick(at(60s)), ElementsAre(lost(kUnconfirmed), stopping(SIGKILL), kKill));
    EXPECT_THAT(supervisor.job_continued(at(60s)), IsEmpty());
    EXPECT_THAT(renewed(supervisor, 61s), ElementsAre(kKill)) << "never SIGCONT";
    end(supervisor, 61s);
    EXPECT_EQ(supervisor.end(), Supervisor::End::lost);
}

TEST_F(SupervisorTest, ThereIsAlwaysANextLookWhileSomethingRuns) {
    Supervisor supervisor = make(OnSuspend::pause, 3s, 20s);
    Nanoseconds now = 0s;
    int looks = 0;
    for (; supervisor.next() && looks < 50; ++looks) {
        ASSERT_GE(*supervisor.next(), at(now)) << "a look in the past would spin";
        now = supervisor.next()->time_since_epoch() - 1000s;
        supervisor.tick(at(now));
        if (looks == 10) end(supervisor, now);
    }
    EXPECT_TRUE(supervisor.finished());
    EXPECT_LT(looks, 15);
}

}  // namespace
}  // namespace zkrecipes::zklock
