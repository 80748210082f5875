#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zkrecipes::sim {

struct MutationRun {
    std::uint64_t first = 1;
    std::uint64_t seeds = 1000;  // of each workload, for each mutation, until the first violation; see hunt()
    std::vector<std::string> workloads;
    int jobs = 2;
    std::string only;  // empty: all
};
/// Turns on each deliberate bug of docs/mutations.md in turn and says in one table what caught it. 0: all that the
/// table there promises is kept; 1: something survived; 2: this build has no mutations.
int run_mutations(const MutationRun& run);

}  // namespace zkrecipes::sim
