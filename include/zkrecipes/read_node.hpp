#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/result.hpp>

namespace zkrecipes {

class Session;

/// A node at the time of the read.
struct NodeContent {
    std::string path;                                    ///< as the caller passed it
    std::string data;                                    ///< of the node
    std::int32_t version = 0;                            ///< of the data, for example for Transaction::set
    std::int32_t children = 0;                           ///< how many children it has
    std::int64_t created = 0;                            ///< zxid of the transaction that made it
    std::chrono::system_clock::time_point created_at{};  ///< by the servers' clock
    std::int64_t changed = 0;                            ///< zxid of the transaction that wrote the data
    std::chrono::system_clock::time_point changed_at{};  ///< by the servers' clock
    std::int64_t session_id = 0;                         ///< owner of an ephemeral node; 0: not ephemeral
};

/// How new the result of a read must be.
enum class Fresh {
    no,  ///< the state of the connected server: never older than what this session has seen, but it may lag
    yes  ///< the state of the leader at the time of the call (sync, then get): no older than what any client has seen
         ///< before, unless that leader has lost its quorum and does not know it yet
};

/// Reads a node. Returns empty if it does not exist. Blocks for one round trip. Throws Error (unreachable: the deadline
/// passed or a stop was requested first; connection_lost, no_permission, closed, bad_path).
ZKRECIPES_API std::optional<NodeContent> read_node(Session& session, const std::string& path, Fresh fresh = Fresh::no,
                                                   Deadline deadline = Deadline::never(), std::stop_token stop = {});

/// Reads a node at a point of ZooKeeper's own history at which the grant is held. So it sees everything that earlier
/// holders wrote, by whichever server and session. Sends a transaction that checks the hold, and the get directly after
/// it: one round trip, and one write that changes nothing. Throws Error as above; lock_lost if the hold is over.
ZKRECIPES_API std::optional<NodeContent> read_node(Session& session, const std::string& path, const Grant& within,
                                                   Deadline deadline = Deadline::never(), std::stop_token stop = {});

/// The same without blocking: `done` is called exactly once, on the session's notifier thread. If the call cannot be
/// started, they throw immediately: closed; bad_path; lock_lost for an empty grant; bad_option for an empty callback.
/// An exception thrown by the callback is logged.
ZKRECIPES_API void read_node_async(Session& session, const std::string& path, Fresh fresh, Deadline deadline,
                                   std::stop_token stop, std::function<void(Result<std::optional<NodeContent>>)> done);
ZKRECIPES_API void read_node_async(Session& session, const std::string& path, const Grant& within, Deadline deadline,
                                   std::stop_token stop, std::function<void(Result<std::optional<NodeContent>>)> done);

}  // namespace zkrecipes
