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

#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutation.hpp"
#include "sim/plan.hpp"

namespace zkrecipes::sim {
namespace {

struct Mutation {
    std::string name;
    bool expected;  // to be found by the simulation
};

/// The rows of docs/mutations.md: `| `name` | … | found, or – |`.
std::vector<Mutation> read_table() {
    std::vector<Mutation> table;
    std::ifstream file(ZKRECIPES_MUTATION_TABLE);
    for (std::string line; std::getline(file, line);) {
        constexpr std::string_view kBegin = "| `", kEnd = " |", kNone = "–";
        if (!line.starts_with(kBegin) || !line.ends_with(kEnd)) continue;
        line.resize(line.size() - kEnd.size());
        table.push_back(
            {line.substr(kBegin.size(), line.find('`', kBegin.size()) - kBegin.size()), !line.ends_with(kNone)});
    }
    return table;
}

constexpr std::uint64_t kCpuSecondsOfASeed = 30;  // a seed takes a tenth of a second; beyond this it has no end
constexpr rlim_t kMemory = rlim_t{3} << 30;
constexpr std::uint64_t kSeedsToReachIt = 50;  // where nothing is expected anyway

/// In a process of its own.
[[noreturn]] void hunt(const Mutation& mutation, const MutationRun& run, FILE* out) {
    internal::Mutations::active() = mutation.name;  // lives as long as the table
    const rlimit memory{kMemory, kMemory};
    setrlimit(RLIMIT_AS, &memory);
    for (std::uint64_t seed = run.first; seed < run.first + run.seeds; ++seed) {
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        const rlim_t until = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kCpuSecondsOfASeed;
        const rlimit cpu{until, RLIM_INFINITY};
        setrlimit(RLIMIT_CPU, &cpu);
        std::fprintf(out, "running %llu\n", static_cast<unsigned long long>(seed));
        std::fflush(out);
        const bool may_stop = !mutation.expected && seed - run.first >= kSeedsToReachIt;
        if (may_stop && !internal::Mutations::reached()) break;
        const RunResult result = run_plan(make_plan(seed, workload_names().front()), false);
        if (!result.violations.empty()) {
            std::fprintf(out, "caught %s\n", result.violations.front().check.c_str());
            break;
        }
    }
    if (!internal::Mutations::reached()) std::fprintf(out, "unreached\n");
    std::fflush(out);
    _exit(0);
}

struct Outcome {
    std::string check;  // empty: survived
    unsigned long long seed = 0;
    bool reached = true;
};

Outcome read_outcome(FILE* in, int status) {
    Outcome outcome;
    char line[256];
    std::rewind(in);
    while (std::fgets(line, sizeof line, in) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        if (std::sscanf(line, "running %llu", &outcome.seed) == 1) continue;
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
    std::map<const Mutation*, Outcome> outcomes;
    const auto wait_for_one = [&] {
        int status = 0;
        const pid_t child = wait(&status);
        const auto found = running.find(child);
        if (found == running.end()) return;
        outcomes[found->second.mutation] = read_outcome(found->second.file, status);
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
    std::printf("%-38s %-14s %7s\n", "mutation", "caught by", "seed");
    for (const Mutation& mutation : table) {
        const auto found = outcomes.find(&mutation);
        if (found == outcomes.end()) continue;
        const Outcome& outcome = found->second;
        const bool is_caught = !outcome.check.empty();
        const std::string seed = is_caught ? std::to_string(outcome.seed) : "-";
        const char* remark = !is_caught && mutation.expected   ? "   NOT CAUGHT, though docs/mutations.md says so"
                             : is_caught && !mutation.expected ? "   of which docs/mutations.md knows nothing"
                                                               : "";
        std::printf("%-38s %-14s %7s%s\n", mutation.name.c_str(),
                    is_caught         ? outcome.check.c_str()
                    : outcome.reached ? "survived"
                                      : "not reached",
                    seed.c_str(), remark);
        survived += mutation.expected && !is_caught;
        caught += is_caught;
    }
    std::printf(
        "%zu mutations: %d caught by the simulation (at most %llu seeds each); %d not caught although expected\n",
        outcomes.size(), caught, static_cast<unsigned long long>(run.seeds), survived);
    return survived == 0 ? 0 : 1;
}

}  // namespace zkrecipes::sim

#endif
