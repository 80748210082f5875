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
    std::string check;     // by which
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
        const std::size_t workload = line.rfind('`'), check = line.rfind('|') + 2;
        mutation.workload = line.substr(workload + 1);
        mutation.check = line.substr(check, line.find(' ', check) - check);
    }
    return table;
}

constexpr std::uint64_t kCpuSecondsOfASeed = 30;  // a seed takes a tenth of a second; beyond this it has no end
constexpr rlim_t kMemory = rlim_t{3} << 30;
constexpr std::uint64_t kSeedsToReachIt = 50;  // of each workload, where nothing is expected anyway

/// The runs of one mutation: of the workload that the table names, for as long as all of them would take; or of all
/// workloads in turn, since nobody knows which of them meets the bug first.
class Runs {
public:
    Runs(const Mutation& mutation, const MutationRun& run) : first_(run.first), workloads_(run.workloads) {
        const bool named = std::count(run.workloads.begin(), run.workloads.end(), mutation.workload) != 0;
        if (named) workloads_ = {mutation.workload};
        size_ = run.seeds * run.workloads.size() / workloads_.size() * workloads_.size();
    }
    std::uint64_t size() const { return size_; }
    std::uint64_t seed(std::uint64_t number) const { return first_ + number / workloads_.size(); }
    const std::string& workload(std::uint64_t number) const { return workloads_[number % workloads_.size()]; }

private:
    std::uint64_t first_, size_ = 0;
    std::vector<std::string> workloads_;
};

/// In a process of its own, from the run of that number on.
[[noreturn]] void hunt(const Mutation& mutation, const Runs& runs, std::uint64_t from, FILE* out) {
    internal::Mutations::active() = mutation.name;  // lives as long as the table
    const rlimit memory{kMemory, kMemory};
    setrlimit(RLIMIT_AS, &memory);
    bool caught = false;
    for (std::uint64_t number = from; number < runs.size() && !caught; ++number) {
        const bool may_stop = !mutation.expected && runs.seed(number) - runs.seed(0) >= kSeedsToReachIt;
        if (may_stop && !internal::Mutations::reached()) break;
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        const rlim_t until = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + kCpuSecondsOfASeed;
        const rlimit cpu{until, RLIM_INFINITY};
        setrlimit(RLIMIT_CPU, &cpu);
        std::fprintf(out, "running %llu\n", static_cast<unsigned long long>(number));
        std::fflush(out);
        const RunResult result = run_plan(make_plan(runs.seed(number), runs.workload(number)), false);
        caught = !result.violations.empty();
        if (caught) std::fprintf(out, "caught %s\n", result.violations.front().check.c_str());
    }
    if (!internal::Mutations::reached()) std::fprintf(out, "unreached\n");
    std::fflush(out);
    _exit(0);
}

struct HuntOutcome {
    std::string check;  // that has failed; or, if none has: crash or endless. Empty: survived
    std::uint64_t number = 0;
    bool reached = true;
    bool by_check = false;
};

HuntOutcome read_hunt(FILE* in, int status) {
    HuntOutcome outcome;
    char line[256];
    std::rewind(in);
    while (std::fgets(line, sizeof line, in) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        unsigned long long number = 0;
        if (std::sscanf(line, "running %llu", &number) == 1) outcome.number = number;
        if (std::strncmp(line, "caught ", 7) == 0) outcome.check = line + 7;
        if (std::strcmp(line, "unreached") == 0) outcome.reached = false;
    }
    std::fclose(in);
    outcome.by_check = !outcome.check.empty();
    if (WIFSIGNALED(status)) outcome.check = WTERMSIG(status) == SIGXCPU ? "endless" : "crash";
    return outcome;
}

/// A crash does not say what is wrong: the runs after it may.
constexpr int kCrashes = 10;

struct Hunt {
    const Mutation* mutation;
    Runs runs;
    FILE* file = nullptr;
    HuntOutcome first_crash{};
    int crashes = 0;
};

/// The process; -1: it cannot be started.
pid_t start(Hunt& hunting, std::uint64_t from) {
    hunting.file = std::tmpfile();
    const pid_t child = hunting.file != nullptr ? fork() : -1;
    if (child < 0) std::perror("zkrecipes_sim");
    if (child == 0) hunt(*hunting.mutation, hunting.runs, from, hunting.file);
    return child;
}

}  // namespace

int run_mutations(const MutationRun& run) {
    std::map<pid_t, Hunt> running;
    std::map<const Mutation*, HuntOutcome> outcomes;
    const auto wait_for_one = [&] {
        int status = 0;
        auto found = running.extract(wait(&status));
        if (found.empty()) return true;
        Hunt& hunting = found.mapped();
        HuntOutcome outcome = read_hunt(hunting.file, status);
        const std::uint64_t next = outcome.number + 1;
        if (!outcome.check.empty() && !outcome.by_check) {
            if (hunting.crashes++ == 0) hunting.first_crash = outcome;
            if (hunting.crashes < kCrashes && next < hunting.runs.size()) {
                found.key() = start(hunting, next);
                if (found.key() < 0) return false;
                running.insert(std::move(found));
                return true;
            }
        }
        outcomes[hunting.mutation] = outcome.by_check || hunting.crashes == 0 ? outcome : hunting.first_crash;
        return true;
    };
    std::fflush(stdout);
    const std::vector<Mutation> table = read_table();
    for (const Mutation& mutation : table) {
        if (!run.only.empty() && run.only != mutation.name) continue;
        while (static_cast<int>(running.size()) >= run.jobs) {
            if (!wait_for_one()) return 2;
        }
        Hunt hunting{&mutation, Runs(mutation, run)};
        const pid_t child = start(hunting, 0);
        if (child < 0) return 2;
        running.emplace(child, std::move(hunting));
    }
    while (!running.empty()) {
        if (!wait_for_one()) return 2;
    }
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
        const bool has_end = !outcome.check.empty();
        // A crash is a finding only if the table says that it is what goes wrong.
        const bool is_caught = has_end && (outcome.by_check || outcome.check == mutation.check);
        const Runs runs(mutation, run);
        const std::string seed = has_end ? std::to_string(runs.seed(outcome.number)) : "-";
        std::string remark;
        if (mutation.expected && !is_caught) remark = "   NOT CAUGHT, though docs/mutations.md says so";
        if (!mutation.expected && has_end) remark = "   of which docs/mutations.md knows nothing";
        if (mutation.expected && is_caught && outcome.check != mutation.check)
            remark = "   docs/mutations.md: " + mutation.check;
        const char* result = has_end ? outcome.check.c_str() : outcome.reached ? "survived" : "not reached";
        std::printf("%-38s %-14s %-10s %7s%s\n", mutation.name.c_str(), result,
                    has_end ? runs.workload(outcome.number).c_str() : "-", seed.c_str(), remark.c_str());
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
