#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <zkrecipes/inspect.hpp>

#include "core/operation/steps.hpp"
#include "core/queue/lock_layout.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// The part before the sequence number in the names of lock nodes, of all recipes.
std::span<const std::string> lock_patterns();

/// The participant that one node of a lock directory, and its data, describe.
Participant participant_of(const std::string& user_directory, const std::string& name, std::string data,
                           const NodeStat& stat);

/// The participant as far as its name describes it: an access list forbids to read the node.
Participant unreadable_participant(const std::string& user_directory, const std::string& name);

/// The contenders among the children of a directory, as far as their names describe them, and the other children.
LockNames names_in(const std::string& user_directory, const std::vector<std::string>& children);
/// Lists one directory.
Steps<LockNames> read_names(const std::shared_ptr<SessionCore>& core, const char* operation,
                            const std::string& user_path);

/// Reads the queue in `directory`: lists the children, then reads all their data at the same time. Nodes that vanish in
/// between are left out. `sync_first`: the server catches up with the leader before.
Steps<LockView> read_queue(const std::shared_ptr<SessionCore>& core, const char* operation,
                           const std::string& user_path, const std::string& directory, bool sync_first);
/// Only its participants.
Steps<std::vector<Participant>> read_participants(std::shared_ptr<SessionCore> core, const char* operation,
                                                  std::string user_path, std::string directory);

/// The leases in `directory`, oldest first: each child is one.
Steps<LockView> read_leases(const std::shared_ptr<SessionCore>& core, const char* operation,
                            const std::string& user_path, const std::string& directory);
/// The holders, then the waiters. A waiter that has got its leases since `waiting` was read is known by its identity.
std::vector<Participant> with_waiters(std::vector<Participant> leases, std::vector<Participant> waiting);

/// Reads the lock at `directory`, of any recipe.
Steps<LockView> read_lock(const std::shared_ptr<SessionCore>& core, const char* operation, const std::string& user_path,
                          const std::string& directory, bool sync_first);
/// The same if it is known to be a semaphore.
Steps<LockView> read_semaphore_at(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path,
                                  std::string directory, LockLayout layout);

}  // namespace zkrecipes::internal
