// Many waiters of one session on one path.
#include <benchmark/benchmark.h>

#include "bench/cases.hpp"
#include "bench/crowd_run.hpp"
#include "bench/processes.hpp"
#include "bench/table.hpp"

namespace zkrecipes::bench {
namespace {

constexpr std::chrono::seconds kLimit{15};  // of queueing, of draining

void crowd(benchmark::State& state, int waiters, bool with_curator) {
    Place& place = Place::one_server();
    const std::string top = "/bench/crowd_of_" + std::to_string(waiters);
    FloorCrowdFindings floor;
    CrowdFindings ours;
    CrowdFindings curator;
    for (auto _ : state) {
        const auto begin = Clock::now();
        floor = crowd_of_floor(place, top + "/f", waiters);
        ours = crowd_of_ours(place, top, waiters, kLimit);
        if (with_curator && Curator::why_not().empty()) curator = crowd_of_curator(place, top, waiters, kLimit);
        state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    const auto values = [](const std::optional<double>& value) {
        return value ? std::vector<double>{*value} : std::vector<double>{};
    };
    const auto add_row = [&](const std::string& what, const std::string& unit, std::optional<double> least,
                             std::optional<double> CrowdFindings::*member) {
        add(state, {what, unit, values(least), values(ours.*member), values(curator.*member), {}});
    };
    const auto add_time = [&](const std::string& what, std::optional<double> least, bool begun,
                              std::optional<double> CrowdFindings::*member) {
        const std::string too_long = begun && !(ours.*member) ? "> " + std::to_string(kLimit.count()) : "";
        add(state, {what, "s", values(least), values(ours.*member), values(curator.*member), too_long});
    };
    add_time("to queue", {}, true, &CrowdFindings::seconds_to_queue);
    add_time("to drain", floor.seconds_to_drain, ours.seconds_to_queue.has_value(), &CrowdFindings::seconds_to_drain);
    add_row("requests to queue and drain", "a hold", floor.requests, &CrowdFindings::requests);
    add_row("resident, once queued", "KiB a waiter", {}, &CrowdFindings::kib_now);
    add_row("resident, at most while queueing", "KiB a waiter", {}, &CrowdFindings::kib_peak);
    add_row("nodes at the server", "while queued", 2, &CrowdFindings::nodes);
    add_row("watches at the server", "while queued", {}, &CrowdFindings::watches);
    add_row("requests after a reconnect", "in all", {}, &CrowdFindings::reconnect_requests);
    add_row("least lease of another lock, queueing", "timeouts", {}, &CrowdFindings::lease_coming);
    add_row("least lease of another lock, reconnecting", "timeouts", {}, &CrowdFindings::lease_reconnecting);
    add_row("least lease of another lock, draining", "timeouts", {}, &CrowdFindings::lease_draining);
    add_row("the other lock is still held", "1: yes", {}, &CrowdFindings::other_held);
}

}  // namespace

void register_crowds() {
    for (const int waiters : {500, 5'000, 10'000}) {
        benchmark::RegisterBenchmark(("crowd/" + std::to_string(waiters) + "_waiters").c_str(),
                                     [waiters](benchmark::State& state) { crowd(state, waiters, waiters <= 500); })
            ->UseManualTime()
            ->Iterations(1);
    }
}

}  // namespace zkrecipes::bench
