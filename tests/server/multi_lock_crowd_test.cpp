#include "server/multi_lock_crowd.hpp"

#include "server/multi_lock_support.hpp"

namespace zkrecipes::test {
namespace {

// The whole of it, 5,000 acquisitions and more, with Curator clients among the crowd, is a command: multi_lock_crowd.
TEST_F(MultiLockServerTest, SetsInOppositeOrdersAndSinglePathsNeitherDeadlockNorOverlap) {  // H42
    CrowdOptions options;
    options.acquisitions = 1000;
    const auto report = run_crowd(connect_string(), root(), std::move(options));
    RecordProperty("slowest_ms", static_cast<int>(report.slowest.count()));
    std::cout << report.text() << "\n";
    EXPECT_TRUE(report.went_well(1000)) << report.text();
    EXPECT_GT(report.of_sets, 500u);
}

}  // namespace
}  // namespace zkrecipes::test
