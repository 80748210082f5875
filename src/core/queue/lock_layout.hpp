#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "client/client.hpp"
#include "core/operation/steps.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// The directories of a semaphore: waiters queue in the first, holders have their nodes in the second.
inline constexpr const char* kSemaphoreQueue = "locks";
inline constexpr const char* kSemaphoreLeases = "leases";

/// Znode layout of a lock, inferred from its children.
struct LockLayout {
    enum class Kind {
        queue,            ///< one queue of lock nodes in the path itself; also if there is nothing
        semaphore,        ///< Curator's and ours: <path>/locks and <path>/leases
        kazoo_semaphore,  ///< kazoo's: the queue in <path>-__lock__, the leases in the path itself
    };
    Kind kind = Kind::queue;
    std::int32_t limit = 0;  ///< the number of leases; 0: no client has written it
    /// A lease, or the number of leases, proves it, not only the names of two directories.
    bool evident = false;
};

/// Whether a node of this name is a lease, Curator's or ours.
bool is_lease_name(std::string_view name);

/// Whether a listed directory may belong to a semaphore, so that it is worth reading its layout. A directory with lock
/// nodes of its own does not: it is a mutex or a read-write lock.
bool may_be_semaphore(std::span<const std::string> children, const NodeStat& stat);

/// The directories, from the path of the lock. For a queue: the path itself.
std::string queue_directory(const LockLayout& layout, const std::string& path);
std::string lease_directory(const LockLayout& layout, const std::string& path);

Steps<LockLayout> read_layout(const std::shared_ptr<SessionCore>& core, const char* operation,
                              const std::string& user_path, const std::string& directory);

}  // namespace zkrecipes::internal
