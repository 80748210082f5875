#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/session.hpp>

namespace zkrecipes {

/// The state of a lock, as any client with read permission can see it.
struct LockView {
    std::string path;                       ///< of the lock
    std::vector<Participant> participants;  ///< in the order of the queue, holders first
    bool exists = false;                    ///< the lock directory is there
    bool semaphore = false;   ///< a Semaphore, a SemaphoreMutex, or one of Curator's: each holder is a lease
    std::int32_t leases = 0;  ///< of a semaphore: its limit; 0: unknown (Curator does not store it)
};

/// Reads one lock of any kind: mutex, read-write lock or semaphore, also those of Curator and kazoo. With `up_to_date`,
/// the connected server first catches up with the leader. Blocks. Throws Error (unreachable: the deadline passed first;
/// no_permission, closed; bad_path, also for a path of an ephemeral node, as each contender has one).
ZKRECIPES_API LockView inspect_lock(Session& session, const std::string& path, Deadline deadline,
                                    bool up_to_date = true);

/// Reads every lock at or below `prefix` that has a holder or a waiter. A semaphore is one lock; its two directories
/// are not listed as further locks. Directories that an access list forbids to read are left out and appended to
/// `unreadable`. Blocks. Throws as inspect_lock.
ZKRECIPES_API std::vector<LockView> find_locks(Session& session, const std::string& prefix, Deadline deadline,
                                               std::vector<std::string>* unreadable = nullptr);

/// What the names of the nodes in one directory tell about a lock.
struct LockNames {
    std::string path;     ///< the directory
    bool exists = false;  ///< whether the directory exists
    /// In the order of the queue. Only path, node, holder, mode and by_zkrecipes are set. A lease of a semaphore is a
    /// holder with the mode "semaphore".
    std::vector<Participant> participants;
    std::vector<std::string> others;  ///< paths of the other children, which may be locks themselves
    bool maybe_semaphore = false;     ///< the directory may be that of a semaphore; inspect_lock tells whether it is
};

/// Lists one directory without reading the data of its nodes: one request, however long the queue is. For a program
/// that watches many locks. A semaphore has two directories: its waiters are in PATH/locks, its leases in PATH/leases.
/// Blocks. Throws as inspect_lock.
ZKRECIPES_API LockNames list_lock(Session& session, const std::string& path, Deadline deadline);

/// Selects contenders. All fields that are set must match; unset fields match anything.
struct ParticipantFilter {
    /// Whether a contender holds the lock or waits for it.
    enum class Standing { any, holding, waiting };
    Standing standing = Standing::any;          ///< what it must be
    std::optional<std::string> id;              ///< Participant::id
    std::optional<std::string> host;            ///< Participant::host
    std::map<std::string, std::string> labels;  ///< the contender must have each of these, with this value
    /// Age of the node, by this machine's clock and the server's.
    std::optional<std::chrono::milliseconds> at_least_for;

    /// `now`: for at_least_for.
    ZKRECIPES_API bool matches(const Participant& participant, std::chrono::system_clock::time_point now) const;
};

/// As above, but returns only contenders that match the filter, and only locks that have one. Nodes of Curator and
/// kazoo do not describe their owner, so they match only by standing and age. Nodes that an access list forbids to read
/// match only by standing.
ZKRECIPES_API std::vector<LockView> find_locks(Session& session, const std::string& prefix,
                                               const ParticipantFilter& filter, Deadline deadline);

/// Blocks until the lock has no holder, without joining the queue. Returns false if the deadline passes or a stop is
/// requested before. Throws Error as inspect_lock, but not unreachable.
ZKRECIPES_API bool wait_until_free(Session& session, const std::string& path, Deadline deadline,
                                   std::stop_token stop = {});

/// Asks exactly this contender (same czxid) to release the lock, as Curator's Revoker does. The data of its node are
/// replaced by "__REVOKE__", so they no longer describe the owner. The owner decides what to do: see
/// Grant::revocation(). If the token is 0 (list_lock, or an access list forbids to read the node), the name identifies
/// the node; no_permission is thrown if it cannot, because the name has no random part, or kazoo made it, which uses
/// the same name again. Returns false if the node did not exist any more. Blocks for two round trips. Throws Error as
/// inspect_lock.
ZKRECIPES_API bool request_revocation(Session& session, const Participant& participant, Deadline deadline);

/// Deletes exactly this contender's node (same czxid; by its name if the token is 0), as an operator does to break a
/// lock. Needs the right DELETE on the directory, and none on the node. Returns false if the node did not exist any
/// more. If the owner uses this library, its hold is lost, and it is informed. Owners that use Curator or kazoo do not
/// notice, because they do not watch their own nodes. Blocks. Throws Error as inspect_lock; no_permission as
/// request_revocation; bad_data if the node's data has changed since it was read (a request to release the lock is not
/// such a change); not_empty if the node has children, so that no client of a lock has made it.
ZKRECIPES_API bool remove_participant(Session& session, const Participant& participant, Deadline deadline);

/// What find_locks_async() finds.
struct FoundLocks {
    std::vector<LockView> locks;  ///< what was found
    /// Paths that an access list forbids to read: directories, and contenders of which it is not known whether they
    /// match the filter.
    std::vector<std::string> unreadable;
};

/// The same without blocking: `done` is called exactly once, on the session's notifier thread, with what the blocking
/// form returns or throws. If a stop is requested before the answer, the error is unreachable, except for
/// wait_until_free_async. A filter without fields matches every contender. If a call cannot be started, it throws
/// immediately: closed; bad_path; bad_option for an empty callback. An exception thrown by the callback is logged.
ZKRECIPES_API void inspect_lock_async(Session& session, const std::string& path, bool up_to_date, Deadline deadline,
                                      std::stop_token stop, std::function<void(Result<LockView>)> done);
ZKRECIPES_API void list_lock_async(Session& session, const std::string& path, Deadline deadline, std::stop_token stop,
                                   std::function<void(Result<LockNames>)> done);
ZKRECIPES_API void find_locks_async(Session& session, const std::string& prefix, ParticipantFilter filter,
                                    Deadline deadline, std::stop_token stop,
                                    std::function<void(Result<FoundLocks>)> done);
ZKRECIPES_API void wait_until_free_async(Session& session, const std::string& path, Deadline deadline,
                                         std::stop_token stop, std::function<void(Result<bool>)> done);
ZKRECIPES_API void request_revocation_async(Session& session, const Participant& participant, Deadline deadline,
                                            std::stop_token stop, std::function<void(Result<bool>)> done);
ZKRECIPES_API void remove_participant_async(Session& session, const Participant& participant, Deadline deadline,
                                            std::stop_token stop, std::function<void(Result<bool>)> done);

}  // namespace zkrecipes
