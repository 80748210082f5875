#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "testing/ensemble.hpp"

namespace zkrecipes::sim {

/// What one semaphore's directory of leases said of their number, by ZooKeeper's own history.
class TermsHistory {
public:
    enum class Kind { no_directory, unwritten, number, nonsense };
    struct State {
        Kind kind = Kind::no_directory;
        std::int32_t number = 0;
        std::int64_t directory = 0;  // czxid
        SimTime at = 0;              // since when
    };

    /// `lag`: for so long a server may tell what was true before.
    TermsHistory(std::string directory, SimTime lag) : directory_(std::move(directory)), lag_(lag) {}

    void committed(const DataTree& tree, SimTime now);
    const std::string& directory() const noexcept { return directory_; }
    const State& now() const noexcept { return states_.back(); }

    /// Of all that servers may have told from then on until now: whether one, and whether each, is so.
    bool any_since(SimTime since, const std::function<bool(const State&)>& is) const;
    bool all_since(SimTime since, const std::function<bool(const State&)>& is) const {
        return !any_since(since, [&](const State& state) { return !is(state); });
    }

private:
    const std::string directory_;
    const SimTime lag_;
    std::vector<State> states_{{}};
};

}  // namespace zkrecipes::sim
