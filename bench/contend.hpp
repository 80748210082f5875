#pragma once

#include <functional>
#include <vector>

#include "bench/hand_over_meter.hpp"

namespace zkrecipes::bench {

/// One session that wants a lock again and again.
struct Contender {
    std::function<void()> acquire;  ///< blocks until it is held
    std::function<void()> release;  ///< does not wait for the answer
};

/// All contenders acquire and release, each on a thread of its own, without a pause. Measures `count` hand-overs, after
/// `warm` others. Ends the program if two hold the lock at the same time.
HandOvers contend(const std::vector<Contender>& contenders, int warm, int count);

}  // namespace zkrecipes::bench
