#pragma once

#include <benchmark/benchmark.h>

#include <optional>
#include <string>
#include <vector>

#include "bench/median.hpp"

namespace zkrecipes::bench {

/// One line of the table: what was measured for each side, one value per paired run. A side without values was not
/// measured.
struct Row {
    std::string what;
    std::string unit;
    std::vector<double> floor;
    std::vector<double> ours;
    std::vector<double> curator;
    std::string instead_of_ours{};  ///< why there are no values of ours
};

/// Prints one line for each row, below the name of its benchmark: the medians, and of the ratios of the pairs the
/// median and the range.
class TableReporter : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context& context) override;
    void ReportRuns(const std::vector<Run>& runs) override;
};

/// Adds a row to the benchmark that runs now. Its medians are also counters of the benchmark, for --benchmark_out.
void add(benchmark::State& state, Row row);

}  // namespace zkrecipes::bench
