#include "sim/mutations.hpp"

#include <cstdio>

#ifndef ZKRECIPES_MUTATIONS

int zkrecipes::sim::run_mutations(const MutationRun&) {
    std::fputs("zkrecipes_sim: this build has no mutations; run scripts/sim --mutations\n", stderr);
    return 2;
}

#else

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mutations/switches.hpp"
#include "sim/plan.hpp"

namespace zkrecipes::sim {
namespace {

struct Mutation {
    std::string name;
    bool expected;         // to be found by the simulation
    std::string workload;  // where; empty: not said
};

/// The rows of docs/mutations.md: `| `name` | … | the check, or – |`, and those of defences that stand behind each
/// other: `| both `name+name` | … | the check |`.
std::vector<Mutation> read_table() {
    std::vector<Mutation> table;
    std::ifstream file(ZKRECIPES_MUTATION_TABLE);
    for (std::string line; std::getline(file, line);) {
        constexpr std::string_view kOne = "| `", kBoth = "| both `", kEnd = " |", kNone = "–";
        const std::string_view begin = line.starts_with(kOne) ? kOne : kBoth;
        if (!line.starts_with(begin) || !line.ends_with(kEnd)) continue;
        line.resize(line.size() - kEnd.size());
        const std::size_t end = line.find('`', begin.size());
        Mutation& mutation = table.emplace_back();
        mutation.name = line.substr(begin.size(), end - begin.size());
        mutation.expected = !line.ends_with(kNone);
        if (!mutation.expected || !line.ends_with('`')) continue;
        line.pop_back();
        mutation.workload = line.substr(line.rfind('`') + 1);
    }
    return table;
}

constexpr std::uint64_t kCpuSecondsOfASeed = 30;  // a seed takes a tenth of a second; beyond this it has no end
constexpr rlim_t kMemory = rlim_t{3} << 30;
constexpr std::uint64_t kSeedsToReachIt = 50;  // of each workload, where nothing is expected anyway

/// In a process of its own: the workload that the table names, for as long as all of them would take; or all workloads
/// in turn, since nobody knows which of them meets the bug first.
[[noreturn]] void hunt(const Mutation& mutation, const MutationRun& run, FILE* out) {
    internal::Mutations::active() = mutation.name;  // lives as long as the table
    const rlimit memory{kMemory, kMemory};
    setrlimit(RLIMIT_AS, &memory);
    const auto found_something = [&](std::uint64_t seed, const std::string& workload) {
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        const rlim_t until = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kCpuSecondsOfASeed;
        const rlimit cpu{until, RLIM_INFINITY};
        setrlimit(RLIMIT_CPU, &cpu);
        std::fprintf(out, "running %llu %s\n", static_cast<unsigned long long>(seed), workload.c_str());
        std::fflush(out);
        const RunResult result = run_plan(make_plan(seed, workload), false);
        if (!result.violations.empty()) std::fprintf(out, "caught %s\n", result.violations.front().check.c_str());
        return !result.violations.empty();
    };
    const bool named = std::count(run.workloads.begin(), run.workloads.end(), mutation.workload) != 0;
    const std::vector<std::string> workloads = named ? std::vector{mutation.workload} : run.workloads;
    const std::uint64_t seeds = run.seeds * (named ? run.workloads.size() : 1);
    bool caught = false;
    for (std::uint64_t seed = run.first; seed < run.first + seeds && !caught; ++seed) {
        const bool may_stop = !mutation.expected && seed - run.first >= kSeedsToReachIt;
        if (may_stop && !internal::Mutations::reached()) break;
        for (std::size_t i = 0; i < workloads.size() && !caught; ++i) caught = found_something(seed, workloads[i]);
    }
    if (!internal::Mutations::reached()) std::fprintf(out, "unreached\n");
    std::fflush(out);
    _exit(0);
}

struct HuntOutcome {
    std::string check;  // empty: survived
    unsigned long long seed = 0;
    std::string workload;
    bool reached = true;
};

HuntOutcome read_hunt(FILE* in, int status) {
    HuntOutcome outcome;
    char line[256];
    std::rewind(in);
    while (std::fgets(line, sizeof line, in) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        char workload[64];
        if (std::sscanf(line, "running %llu %63s", &outcome.seed, workload) == 2) {
            outcome.workload = workload;
            continue;
        }
        if (std::strncmp(line, "caught ", 7) == 0) outcome.check = line + 7;
        if (std::strcmp(line, "unreached") == 0) outcome.reached = false;
    }
    std::fclose(in);
    if (WIFSIGNALED(status)) outcome.check = WTERMSIG(status) == SIGXCPU ? "endless" : "crash";
    return outcome;
}

}  // namespace

int run_mutations(const MutationRun& run) {
    struct Running {
        const Mutation* mutation;
        FILE* file;
    };
    std::map<pid_t, Running> running;
    std::map<const Mutation*, HuntOutcome> outcomes;
    const auto wait_for_one = [&] {
        int status = 0;
        const pid_t child = wait(&status);
        const auto found = running.find(child);
        if (found == running.end()) return;
        outcomes[found->second.mutation] = read_hunt(found->second.file, status);
        running.erase(found);
    };
    std::fflush(stdout);
    const std::vector<Mutation> table = read_table();
    for (const Mutation& mutation : table) {
        if (!run.only.empty() && run.only != mutation.name) continue;
        while (static_cast<int>(running.size()) >= run.jobs) wait_for_one();
        FILE* const file = std::tmpfile();
        const pid_t child = file != nullptr ? fork() : -1;
        if (child < 0) {
            std::perror("zkrecipes_sim");
            return 2;
        }
        if (child == 0) hunt(mutation, run, file);
        running[child] = {&mutation, file};
    }
    while (!running.empty()) wait_for_one();
    if (outcomes.empty()) {
        std::fprintf(stderr, "zkrecipes_sim: no mutation %s\n", run.only.c_str());
        return 2;
    }

    int survived = 0, caught = 0;
    std::printf("%-38s %-14s %-10s %7s\n", "mutation", "caught by", "workload", "seed");
    for (const Mutation& mutation : table) {
        const auto found = outcomes.find(&mutation);
        if (found == outcomes.end()) continue;
        const HuntOutcome& outcome = found->second;
        const bool is_caught = !outcome.check.empty();
        const std::string seed = is_caught ? std::to_string(outcome.seed) : "-";
        const char* remark = !is_caught && mutation.expected   ? "   NOT CAUGHT, though docs/mutations.md says so"
                             : is_caught && !mutation.expected ? "   of which docs/mutations.md knows nothing"
                                                               : "";
        const char* result = is_caught ? outcome.check.c_str() : outcome.reached ? "survived" : "not reached";
        std::printf("%-38s %-14s %-10s %7s%s\n", mutation.name.c_str(), result,
                    is_caught ? outcome.workload.c_str() : "-", seed.c_str(), remark);
        survived += mutation.expected && !is_caught;
        caught += is_caught;
    }
    std::printf(
        "%zu mutations: %d caught by the simulation (at most %llu seeds of each workload); %d not caught although "
        "expected\n",
        outcomes.size(), caught, static_cast<unsigned long long>(run.seeds), survived);
    return survived == 0 ? 0 : 1;
}

}  // namespace zkrecipes::sim

#endif
