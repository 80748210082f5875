// multi_lock_crowd [ACQUISITIONS [SEED]]: sixteen clients lock random sets of twelve paths, in any order and mode, and
// single paths beside, on a server of its own. Exit code 0: nobody overlapped, everybody was served, nothing was left.
#include <cstdio>
#include <cstdlib>

#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "server/multi_lock_crowd.hpp"

int main(int argc, char** argv) {
    zkrecipes::test::CrowdOptions options;
    if (argc > 1) options.acquisitions = std::strtoull(argv[1], nullptr, 10);
    if (argc > 2) options.seed = std::strtoull(argv[2], nullptr, 10);
    if (options.acquisitions == 0) {
        std::fprintf(stderr, "usage: %s [ACQUISITIONS [SEED]]\n", argv[0]);
        return 64;
    }
    try {
        const zkrecipes::testenv::ZkServer server;
        const auto report = zkrecipes::test::run_crowd(server.connect_string(), "/crowd", options);
        std::printf(
            "acquisitions %zu (%zu of sets), overlaps %zu, unserved %zu, nodes left %zu, slowest wait %lld ms, %.1f "
            "s\n",
            report.acquisitions, report.of_sets, report.overlaps, report.unserved, report.left_nodes,
            static_cast<long long>(report.slowest.count()), static_cast<double>(report.took.count()) / 1000);
        const bool well = report.acquisitions == options.acquisitions && report.overlaps == 0 && report.unserved == 0 &&
                          report.left_nodes == 0;
        return well ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
