#include "sim/judge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/hold/hold_ref.hpp"
#include "session/lease/hold.hpp"
#include "sim/client_process.hpp"
#include "sim/sim_world.hpp"

namespace zkrecipes::sim {
namespace {

constexpr SimTime kTimeout = 12 * kSecond;
constexpr SimTime kHeartbeat = kTimeout / 6;
constexpr SessionId kSession = 77;

/// Holds that no library has granted: each test lets one of them break one promise.
class SimJudge : public testing::Test {
protected:
    SimJudge() {
        plan_.timeout_ms = kTimeout / kMilli;
        plan_.faults = 1U << static_cast<unsigned>(Fault::reset);
        ensemble_ = std::make_unique<SimEnsemble>(world_, EnsembleOptions{});
        for (int i = 0; i < 2; ++i) processes_.push_back(std::make_unique<ClientProcess>(*ensemble_, plan_, i));
        judge_.last_change_of = [](SessionId) { return SimTime{0}; };
    }
    ~SimJudge() override {
        leases_.clear();
        grants_.clear();
        for (auto& process : processes_)
            world_.spawn(&process->actor(), "ends", [&process] { process->end_session(); });
        world_.run(world_.now() + 60 * kSecond);
    }

    struct Given {
        FencingToken token = 0;
        decltype(Fence::handovers) handovers = 0;
        int process = 0;
        std::int64_t made = 0;  // 0: as the token
        Claim claim = Claim::alone(0);
        std::string node{};
    };
    /// held() is true until it is lost.
    Judge::Ticket granted(const Given& given) {
        ClientProcess& process = *processes_[static_cast<std::size_t>(given.process)];
        const auto lease = leases_.emplace_back(std::make_shared<internal::LeaseView>());
        lease->ends_at_ns = process.actor().local_now() + 1000 * kSecond;
        const std::int64_t made = given.made == 0 ? given.token : given.made;
        const std::string node = given.node.empty() ? node_of(made) : given.node;
        auto hold = std::make_shared<internal::Hold>(process.runtime().shared_from_this(), lease,
                                                     std::vector<std::string>{node}, made, kSession, 1000);
        const auto& core = internal::SessionAccess::core(process.session());
        grants_.push_back(std::make_unique<Grant>(
            std::make_shared<internal::HoldRef>(core, std::move(hold), 0, given.token, given.handovers)));
        return judge_.granted(given.claim, process, *grants_.back());
    }
    /// Of the hold that was granted as the n-th.
    void lose(std::size_t number) { leases_[number]->ends_at_ns = 1; }
    void give_back(Judge::Ticket ticket) { judge_.ended(ticket); }

    static std::string node_of(std::int64_t made) {
        std::string digits = std::to_string(made);
        digits.insert(0, 12 - digits.size(), '0');
        return "/locks/a/_c_00000000-0000-4000-8000-" + digits + "-lock-0000000001";
    }
    void delete_node(std::int64_t made) {
        Txn txn;
        txn.zxid = made + 1000;
        txn.by_operator = true;
        Effect effect;
        effect.kind = Effect::Kind::remove;
        effect.path = node_of(made);
        txn.effects.push_back(effect);
        judge_.operator_acts(txn);
    }
    void end_session() {
        Txn txn;
        txn.kind = Txn::Kind::close_session;
        txn.session = kSession;
        txn.by_operator = true;
        judge_.operator_acts(txn);
    }
    void pass(SimTime span) { world_.run(world_.now() + span); }
    void only_operators() { plan_.faults = 1U << static_cast<unsigned>(Fault::delete_node); }

    /// The checks that found something since the last call.
    std::string found() {
        std::string all;
        for (const Violation& each : result_.violations) all += (all.empty() ? "" : " ") + each.check;
        result_.violations.clear();
        return all;
    }

