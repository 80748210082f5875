#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>

namespace zkrecipes {

class Session;

/// A node as it was when it was read.
struct NodeContent {
    std::string path;  ///< as the caller names it
    std::string data;
    std::int32_t version = 0;                            ///< of the data: for Transaction::set and the like
    std::int32_t children = 0;                           ///< how many it has
    std::int64_t created = 0;                            ///< number of the transaction (zxid) that made it
    std::int64_t changed = 0;                            ///< and of the one that wrote the data
    std::chrono::system_clock::time_point changed_at{};  ///< by the servers' clock
    std::int64_t session_id = 0;                         ///< owner of an ephemeral node; 0: not ephemeral
};

/// How new what is read must be.
enum class Fresh {
    no,  ///< what the server in use knows: never older than what this session has seen before, otherwise it may lag
    yes  ///< what the leader had when it was asked (sync, and get right behind it): no older than what anybody was told
         ///< before, unless that leader has lost the others and does not know it yet
};

/// Reads a node; one round trip. Empty: there is none. Blocks; throws Error (unreachable when the deadline passes or a
/// stop is requested without an answer, connection_lost, no_permission, closed, bad_path).
ZKRECIPES_API std::optional<NodeContent> read_node(Session& session, const std::string& path, Fresh fresh,
                                                   Deadline deadline, std::stop_token stop = {});

/// Reads a node at a point of ZooKeeper's own history at which the grant is held: all that earlier holders wrote is
/// there, whatever server is asked and by whichever session. A transaction that checks the hold, and get right behind
/// it: one round trip, one write that changes nothing. Throws Error as above; lock_lost when the hold is over.
ZKRECIPES_API std::optional<NodeContent> read_node(Session& session, const std::string& path, const Grant& within,
                                                   Deadline deadline, std::stop_token stop = {});

}  // namespace zkrecipes
