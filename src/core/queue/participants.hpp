#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/inspect.hpp>

#include "core/queue/lock_layout.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// The part before the sequence number in the names of lock nodes, of all recipes.
std::span<const std::string> lock_patterns();

/// The participant that one node of a lock directory, and its data, describe.
Participant participant_of(const std::string& user_directory, const std::string& name, std::string data,
                           const NodeStat& stat);

/// Reads the queue in `directory`: lists the children, then reads all their data at the same time. Nodes that vanish in
/// between are left out. `sync_first`: the server catches up with the leader before. Blocks; throws Error.
LockView read_queue(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                    const std::string& directory, Deadline deadline, bool sync_first);

/// The leases in `directory`, oldest first: each child is one.
std::vector<Participant> read_leases(const std::shared_ptr<SessionCore>& core, const char* operation,
                                     const std::string& user_path, const std::string& directory, Deadline deadline);
/// The holders, then the waiters. A waiter that has got its leases since `waiting` was read is known by its identity.
std::vector<Participant> with_waiters(std::vector<Participant> leases, std::vector<Participant> waiting);

/// Reads the lock at `directory`, of any recipe. Blocks; throws Error.
LockView read_lock(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                   const std::string& directory, Deadline deadline, bool sync_first);
/// The same if it is known to be a semaphore.
LockView read_semaphore_at(const std::shared_ptr<SessionCore>& core, const char* operation,
                           const std::string& user_path, const std::string& directory, const LockLayout& layout,
                           Deadline deadline);

}  // namespace zkrecipes::internal
