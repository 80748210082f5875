// The benchmark: what locks cost beside the floor, and beside Curator if it is there. docs/benchmark.md describes the
// cases.
#include <benchmark/benchmark.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "bench/cases.hpp"
#include "bench/crowd_process.hpp"
#include "bench/table.hpp"

int zkrecipes::bench::paired_runs() {
    const char* runs = std::getenv("ZKRECIPES_BENCH_RUNS");
    return runs == nullptr ? 5 : std::max(std::atoi(runs), 1);
}

int main(int argc, char** argv) {
    using namespace zkrecipes::bench;
    spdlog::stderr_logger_mt("zkrecipes")->set_level(spdlog::level::err);
    if (argc == 2 && std::string_view(argv[1]) == "--crowd-process") return run_crowd_process();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    register_uncontended();
    register_hand_over();
    register_sets();
    register_crowds();
    register_local();
    TableReporter table;
    benchmark::RunSpecifiedBenchmarks(&table);
    benchmark::Shutdown();
    return 0;
}
