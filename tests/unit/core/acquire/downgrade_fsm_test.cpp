// From alone to shared: each step × everything that can go wrong at it, generated, and the cases that say why.
#include "core/acquire/downgrade_fsm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <sstream>

#include "core/queue/node_name.hpp"
#include "unit/core/acquire/queue_world.hpp"

namespace zkrecipes::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kWriter = "_c_00000000-0000-4000-8000-000000000001-__WRIT__0000000005";

/// A directory in which we hold exclusively and another writer waits.
class World : public DowngradePort, public QueueWorld {
public:
    explicit World(Patience patience = Patience::wait, Dialect dialect = Dialect::curator)
        : fsm(*this, {dialect == Dialect::kazoo ? "__rlock__" : "__READ__", dialect, 5}, patience) {
        children[kWriter] = 1;
        children["_c_00000000-0000-4000-8000-000000000002-__WRIT__0000000006"] = kOther;
    }

    std::vector<std::string> shares() const {
        std::vector<std::string> found;
        for (const auto& [name, owner] : children) {
            if (name != kWriter && owner != kOther) found.push_back(name);
        }
        return found;
    }

    // ---- DowngradePort ----
    bool exclusive_held() const override { return alone; }
    void create(Ticket ticket, const std::string& name) override {
        trace.push_back("create");
        send([this, ticket, name](bool run, Rc rc) {
            Rc result = Rc::ok;
            if (run && !children.contains(kWriter)) result = Rc::no_node;
            if (run && result == Rc::ok && children.contains(name)) result = Rc::node_exists;
            if (run && result == Rc::ok) {
                children[name] = session;
                czxids[name] = ++zxid;
            }
            if (std::exchange(delete_share_at_once, false)) children.erase(name);
            fsm.on_created(ticket, rc == Rc::ok ? result : rc, now());
        });
        trace.push_back("exists");
        send([this, ticket, name](bool, Rc rc) {
            NodeStat stat;
            if (rc == Rc::ok && !children.contains(name)) rc = Rc::no_node;
            if (rc == Rc::ok) {
                stat.ephemeral_owner = std::exchange(owner_shown, 0) != 0 ? kOther : children[name];
                stat.czxid = czxids[name];
            }
            fsm.on_own(ticket, rc, stat);
        });
    }
    void renew_lease(Ticket ticket, const std::string& name) override {
        trace.push_back("renew");
        send([this, ticket, name](bool run, Rc rc) {
            if (rc == Rc::ok && !children.contains(name)) rc = Rc::no_node;
            if (run && rc == Rc::ok) lease_fresh = true;
            fsm.on_lease_renewed(ticket, rc);
        });
    }
    bool reserve_node(const std::string&) override { return room; }
    void lease_committed(Instant) override { lease_fresh = !slow_lease; }
    bool begin_hold(const std::string& name, std::int64_t czxid) override {
        if (!lease_fresh) return false;
        holds.emplace_back(name, czxid);
        return true;
    }
    void delete_node(const std::string& name) override { reaped_nodes.push_back(name); }
    void delete_by_identity(const std::string& identity) override { reaped_identities.push_back(identity); }
    void answer(Ended how, Errc error, std::string) override {
        ++answers;
        ended = how;
        errc = error;
    }

    DowngradeFsm fsm;
    std::map<std::string, std::int64_t> children;
    std::map<std::string, std::int64_t> czxids;
    int owner_shown = 0;  // not 0: another one, once
    bool alone = true, delete_share_at_once = false;
    std::vector<std::string> reaped_nodes;
    std::vector<std::pair<std::string, std::int64_t>> holds;

private:
    OperationFsm& machine() override { return fsm; }
    void delete_nodes_of(std::int64_t owner) override {
        std::erase_if(children, [&](const auto& child) { return child.second == owner; });
    }
    void fire_missed_watches() override {}
    void forget_watches() override { alone = false; }  // the session is lost
    void flush_reaper() override {
        for (const auto& name : reaped_nodes) children.erase(name);
        for (const auto& identity : reaped_identities) {
            for (const auto& name : shares()) {
                if (name.starts_with(identity)) children.erase(name);
            }
        }
    }
};

// ---- the generated table --------------------------------------------------------------------------------------------

