// zkrecipes_sim: runs many seeds, says what it saw in one table, and exits with 1 when anything was violated.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/mutations.hpp"
#include "sim/plan.hpp"
#include "sim/shrink.hpp"

namespace zkrecipes::sim {
namespace {

struct Options {
    std::uint64_t first = 1;
    std::uint64_t seeds = 200;
    bool one = false;
    bool mutations = false;
    std::string mutation;
    std::vector<std::string> workloads = workload_names();
    int jobs = 2;
    int most_failures = 10;
    bool trace = false;
    bool twice = false;
    bool keeper = false;

    Plan plan(std::uint64_t seed, const std::string& workload) const { return make_plan(seed, workload, keeper); }
};

struct Totals {
    std::uint64_t seeds = 0, calls = 0, grants = 0, acts = 0, losses = 0, faults = 0, events = 0, violated = 0;
    double simulated_s = 0;
};

[[noreturn]] void usage(int code) {
    std::fputs(
        "usage: zkrecipes_sim [--seeds N] [--first S] [--workload W] [--jobs J]   many seeds, one table\n"
        "                     [--profile keeper]                                  on ClickHouse Keeper\n"
        "                     [--twice]      each of them again, in another process; to the last event it must be the "
        "same\n"
        "       zkrecipes_sim --seed S [--workload W] [--trace]                   one seed, shrunk when it fails\n"
        "       zkrecipes_sim --mutations [--mutation NAME] [--seeds N]           the deliberate bugs, and what "
        "catches them\n",
        code == 0 ? stdout : stderr);
    std::exit(code);
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view arg = argv[i];
        const auto value = [&]() -> std::string {
            if (++i >= argc) {
                std::fprintf(stderr, "zkrecipes_sim: %s needs a value\n", argv[i - 1]);
                usage(2);
            }
            return argv[i];
        };
        const auto number = [&]() -> std::uint64_t {
            const std::string text = value();
            char* end = nullptr;
            const auto result = std::strtoull(text.c_str(), &end, 10);
            if (text.empty() || *end != '\0') {
                std::fprintf(stderr, "zkrecipes_sim: %s is not a number\n", text.c_str());
                usage(2);
            }
            return result;
        };
        if (arg == "--seeds") {
            options.seeds = number();
        } else if (arg == "--first") {
            options.first = number();
        } else if (arg == "--seed") {
            options.first = number();
            options.seeds = 1;
            options.one = true;
        } else if (arg == "--workload") {
            const std::string name = value();
            const auto& known = workload_names();
            if (std::find(known.begin(), known.end(), name) == known.end()) {
                std::string all;
                for (const std::string& each : known) all += " " + each;
                std::fprintf(stderr, "zkrecipes_sim: no workload %s; there are:%s\n", name.c_str(), all.c_str());
                return std::exit(2), options;
            }
            options.workloads = {name};
        } else if (arg == "--profile") {
            if (value() != "keeper") {
                std::fputs("zkrecipes_sim: the only profile is keeper; without one, ZooKeeper is simulated\n", stderr);
                return std::exit(2), options;
            }
            options.keeper = true;
        } else if (arg == "--mutations") {
            options.mutations = true;
        } else if (arg == "--mutation") {
            options.mutations = true;
            options.mutation = value();
        } else if (arg == "--jobs") {
            options.jobs = static_cast<int>(std::max<std::uint64_t>(1, number()));
        } else if (arg == "--trace") {
            options.trace = true;
        } else if (arg == "--twice") {
            options.twice = true;
        } else if (arg == "--help" || arg == "-h") {
            usage(0);
        } else {
            std::fprintf(stderr, "zkrecipes_sim: unknown option %s\n", argv[i]);
            usage(2);
        }
    }
    return options;
}

/// Runs its share of the seeds in a process of its own, so that a crash is known by its seed.
void run_share(const Options& options, const std::string& workload, int job, FILE* out) {
    for (std::uint64_t i = static_cast<std::uint64_t>(job); i < options.seeds;
         i += static_cast<std::uint64_t>(options.jobs)) {
        const std::uint64_t seed = options.first + i;
        std::fprintf(out, "begin %llu\n", static_cast<unsigned long long>(seed));
        std::fflush(out);
        const RunResult result = run_plan(options.plan(seed, workload), false);
        std::fprintf(out, "hash %llu %llx\n", static_cast<unsigned long long>(seed),
                     static_cast<unsigned long long>(result.hash));
        std::fprintf(out, "end %llu %llu %llu %llu %llu %llu %llu %lld %d\n", static_cast<unsigned long long>(seed),
                     static_cast<unsigned long long>(result.calls), static_cast<unsigned long long>(result.grants),
                     static_cast<unsigned long long>(result.acts), static_cast<unsigned long long>(result.losses),
                     static_cast<unsigned long long>(result.faults), static_cast<unsigned long long>(result.events),
                     static_cast<long long>(result.simulated / kMilli), result.violations.empty() ? 0 : 1);
        if (!result.violations.empty()) {
            std::fprintf(out, "violation %llu %s: %s\n", static_cast<unsigned long long>(seed),
                         result.violations.front().check.c_str(), result.violations.front().text.c_str());
        }
    }
    std::fflush(out);
}

struct Outcome {
    Totals totals;
    std::map<std::uint64_t, std::string> failures;
    std::map<std::uint64_t, std::uint64_t> hashes;
};

void read_share(FILE* in, Outcome& outcome) {
    char line[4096];
    std::uint64_t running = 0;
    while (std::fgets(line, sizeof line, in) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        unsigned long long seed = 0, hash = 0, calls = 0, grants = 0, acts = 0, losses = 0, faults = 0, events = 0;
        long long simulated_ms = 0;
        int violated = 0;
        if (std::sscanf(line, "begin %llu", &seed) == 1) {
            running = seed;
        } else if (std::sscanf(line, "end %llu %llu %llu %llu %llu %llu %llu %lld %d", &seed, &calls, &grants, &acts,
                               &losses, &faults, &events, &simulated_ms, &violated) == 9) {
            running = 0;
            Totals& totals = outcome.totals;
            ++totals.seeds;
            totals.calls += calls, totals.grants += grants, totals.acts += acts, totals.losses += losses;
            totals.faults += faults, totals.events += events,
                totals.simulated_s += static_cast<double>(simulated_ms) / 1e3;
            totals.violated += static_cast<std::uint64_t>(violated);
        } else if (std::sscanf(line, "hash %llu %llx", &seed, &hash) == 2) {
            outcome.hashes[seed] = hash;
        } else if (std::sscanf(line, "violation %llu", &seed) == 1) {
            outcome.failures[seed] = line + std::strlen("violation ");
        }
    }
    if (running != 0) {
        ++outcome.totals.seeds;
        ++outcome.totals.violated;
        outcome.failures[running] =
            std::to_string(running) + " crash: the process died in this seed; the seeds after it were not run";
    }
}

Outcome run_many(const Options& options, const std::string& workload) {
    Outcome outcome;
    std::vector<std::pair<pid_t, FILE*>> workers;
    for (int job = 0; job < options.jobs; ++job) {
        FILE* const file = std::tmpfile();
        if (file == nullptr) {
            std::perror("zkrecipes_sim: tmpfile");
            std::exit(2);
        }
        const pid_t child = fork();
        if (child < 0) {
            std::perror("zkrecipes_sim: fork");
            std::exit(2);
        }
        if (child == 0) {
            run_share(options, workload, job, file);
            _exit(0);  // fibers of a run that got stuck are never unwound
        }
        workers.emplace_back(child, file);
    }
    for (const auto& [child, file] : workers) {
        int status = 0;
        waitpid(child, &status, 0);
        std::rewind(file);
        read_share(file, outcome);
        std::fclose(file);
    }
    return outcome;
}

/// The same seeds once more, spread over one process more, so that each meets another heap and other addresses.
void replay(Options options, const std::string& workload, Outcome& first) {
    ++options.jobs;
    const Outcome second = run_many(options, workload);
    for (const auto& [seed, hash] : first.hashes) {
        const auto again = second.hashes.find(seed);
        if (again != second.hashes.end() && again->second == hash) continue;
        ++first.totals.violated;
        first.failures[seed] = std::to_string(seed) + " replay: the second run of this seed was another one";
    }
}

int run_one(const Options& options) {
    int violated = 0;
    for (const std::string& workload : options.workloads) {
        const Plan plan = options.plan(options.first, workload);
        std::printf("%s\n", plan.describe().c_str());
        std::fflush(stdout);
        const RunResult result = run_plan(plan, options.trace);
        for (const std::string& line : result.trace) std::printf("%s\n", line.c_str());
        std::printf("hash %016llx, %llu events, %.1f s simulated, %llu calls, %llu grants, %llu losses, %llu faults\n",
                    static_cast<unsigned long long>(result.hash), static_cast<unsigned long long>(result.events),
                    static_cast<double>(result.simulated) / 1e9, static_cast<unsigned long long>(result.calls),
                    static_cast<unsigned long long>(result.grants), static_cast<unsigned long long>(result.losses),
                    static_cast<unsigned long long>(result.faults));
        for (const Violation& each : result.violations)
            std::printf("VIOLATION %s: %s\n", each.check.c_str(), each.text.c_str());
        if (result.violations.empty()) continue;
        ++violated;
        std::fflush(stdout);
        if (!options.trace) shrink(plan, result.violations.front().check);
    }
    std::fflush(stdout);
    _exit(violated == 0 ? 0 : 1);
}

int run_all(const Options& options) {
    int violated = 0;
    std::string table;
    for (const std::string& workload : options.workloads) {
        const auto start = std::chrono::steady_clock::now();
        Outcome outcome = run_many(options, workload);
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (options.twice) replay(options, workload, outcome);
        const Totals& totals = outcome.totals;
        char line[512];
        std::snprintf(line, sizeof line, "%-10s %8llu %10.0f %10.1f %9llu %9llu %9llu %8llu %8llu %9llu\n",
                      workload.c_str(), static_cast<unsigned long long>(totals.seeds),
                      static_cast<double>(totals.seeds) / took * 60, totals.simulated_s / 3600,
                      static_cast<unsigned long long>(totals.calls), static_cast<unsigned long long>(totals.grants),
                      static_cast<unsigned long long>(totals.acts), static_cast<unsigned long long>(totals.losses),
                      static_cast<unsigned long long>(totals.faults), static_cast<unsigned long long>(totals.violated));
        table += line;
        violated += static_cast<int>(totals.violated);
        int shown = 0;
        for (const auto& [seed, text] : outcome.failures) {
            if (shown++ == options.most_failures) break;
            std::printf("VIOLATION seed %s\n  replay: scripts/sim %s--workload %s --seed %llu\n", text.c_str(),
                        options.keeper ? "--profile keeper " : "", workload.c_str(),
                        static_cast<unsigned long long>(seed));
        }
    }
    std::printf("%-10s %8s %10s %10s %9s %9s %9s %8s %8s %9s\n%s", "workload", "seeds", "seeds/min", "sim hours",
                "calls", "grants", "acts", "losses", "faults", "violated", table.c_str());
    return violated == 0 ? 0 : 1;
}

}  // namespace
}  // namespace zkrecipes::sim

int main(int argc, char** argv) {
    const auto options = zkrecipes::sim::parse(argc, argv);
    if (options.mutations) {
        return zkrecipes::sim::run_mutations(
            {options.first, options.seeds, options.workloads, options.jobs, options.mutation});
    }
    return options.one ? zkrecipes::sim::run_one(options) : zkrecipes::sim::run_all(options);
}
