#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace zkrecipes::test {

/// What became of a crowd that locks sets and single paths in any order.
struct CrowdReport {
    std::size_t acquisitions = 0;
    std::size_t of_sets = 0;
    std::size_t overlaps = 0;    ///< a path was held by two that exclude each other
    std::size_t unserved = 0;    ///< calls that did not get what they asked for in time, or threw
    std::size_t left_nodes = 0;  ///< lock nodes that are there in the end
    std::chrono::milliseconds slowest{0};
    std::chrono::milliseconds took{0};
};

struct CrowdOptions {
    std::size_t clients = 16;
    std::size_t paths = 12;
    std::size_t acquisitions = 5000;
    std::uint64_t seed = 1;
    std::chrono::seconds patience{120};  ///< of one acquire: a deadlock lasts for ever
};

/// Clients with a session and a thread each: sets of two to four random paths in the order of the dice (every other
/// client names them in the opposite order), one time in three a single path by its own recipe; half of the paths are
/// mutexes, half read-write locks, held alone or shared.
CrowdReport run_crowd(const std::string& connect_string, const std::string& root, const CrowdOptions& options);

}  // namespace zkrecipes::test
