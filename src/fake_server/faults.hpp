#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <zkrecipes/testing.hpp>

#include "fake_server/engine.hpp"

namespace zkrecipes::testkit::internal {

/// One fault that is set up. Any thread.
struct FaultState {
    FaultState(Match which, sim::Verdict what) : match(std::move(which)), verdict(what) {}
    /// Whether this is the request for it. `session`: its id.
    bool takes(const void* session, const sim::Request& request);

    const Match match;
    const sim::Verdict verdict;
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    int seen = 0;
    bool reached = false;
    bool cancelled = false;
};

}  // namespace zkrecipes::testkit::internal