    SimWorld world_{1};
    Plan plan_;
    RunResult result_;
    Judge judge_{world_, plan_, result_};
    std::unique_ptr<SimEnsemble> ensemble_;
    std::vector<std::unique_ptr<ClientProcess>> processes_;
    std::vector<std::shared_ptr<internal::LeaseView>> leases_;
    std::vector<std::unique_ptr<Grant>> grants_;
};

// ---- tokens and hand-overs ----------------------------------------------------------------------------------------

TEST_F(SimJudge, HoldersOneAfterTheOtherAreInOrder) {
    plan_.locks.local_handovers = 3;
    const auto first = granted({10});
    EXPECT_TRUE(judge_.act(first));
    give_back(first);
    const auto second = granted({10, 1});
    EXPECT_TRUE(judge_.act(second));
    give_back(second);
    const auto third = granted({20, 0, 1});
    EXPECT_TRUE(judge_.act(third));
    give_back(third);
    EXPECT_EQ(found(), "");
}

TEST_F(SimJudge, ThePairOfTokenAndHandoversIsNeverUsedTwice) {
    plan_.locks.local_handovers = 3;
    give_back(granted({10}));
    give_back(granted({10, 1}));
    give_back(granted({10, 1}));
    EXPECT_EQ(found(), "handovers token-order");
}

TEST_F(SimJudge, APairIsNotUsedTwiceByAHolderWhoHadLostItToo) {
    plan_.locks.local_handovers = 3;
    const auto first = granted({10});
    lose(0);
    EXPECT_FALSE(judge_.act(first));
    give_back(first);
    const auto second = granted({20, 0, 1});
    give_back(second);
    EXPECT_EQ(found(), "");
    // It is told late, and has lost what it was granted.
    leases_.back()->ends_at_ns = 1;
    const auto late = granted({10, 0});
    lose(2);
    give_back(late);
    EXPECT_EQ(found(), "handovers token-order");
}

TEST_F(SimJudge, ThePairGrowsWithEveryHolder) {
    plan_.locks.local_handovers = 6;
    give_back(granted({10, 0}));
    give_back(granted({10, 3}));
    give_back(granted({10, 2}));
    EXPECT_EQ(found(), "token-order");
}

TEST_F(SimJudge, ANodeIsHandedOverWithinItsProcessOnly) {
    plan_.locks.local_handovers = 3;
    give_back(granted({10}));
    give_back(granted({10, 1, 1}));
    EXPECT_EQ(found(), "token-order");
}

TEST_F(SimJudge, ALostNodeIsNotHandedOver) {
    plan_.locks.local_handovers = 3;
    const auto first = granted({10});
    lose(0);
    EXPECT_FALSE(judge_.act(first));
    give_back(first);
    give_back(granted({10, 1}));
    EXPECT_EQ(found(), "token-order");
}

TEST_F(SimJudge, ATurnHasSoManyHoldersAtMost) {
    plan_.locks.local_handovers = 2;
    give_back(granted({10}));
    give_back(granted({10, 1}));
    EXPECT_EQ(found(), "");
    give_back(granted({10, 2}));
    EXPECT_EQ(found(), "turn");
}

TEST_F(SimJudge, WithoutTheOptionsNothingIsHandedOver) {
    give_back(granted({10, 1}));
    EXPECT_EQ(found(), "turn");
}

TEST_F(SimJudge, AShareHasNoHandovers) {
    plan_.locks.local_handovers = 3;
    give_back(granted({10, 1, 0, 0, Claim::shared(0)}));
    EXPECT_EQ(found(), "handovers");
}

TEST_F(SimJudge, TheRegisterRefusesNobodyWhoHolds) {
    plan_.locks.local_handovers = 3;
    const auto former = granted({10, 0, 0});
    EXPECT_TRUE(judge_.act(former));
    const auto next = granted({10, 1, 0});
    EXPECT_EQ(found(), "token-order");  // the former one has not given back
    EXPECT_TRUE(judge_.act(next));
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "exclusion fence lost-update");
}

TEST_F(SimJudge, AShareWithTheTokenOfALaterHolderIsRefused) {
    const auto share = granted({11, 0, 0, 10, Claim::shared(0)});  // of a downgrade: the writer's token and one
    EXPECT_TRUE(judge_.act(share));
    const auto next = granted({11, 0, 1, 11});
    EXPECT_TRUE(judge_.act(next));
    EXPECT_EQ(found(), "");
    EXPECT_TRUE(judge_.act(share));
    EXPECT_EQ(found(), "exclusion fence lost-update");
}

TEST_F(SimJudge, AHolderBeforeAShareThatHasWrittenIsRefused) {
    const auto former = granted({10});
    EXPECT_TRUE(judge_.act(former));
    const auto share = granted({20, 0, 1, 20, Claim::shared(0)});
    EXPECT_TRUE(judge_.act(share));
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "exclusion fence");
}

// ---- what an operator has ended -----------------------------------------------------------------------------------

