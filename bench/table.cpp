#include "bench/table.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace zkrecipes::bench {
namespace {

std::vector<Row> rows_to_print;

std::string number(double value) {
    char text[32];
    const double size = value < 0 ? -value : value;
    std::snprintf(text, sizeof text, size >= 100 ? "%.0f" : size >= 10 ? "%.1f" : "%.2f", value);
    return text;
}

std::string middle_of(const std::vector<double>& values) { return values.empty() ? "-" : number(median(values)); }

std::string ratio(const std::vector<double>& side, const std::vector<double>& floor, bool with_range) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < std::min(side.size(), floor.size()); ++i) {
        if (floor[i] > 0) ratios.push_back(side[i] / floor[i]);
    }
    if (ratios.empty()) return "-";
    std::string text = number(median(ratios));
    if (with_range && ratios.size() > 1) {
        const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
        text += " (" + number(*least) + " to " + number(*most) + ")";
    }
    return text;
}

void print_line(const std::string& what, const std::string& floor, const std::string& ours, const std::string& curator,
                const std::string& ratio, const std::string& curators_ratio) {
    std::printf("%-56s %10s %10s %10s  %-22s %s\n", what.c_str(), floor.c_str(), ours.c_str(), curator.c_str(),
                ratio.c_str(), curators_ratio.c_str());
}

}  // namespace

void add(benchmark::State& state, Row row) {
    const std::string name = row.what + ", " + row.unit;
    if (!row.floor.empty()) state.counters[name + ", floor"] = median(row.floor);
    if (!row.ours.empty()) state.counters[name + ", zkrecipes"] = median(row.ours);
    if (!row.curator.empty()) state.counters[name + ", Curator"] = median(row.curator);
    rows_to_print.push_back(std::move(row));
}

bool TableReporter::ReportContext(const Context&) {
    print_line("", "floor", "zkrecipes", "Curator", "ratio", "Curator's");
    return true;
}

void TableReporter::ReportRuns(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
        std::printf("%s\n", run.run_name.function_name.c_str());
        if (run.error_occurred) std::printf("  failed: %s\n", run.error_message.c_str());
    }
    for (const Row& row : std::exchange(rows_to_print, {})) {
        print_line("  " + row.what + " [" + row.unit + "]", middle_of(row.floor),
                   row.instead_of_ours.empty() ? middle_of(row.ours) : row.instead_of_ours, middle_of(row.curator),
                   ratio(row.ours, row.floor, true), ratio(row.curator, row.floor, false));
    }
    std::fflush(stdout);
}

}  // namespace zkrecipes::bench
