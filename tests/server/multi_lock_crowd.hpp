#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <zkrecipes/multi_lock.hpp>

namespace zkrecipes::test {

/// One of a crowd: a session of its own, used by one thread.
class CrowdClient {
public:
    virtual ~CrowdClient() = default;
    /// Blocks until all are held. False: not in time.
    virtual bool acquire(const std::vector<MultiLock::Member>& members, std::chrono::milliseconds patience) = 0;
    /// What acquire() got. The others must not be able to hold it before this is called.
    virtual void release() = 0;
};

/// What became of a crowd that locks sets and single paths in any order.
struct CrowdReport {
    std::size_t acquisitions = 0;
    std::size_t of_sets = 0;
    std::size_t of_guests = 0;
    std::size_t overlaps = 0;    ///< a path was held by two that exclude each other
    std::size_t gave_way = 0;    ///< how often our sets did
    std::size_t unserved = 0;    ///< calls that did not get what they asked for in time, or threw
    std::size_t left_nodes = 0;  ///< lock nodes that are there in the end
    std::chrono::milliseconds slowest{0};
    std::chrono::milliseconds slowest_of_guests{0};
    std::chrono::milliseconds took{0};

    bool went_well(std::size_t wanted) const {
        return acquisitions == wanted && overlaps == 0 && unserved == 0 && left_nodes == 0;
    }
    /// One line, for people.
    std::string text() const;
};

struct CrowdOptions {
    std::size_t clients = 16;                          ///< with the guests
    std::vector<std::unique_ptr<CrowdClient>> guests;  ///< who come from elsewhere
    std::size_t paths = 12;
    std::size_t acquisitions = 5000;
    std::uint64_t seed = 1;
    std::chrono::seconds patience{120};  ///< of one acquire: a deadlock lasts for ever
    /// Sets of ours that wait for longer give up their places and stand in the queues anew. Zero: they do not.
    std::chrono::milliseconds give_way_after{0};
};

/// Clients with a session and a thread each: sets of two to four random paths in the order of the dice (every other
/// client names them in the opposite order), one time in three a single path by its own recipe; half of the paths are
/// mutexes, half read-write locks, held alone or shared.
CrowdReport run_crowd(const std::string& connect_string, const std::string& root, CrowdOptions options);

}  // namespace zkrecipes::test
