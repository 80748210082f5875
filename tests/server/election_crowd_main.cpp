// election_crowd [ROUNDS [SERVERS]]: ten candidates for one leadership, through an outage of all servers in each round.
// Exit code 0: never two leaders, one soon after each outage, all places kept that could be, nothing left behind.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "server/election_crowd.hpp"

int main(int argc, char** argv) {
    zkrecipes::test::ElectionCrowdOptions options;
    options.rounds = 100;
    options.timeout = std::chrono::seconds(4);  // an ensemble takes longer to come back
    if (argc > 1) options.rounds = std::strtoull(argv[1], nullptr, 10);
    if (argc > 2) options.servers = std::atoi(argv[2]);
    if (options.rounds == 0 || options.servers < 1) {
        std::fprintf(stderr, "usage: %s [ROUNDS [SERVERS]]\n", argv[0]);
        return 64;
    }
    try {
        const auto report = zkrecipes::test::run_election_crowd(options);
        std::printf(
            "rounds %zu, terms %zu, two leaders %zu, outlived their node %zu, tokens out of order %zu, not healed %zu, "
            "places kept %zu, lost %zu, failed %zu, nodes left %zu, slowest healing %lld ms, %.1f s\n",
            report.rounds, report.terms, report.two_leaders, report.outlived, report.token_order, report.unhealed,
            report.kept, report.misplaced, report.failed, report.left_nodes,
            static_cast<long long>(report.slowest.count()), static_cast<double>(report.took.count()) / 1000);
        return report.well() ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
