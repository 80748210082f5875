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
#include <filesystem>
#include <map>
#include <vector>

#include "base/mutation.hpp"
#include "sim/plan.hpp"

namespace zkrecipes::sim {
namespace {

struct Mutation {
    const char* name;
    bool by_simulation;     // expected of the simulation
    const char* unit_test;  // that fails with it, too; empty: none is named
};

// What each does is one line at its switch.
constexpr Mutation kMutations[] = {
    // the own node and what became of it
    {"no-owner-check-after-create", true, ""},
    {"no-owner-check-in-recovery", true, ""},
    {"former-session-node-kept", true, ""},
    {"recovery-without-sync", true, ""},
    {"retry-creates-blindly", true, ""},
    {"second-node-not-swept", true, ""},
    {"missing-own-node-holds", true, ""},
    {"parents-made-once", true, ""},
    // the queue
    {"order-by-name", true, ""},
    {"watch-the-first", true, ""},
    {"no-list-after-the-wait", true, ""},
    {"no-check-after-the-wait", true, ""},
    {"list-alone-grants", true, ""},
    {"fast-grant-by-count-alone", true, ""},
    {"reconnect-without-list", true, ""},
    {"vanished-blocker-awaited", true, ""},
    {"any-event-is-a-deletion", true, ""},
    {"deadline-ignored-in-outage", true, ""},
    // nothing is left behind
    {"given-up-node-left", true, ""},
    {"ghost-left-after-giving-up", true, ""},
    {"abandoned-create-left", true, ""},
    {"abandoned-ghost-left", true, ""},
    {"lost-hold-not-deleted", true, ""},
    {"delete-dropped-when-disconnected", true, ""},
    {"delete-not-repeated", true, ""},
    {"reap-without-sync", true, ""},
    {"reap-without-owner", true, ""},
    {"watch-left-on-server", true, ""},
    // the lease
    {"lease-from-the-answer", true, ""},
    {"lease-full-timeout", true, ""},
    {"touch-ignored", true, ""},
    {"touches-outlive-connection", true, ""},
    {"connect-counts-from-answer", true, ""},
    {"clock-margin-left-out", true, ""},
    {"lapsed-lease-revived", true, ""},
    {"hold-on-an-old-lease", true, ""},
    {"no-heartbeat", true, ""},
    {"refused-check-renews", true, ""},
    {"idle-touch-off", true, ""},
    // the hold and what its owner is told
    {"end-not-sticky", true, ""},
    {"holds-outlive-session", true, ""},
    {"lost-not-told", true, ""},
    {"own-node-not-watched", true, ""},
    {"inner-release-ends-the-hold", true, ""},
    {"re-entry-into-a-lost-hold", true, ""},
    {"token-is-the-sequence", true, ""},
    // the session
    {"stale-answers-accepted", true, ""},
    {"nudge-off", true, ""},
};

constexpr std::uint64_t kCpuSecondsOfASeed = 30;  // a seed takes a tenth of a second; beyond this it has no end
constexpr rlim_t kMemory = rlim_t{3} << 30;

/// In a process of its own.
[[noreturn]] void hunt(const Mutation& mutation, const MutationRun& run, FILE* out) {
    internal::Mutations::active() = mutation.name;
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

/// Whether a unit test fails with it. The test programs of the same build tree lie beside this program.
bool unit_test_fails(const Mutation& mutation) {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "unit";
    for (const char* binary : {"core_unit_test", "session_unit_test"}) {
        const std::string path = (folder / binary).string();
        const std::string filter = std::string("--gtest_filter=") + mutation.unit_test;
        const pid_t child = fork();
        if (child == 0) {
            setenv("ZKRECIPES_MUTATION", mutation.name, 1);
            if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr)
                _exit(0);
            execl(path.c_str(), binary, filter.c_str(), static_cast<char*>(nullptr));
            _exit(0);  // not built: nothing was caught
        }
        int status = 0;
        if (child > 0 && waitpid(child, &status, 0) == child && status != 0) return true;
    }
    return false;
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
    for (const Mutation& mutation : kMutations) {
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

    int survived = 0, by_simulation = 0, by_unit_test = 0;
    std::printf("%-34s %-14s %7s  %s\n", "mutation", "caught by", "seed", "unit test that fails");
    for (const Mutation& mutation : kMutations) {
        const auto found = outcomes.find(&mutation);
        if (found == outcomes.end()) continue;
        const Outcome& outcome = found->second;
        const bool caught = !outcome.check.empty();
        const bool named = mutation.unit_test[0] != '\0';
        const bool unit = named && unit_test_fails(mutation);
        const char* remark = unit ? mutation.unit_test : named ? "NOT CAUGHT by the test named for it" : "";
        const std::string seed = caught ? std::to_string(outcome.seed) : "-";
        std::printf("%-34s %-14s %7s  %s%s\n", mutation.name, caught ? outcome.check.c_str() : "survived", seed.c_str(),
                    remark, outcome.reached ? "" : " (no run came by it)");
        if (mutation.by_simulation ? !caught || !outcome.reached : !unit) ++survived;
        if (named && !unit) ++survived;
        by_simulation += caught;
        by_unit_test += !caught && unit;
    }
    std::printf("%zu mutations: %d caught by simulation (at most %llu seeds each), %d by unit tests alone; %d broken\n",
                outcomes.size(), by_simulation, static_cast<unsigned long long>(run.seeds), by_unit_test, survived);
    return survived == 0 ? 0 : 1;
}

}  // namespace zkrecipes::sim

#endif