struct Scenario {
    const char* name;
    Patience patience;
    void (*prepare)(World&);
    bool granted = true;  // when nothing goes wrong
    Dialect dialect = Dialect::curator;
};
const Scenario kScenarios[] = {
    {"Plain", Patience::wait, [](World&) {}},
    {"Kazoo", Patience::wait, [](World&) {}, true, Dialect::kazoo},
    {"Try", Patience::try_once, [](World&) {}},
    {"OldLease", Patience::wait, [](World& w) { w.slow_lease = true; }},
    {"Away", Patience::wait, [](World& w) { w.is_connected = false; }},
    {"WriterDeleted", Patience::wait, [](World& w) { w.children.erase(kWriter); }, false},
    {"ShareDeleted", Patience::wait, [](World& w) { w.delete_share_at_once = true; }, false},
};
int play(const Scenario& scenario, const PlannedFaults& plans, const Variant& variant) {
    World w(scenario.patience, scenario.dialect);
    w.suspended_first = variant.suspended_first;
    w.attempts_allowed = variant.attempts;
    w.stay_away = variant.stay_away;
    scenario.prepare(w);
    w.plans = plans;
    w.fsm.start();
    w.run();

    std::ostringstream cell;
    cell << scenario.name;
    bool excused = !scenario.granted || variant.attempts < Variant::kForever;
    for (const auto& plan : plans) {
        cell << " " << plan.at << ":" << name_of(plan.fault);
        const bool only_lost = plan.fault == Fault::lost_before || plan.fault == Fault::lost_after;
        if (plan.at < w.executed && (!only_lost || scenario.patience == Patience::try_once)) excused = true;
    }
    for (const auto& step : w.trace) cell << " " << step;
    SCOPED_TRACE(cell.str());
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.finishes, 1);
    EXPECT_FALSE(w.timer);
    if (w.ended == Ended::granted) {
        EXPECT_THAT(w.shares(), ElementsAre(w.fsm.node()));
        EXPECT_EQ(w.holds.size(), 1u);
        EXPECT_EQ(w.holds.at(0).second, w.czxids.at(w.fsm.node()));
        EXPECT_TRUE(
            w.fsm.node().ends_with(scenario.dialect == Dialect::kazoo ? "__rlock__0000000005" : "-__READ__0000000005"));
    } else {
        EXPECT_THAT(w.shares(), IsEmpty());
        EXPECT_THAT(w.holds, IsEmpty());
        EXPECT_TRUE(excused) << "ended " << (w.ended ? static_cast<int>(*w.ended) : -1);
    }
    return w.executed;
}

class DowngradeFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {
protected:
    static auto player() {
        return [&scenario = *GetParam().scenario](const PlannedFaults& plans, const Variant& variant) {
            return play(scenario, plans, variant);
        };
    }
};

TEST_P(DowngradeFaultTable, EndsWithOneAnswerAndLeavesNothing) { one_fault_at_every_step(GetParam().fault, player()); }
TEST_P(DowngradeFaultTable, EndsWellWithASecondFaultAtAnyLaterStep) {
    two_faults_at_any_steps(GetParam().fault, player());
}
INSTANTIATE_TEST_SUITE_P(EveryStep, DowngradeFaultTable, ::testing::ValuesIn(cells(kScenarios)), NameOfCell());

// ---- why ----------------------------------------------------------------------------------------------------------

TEST(DowngradeFsmTest, AnUnknownOutcomeIsAskedAgainUnderTheSameName) {
    World w;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.ended, Ended::granted);
    EXPECT_EQ(w.uuids, 1);
    // "Exists already" committed nothing: the lease comes from a check of its own.
    EXPECT_THAT(w.trace, ElementsAre("create", "exists", "create", "exists", "renew"));
}

TEST(DowngradeFsmTest, GivingUpWithAnUnknownOutcomeReapsByIdentity) {
    World w;
    w.attempts_allowed = 0;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.pump();
    EXPECT_EQ(w.errc, Errc::connection_lost);
    EXPECT_THAT(w.reaped_identities, ElementsAre(w.fsm.node().substr(0, kIdentityChars)));
    EXPECT_THAT(w.reaped_nodes, IsEmpty());
}

TEST(DowngradeFsmTest, AStopWhileTheCreateIsOnItsWayAnswersAtOnceAndStaysBehind) {
    World w;
    w.fsm.start();
    w.fsm.stop();
    EXPECT_EQ(w.answers, 1);
    EXPECT_EQ(w.ended, Ended::stopped);
    EXPECT_EQ(w.finishes, 0);
    w.run();
    EXPECT_EQ(w.finishes, 1);
    EXPECT_THAT(w.reaped_nodes, ElementsAre(w.fsm.node()));
}

TEST(DowngradeFsmTest, AHoldThatWasLostMeanwhileGivesNoShareAlthoughItsNodeIsThere) {
    World w;
    w.plans = {{0, Fault::lost_after}};
    w.fsm.start();
    w.pump();
    w.alone = false;  // the lease passed during the outage
    w.run();
    EXPECT_EQ(w.errc, Errc::lock_lost);
    EXPECT_THAT(w.shares(), IsEmpty());
    World late;
    late.alone = false;
    late.fsm.start();
    EXPECT_EQ(late.errc, Errc::lock_lost);
    EXPECT_THAT(late.trace, IsEmpty());
}

TEST(DowngradeFsmTest, AShareThatTurnsOutToBelongToAnotherSessionIsNone) {  // H4
    World w;
    w.owner_shown = 1;
    w.fsm.start();
    w.run();
    EXPECT_EQ(w.errc, Errc::lock_lost);
    EXPECT_THAT(w.holds, IsEmpty());
    EXPECT_THAT(w.shares(), IsEmpty());
}

TEST(DowngradeFsmTest, AFullBudgetIsAnErrorThatSendsNothing) {
    World w;
    w.room = false;
    w.fsm.start();
    EXPECT_EQ(w.errc, Errc::budget_exceeded);
    EXPECT_EQ(w.finishes, 1);
    EXPECT_THAT(w.trace, IsEmpty());
}

TEST(DowngradeFsmTest, ItWaitsForNobodyAndSoADeadlineMeansThatAnAnswerIsMissing) {
    World w;
    w.fsm.start();
    w.fsm.deadline();
    EXPECT_EQ(w.ended, Ended::unreachable);
}

TEST(DowngradeFsmTest, ATryWithoutConnectionFailsAtOnce) {
    World w(Patience::try_once);
    w.is_connected = false;
    w.fsm.start();
    EXPECT_EQ(w.ended, Ended::unreachable);
    EXPECT_EQ(w.finishes, 1);
}

}  // namespace
}  // namespace zkrecipes::internal
