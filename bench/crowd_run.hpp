#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "bench/places.hpp"

namespace zkrecipes::bench {

/// What a crowd showed. What it did not get to is missing.
struct CrowdFindings {
    // Directly at the server.
    std::optional<double> seconds_to_queue;
    std::optional<double> kib_now;
    std::optional<double> kib_peak;
    std::optional<double> lease_coming;
    std::optional<double> seconds_to_drain;
    std::optional<double> lease_draining;
    // Through a gate.
    std::optional<double> requests;
    std::optional<double> nodes;
    std::optional<double> watches;
    std::optional<double> reconnect_requests;
    std::optional<double> lease_reconnecting;
    // Both.
    std::optional<double> other_held;
};

struct FloorCrowdFindings {
    double seconds_to_drain = 0;
    double requests = 0;
};

// Many waiters of one session on one path, below `top` or in `directory`. Queueing, and draining, may take as long as
// the limit. `counted`: with a second run, behind a gate.
CrowdFindings crowd_of_ours(Place& place, const std::string& top, int waiters, std::chrono::seconds limit,
                            bool counted = true);
CrowdFindings crowd_of_curator(Place& place, const std::string& top, int waiters, std::chrono::seconds limit);
FloorCrowdFindings crowd_of_floor(Place& place, const std::string& directory, int waiters);

}  // namespace zkrecipes::bench
