#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>
#include <zkrecipes/testenv/trace.hpp>

namespace zkrecipes::bench {

/// What a request of a lock is for.
enum class Purpose {
    enter,      ///< a create
    look,       ///< reads of the queue: list, exists
    watch,      ///< a read of somebody else's node
    watch_own,  ///< a read of the own node
    check,      ///< the first committed check after the predecessor was gone
    leave,      ///< a delete
    other,      ///< anything else that is not a heartbeat
    heartbeat,  ///< other committed checks
    count
};
std::string_view to_string(Purpose purpose);

/// Requests of one hold that was handed over, as averages.
struct HandOverRequests {
    std::array<double, static_cast<std::size_t>(Purpose::count)> by_purpose{};
    int holds = 0;
    double usual = 0;  // the median of all but heartbeats

    double operator[](Purpose purpose) const { return by_purpose[static_cast<std::size_t>(purpose)]; }
    /// All but heartbeats.
    double total() const;
};

/// Counts the requests of the holds in a trace that waited for a predecessor. Each session of the trace has one
/// contender in `directory`, so a hold is what a session sends from one create to the next. Holds that found nobody in
/// front of them are left out, and those that did not end.
HandOverRequests requests_of_hand_overs(const std::vector<testenv::Record>& trace, const std::string& directory);

/// Requests below `directory`, and their bytes at the server without the data of nodes, for one of so many cycles.
struct CycleRequests {
    double requests = 0;
    double bytes = 0;
};
CycleRequests requests_of_cycles(const std::vector<testenv::Record>& trace, const std::string& directory, int cycles);

}  // namespace zkrecipes::bench
