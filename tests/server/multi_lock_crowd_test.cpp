#include "server/multi_lock_crowd.hpp"

#include "server/multi_lock_support.hpp"

namespace zkrecipes::test {
namespace {

// The whole of it, 5,000 acquisitions and more, is a command: multi_lock_crowd.
TEST_F(MultiLockServerTest, SetsInOppositeOrdersAndSinglePathsNeitherDeadlockNorOverlap) {  // H42
    CrowdOptions options;
    options.acquisitions = 1000;
    const auto report = run_crowd(connect_string(), root(), options);
    RecordProperty("slowest_ms", static_cast<int>(report.slowest.count()));
    std::cout << "acquisitions: " << report.acquisitions << " (" << report.of_sets << " of sets), slowest wait "
              << report.slowest.count() << " ms, took " << report.took.count() << " ms\n";
    EXPECT_EQ(report.acquisitions, options.acquisitions);
    EXPECT_GT(report.of_sets, options.acquisitions / 2);
    EXPECT_EQ(report.overlaps, 0u);
    EXPECT_EQ(report.unserved, 0u);
    EXPECT_EQ(report.left_nodes, 0u);
}

}  // namespace
}  // namespace zkrecipes::test
