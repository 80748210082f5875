#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include <zkrecipes/deadline.hpp>

#include "client/client.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// The directories of a semaphore: waiters queue in the first, holders have their nodes in the second.
inline constexpr const char* kSemaphoreQueue = "locks";
inline constexpr const char* kSemaphoreLeases = "leases";

/// How those who want the lock at a path are laid out in ZooKeeper, seen from outside, by nothing but its nodes.
struct LockLayout {
    enum class Kind {
        queue,            ///< one queue of lock nodes in the path itself; also where there is nothing
        semaphore,        ///< Curator's and ours: <path>/locks and <path>/leases
        kazoo_semaphore,  ///< kazoo's: the queue in <path>-__lock__, the leases in the path itself
    };
    Kind kind = Kind::queue;
    std::int32_t limit = 0;  ///< how many leases there are; 0: nobody has written it
    /// A lease, or their number, says so, not only the names of two directories.
    bool evident = false;
};

/// A lease of Curator's or ours, by its name.
bool is_lease_name(std::string_view name);

/// Whether a directory that was listed can be a semaphore's, so that it is worth reading its layout. One that has lock
/// nodes of its own is not: it is a mutex, or a read-write lock.
bool may_be_semaphore(std::span<const std::string> children, const NodeStat& stat);

/// The directories, from the path of the lock. A queue: the path itself.
std::string queue_directory(const LockLayout& layout, const std::string& path);
std::string lease_directory(const LockLayout& layout, const std::string& path);

/// Blocks; throws Error.
LockLayout read_layout(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                       const std::string& directory, Deadline deadline);
/// Empty: the deadline passed, or a stop was requested.
std::optional<LockLayout> read_layout(const std::shared_ptr<SessionCore>& core, const char* operation,
                                      const std::string& user_path, const std::string& directory, Deadline deadline,
                                      std::stop_token stop);

}  // namespace zkrecipes::internal
