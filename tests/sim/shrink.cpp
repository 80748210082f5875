#include "sim/shrink.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace zkrecipes::sim {

namespace {

bool still_fails(const Plan& plan, const std::string& check) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const RunResult result = run_plan(plan, false);
        const bool fails = std::any_of(result.violations.begin(), result.violations.end(),
                                       [&](const Violation& each) { return each.check == check; });
        _exit(fails ? 1 : 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

std::vector<Plan> smaller(const Plan& plan) {
    std::vector<Plan> plans;
    const auto propose = [&](auto change) {
        Plan next = plan;
        change(next);
        plans.push_back(next);
    };
    for (unsigned i = 0; i < kFaults; ++i) {
        if (plan.has(static_cast<Fault>(i))) propose([&](Plan& p) { p.faults &= ~(1U << i); });
    }
    if (plan.processes > 1) propose([](Plan& p) { --p.processes; });
    if (plan.fibers > 1) propose([](Plan& p) { --p.fibers; });
    if (plan.paths > 1) propose([](Plan& p) { --p.paths; });
    if (plan.servers > 1) propose([](Plan& p) { p.servers = p.servers > 3 ? 3 : 1; });
    if (plan.locks.local_handovers != 0) propose([](Plan& p) { p.locks.local_handovers = 0; });
    if (plan.locks.keep_for.count() != 0) propose([](Plan& p) { p.locks.keep_for = {}; });
    if (plan.locks.max_hold.count() != 0) propose([](Plan& p) { p.locks.max_hold = {}; });
    if (plan.trouble > 4 * kSecond) propose([](Plan& p) { p.trouble /= 2; });
    if (plan.trouble > 4 * kSecond) propose([](Plan& p) { p.trouble = p.trouble * 3 / 4; });
    return plans;
}

}  // namespace

void shrink(const Plan& failing, const std::string& check) {
    Plan best = failing;
    for (bool found = true; found;) {
        found = false;
        for (const Plan& next : smaller(best)) {
            if (!still_fails(next, check)) continue;
            best = next;
            found = true;
            break;
        }
    }
    std::printf("smallest run that fails %s:\n%s\n", check.c_str(), best.describe().c_str());
    const RunResult result = run_plan(best, true);
    // What led to it is at the end.
    constexpr std::size_t kLines = 400;
    const std::size_t first = result.trace.size() > kLines ? result.trace.size() - kLines : 0;
    for (std::size_t i = first; i < result.trace.size(); ++i) std::printf("%s\n", result.trace[i].c_str());
    for (const Violation& each : result.violations)
        std::printf("VIOLATION %s: %s\n", each.check.c_str(), each.text.c_str());
}

}  // namespace zkrecipes::sim
