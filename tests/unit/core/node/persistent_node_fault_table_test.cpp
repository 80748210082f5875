// A node that is kept there: a fault at every request.
#include <gtest/gtest.h>

#include <string>

#include "support/fault_table.hpp"
#include "unit/core/node/persistent_node_world.hpp"

namespace zkrecipes::internal {
namespace {

using State = PersistentNodeState;

struct Scenario {
    const char* name;
    void (*prepare)(PersistentNodeWorld&);
    void (*then)(PersistentNodeWorld&);  // when it has come to rest
};

constexpr Scenario kScenarios[] = {
    {"Made", [](PersistentNodeWorld&) {}, [](PersistentNodeWorld&) {}},
    {"ParentMissing", [](PersistentNodeWorld& w) { w.parent = false; }, [](PersistentNodeWorld&) {}},
    {"DataSet", [](PersistentNodeWorld&) {}, [](PersistentNodeWorld& w) { w.fsm.set_data("two"); }},
    {"Deleted", [](PersistentNodeWorld&) {}, [](PersistentNodeWorld& w) { w.vanish(); }},
    {"ParentDeleted", [](PersistentNodeWorld&) {},
     [](PersistentNodeWorld& w) {
         w.parent = false;
         w.vanish();
     }},
    {"TakenFirst",
     [](PersistentNodeWorld& w) {
         w.node = {99, "theirs", 0};
     },
     [](PersistentNodeWorld& w) { w.end_session_of(99); }},
};

class PersistentNodeFaultTable : public ::testing::TestWithParam<Cell<Scenario>> {
protected:
    int play(const PlannedFaults& plans, const Variant& variant) {
        PersistentNodeWorld w;
        w.state_first = variant.suspended_first;
        w.lingering = variant.lingering;
        GetParam().scenario->prepare(w);
        w.plans = plans;
        w.start();
        if (w.fsm.state() != State::closed) GetParam().scenario->then(w);
        w.run();
        check(w, plans);
        return w.executed;
    }
    static void check(PersistentNodeWorld& w, const PlannedFaults& plans) {
        std::string cell;
        for (const auto& plan : plans) cell += std::to_string(plan.at) + ":" + name_of(plan.fault) + " ";
        for (const auto& step : w.sent) cell += "[" + step + "]";
        SCOPED_TRACE(cell);
        const bool ours = w.node && w.node->owner == w.session;
        if (w.fsm.state() == State::closed) {
            EXPECT_EQ(w.finishes, 1);
            // Nothing of this session is left that nobody deletes.
            EXPECT_TRUE(!ours || w.giving_back == w.session);
            EXPECT_FALSE(w.timer);
            return;
        }
        EXPECT_EQ(w.finishes, 0);
        EXPECT_TRUE(ours);
        EXPECT_TRUE(w.fsm.settled());
        EXPECT_TRUE(w.watched.has_value());
        if (ours) {
            EXPECT_EQ(w.node->data, w.fsm.data());
        }
    }
};

TEST_P(PersistentNodeFaultTable, OneFaultAtEveryStep) {
    one_fault_at_every_step(GetParam().fault, [this](const auto& plans, const auto& v) { return play(plans, v); });
}
TEST_P(PersistentNodeFaultTable, TwoFaults) {
    two_faults_at_any_steps(GetParam().fault, [this](const auto& plans, const auto& v) { return play(plans, v); });
}
INSTANTIATE_TEST_SUITE_P(Node, PersistentNodeFaultTable, ::testing::ValuesIn(cells(kScenarios)), NameOfCell());

}  // namespace
}  // namespace zkrecipes::internal
