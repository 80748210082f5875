#include "server/election_crowd.hpp"

#include <iostream>

#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

// A hundred rounds, and an ensemble of three, are a command: election_crowd.
TEST(LeaderElectionCrowdTest, TenCandidatesHaveOneLeaderThroughOutagesOfAllServers) {
    ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
    ElectionCrowdOptions options;
    options.servers = 1;
    const auto report = run_election_crowd(options);
    std::cout << "terms: " << report.terms << ", places kept: " << report.kept << ", slowest healing "
              << report.slowest.count() << " ms, took " << report.took.count() << " ms\n";
    EXPECT_EQ(report.rounds, options.rounds);
    EXPECT_EQ(report.two_leaders, 0u);
    EXPECT_EQ(report.outlived, 0u);
    EXPECT_EQ(report.token_order, 0u);
    EXPECT_EQ(report.unhealed, 0u);
    EXPECT_EQ(report.misplaced, 0u);
    EXPECT_EQ(report.failed, 0u);
    EXPECT_EQ(report.left_nodes, 0u);
    EXPECT_GE(report.terms, options.rounds);
}

}  // namespace
}  // namespace zkrecipes::test