TEST_F(SimJudge, AHolderWhoseNodeWasDeletedMayActBesideTheNextForTwoThirdsOfTheTimeout) {
    const auto former = granted({10});
    EXPECT_TRUE(judge_.act(former));
    delete_node(10);
    const auto next = granted({20, 0, 1});
    EXPECT_TRUE(judge_.act(next));
    pass(kTimeout * 2 / 3);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(result_.fenced, 1U);
    EXPECT_EQ(found(), "");
    pass(kTimeout / 50);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, AHolderWhoWasToldByAHeartbeatDoesNotHold) {
    const auto former = granted({10});
    delete_node(10);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "");
    judge_.told_gone(node_of(10), 1010, world_.now());
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, AHeartbeatThatWasOnItsWayWhenAHoldBeganWasNotSentForIt) {
    const SimTime asked = world_.now();
    pass(kMilli);
    const auto holder = granted({10});
    delete_node(10);
    pass(kMilli);
    judge_.told_gone(node_of(10), 1010, asked);
    EXPECT_TRUE(judge_.act(holder));
    EXPECT_EQ(found(), "");
}

TEST_F(SimJudge, NoHoldBeginsOnANodeOfWhichAHeartbeatHasTold) {
    delete_node(10);
    judge_.told_gone(node_of(10), 1010, world_.now());
    pass(kMilli);
    granted({10});
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, AnEarlierNodeOfThatNameWasAnother) {
    delete_node(10);
    judge_.told_gone(node_of(10), 1010, world_.now());
    const auto again = granted({2000, 0, 0, 2000, Claim::alone(0), node_of(10)});
    EXPECT_TRUE(judge_.act(again));
    EXPECT_EQ(found(), "");
}

TEST_F(SimJudge, WhereNothingIsLostTheNextHeartbeatTells) {
    only_operators();
    const auto former = granted({10});
    delete_node(10);
    pass(kHeartbeat);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "");
    pass(kSecond);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, WhereNothingIsLostTheWatchOnALongHoldTellsAtOnce) {
    only_operators();
    const auto former = granted({10});
    pass(kSecond);
    delete_node(10);
    pass(kSecond);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, AHoldMayBeginByAnAnswerThatWasOnItsWayWhenItsNodeWasDeleted) {
    delete_node(10);
    pass(kTimeout / 3);
    EXPECT_TRUE(judge_.act(granted({10})));
    EXPECT_EQ(found(), "");
}

TEST_F(SimJudge, AHoldDoesNotBeginLongAfterItsNodeWasDeleted) {
    delete_node(10);
    pass(kTimeout / 3 + kTimeout / 50);
    granted({10});
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, ADeletedNodeIsHandedOverForTwoHeartbeatsAtMost) {
    plan_.locks.local_handovers = 6;
    const auto first = granted({10});
    pass(kSecond);
    delete_node(10);
    pass(2 * kHeartbeat);
    give_back(first);
    const auto second = granted({10, 1});
    EXPECT_EQ(found(), "");
    pass(kSecond);
    give_back(second);
    granted({10, 2});
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, AHolderWhoseSessionWasEndedMayActBesideTheNextForTwoThirdsOfTheTimeout) {
    const auto former = granted({10});
    EXPECT_TRUE(judge_.act(former));
    end_session();
    pass(kTimeout * 2 / 3);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "");
    pass(kTimeout / 50);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, AHoldDoesNotBeginLongAfterItsSessionWasEnded) {
    end_session();
    pass(kTimeout / 3 + kTimeout / 50);
    granted({10});
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, AHoldThatWasDecidedBeforeAStopBeginsWhenTheProcessGoesOn) {
    const auto begins = [this](SimTime after_the_stop, FencingToken token) {
        processes_[0]->actor().pause_for(kTimeout / 2);
        pass(kTimeout / 2 + after_the_stop);
        granted({token});
        return found();
    };
    delete_node(10);
    EXPECT_EQ(begins(kMilli, 10), "");
    delete_node(20);
    EXPECT_EQ(begins(kSecond, 20), "operator");
    end_session();
    EXPECT_EQ(begins(kMilli, 30), "");
    EXPECT_EQ(begins(0, 40), "operator");  // of the session that was ended before the stop before
}

TEST_F(SimJudge, WhoWasToldThatItsSessionIsOverDoesNotHold) {
    const auto former = granted({10});
    end_session();
    judge_.told_over(kSession);
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "operator");
}

TEST_F(SimJudge, NobodyElseIsExcused) {
    const auto former = granted({10});
    EXPECT_TRUE(judge_.act(former));
    delete_node(30);
    granted({20, 0, 1});
    EXPECT_TRUE(judge_.act(former));
    EXPECT_EQ(found(), "exclusion");
}

}  // namespace
}  // namespace zkrecipes::sim
