// Many waiters of one session on one path.
#include "bench/capacity/capacity.hpp"
#include "bench/crowd_run.hpp"

namespace zkrecipes::bench {

void measure_waiters(bool brief) {
    Csv table(brief,
              {"waiters", "time to queue [s]", "time until all had the lock [s]", "holds a second", "requests a hold",
               "memory for a waiter [KiB]", "at most while queueing [KiB]", "nodes of the session at the server",
               "watches of the session at the server", "least lease of another lock meanwhile [% of the timeout]"});
    Place place(1, large_server("1g"));
    for (int waiters = 10; waiters <= (brief ? 1000 : 100'000); waiters *= 10) {
        const auto found = crowd_of_ours(place, "/capacity/waiters_" + std::to_string(waiters), waiters,
                                         std::chrono::seconds(brief ? 15 : 120), waiters <= 10'000);
        const auto rate = found.seconds_to_drain ? std::optional(waiters / *found.seconds_to_drain) : std::nullopt;
        std::optional<double> lease;
        for (const auto& one : {found.lease_coming, found.lease_draining}) {
            if (one) lease = std::min(lease.value_or(100), 100 * *one);
        }
        table.row({waiters, found.seconds_to_queue, found.seconds_to_drain, rate, found.requests, found.kib_now,
                   found.kib_peak, found.nodes, found.watches, lease});
    }
}

}  // namespace zkrecipes::bench
