// Of those who are still inside a double barrier: whom the one who leaves waits for.
#include "core/node/double_barrier.hpp"

#include <gtest/gtest.h>

namespace zkrecipes::internal {
namespace {

using What = BarrierWait::What;

void expect(const std::vector<std::string>& names, const std::string& own, What what, const std::string& name = "") {
    const auto wait = next_to_wait_for(names, own);
    EXPECT_EQ(wait.what, what);
    EXPECT_EQ(wait.name, name);
}

TEST(DoubleBarrierRuleTest, TheFirstByNameStaysUntilAllHaveGone) {
    expect({"c", "ready", "a", "b"}, "a", What::stay_for, "c");
    expect({"a", "b", "ready"}, "a", What::stay_for, "b");
    expect({"a", "ready"}, "a", What::all_gone);
}

TEST(DoubleBarrierRuleTest, TheOthersGoAndWaitForTheFirst) {
    expect({"c", "ready", "a", "b"}, "b", What::leave_then, "a");
    expect({"c", "ready", "a", "b"}, "c", What::leave_then, "a");
    expect({"c", "ready", "a"}, "", What::wait_for, "a");
    expect({"c"}, "b", What::wait_for, "c");
    expect({"ready"}, "", What::all_gone);
    expect({}, "b", What::all_gone);
}

}  // namespace
}  // namespace zkrecipes::internal
