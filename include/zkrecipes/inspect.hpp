#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/session.hpp>

namespace zkrecipes {

/// A lock as seen from outside, by whoever may read its path.
struct LockView {
    std::string path;
    std::vector<Participant> participants;  ///< in the order of the queue, holders first
    bool exists = false;                    ///< the lock directory is there
    bool semaphore = false;                 ///< the holders are leases, of Semaphore, SemaphoreMutex or a peer's
    std::int32_t leases = 0;                ///< of a semaphore: how many there are; 0: not known (Curator's)
};

/// Reads one lock, of whichever recipe: mutex, read-write lock, semaphore, Curator's and kazoo's included.
/// `up_to_date`: asks the server to catch up with the leader first. Blocks; throws Error (unreachable when the deadline
/// passes without an answer, no_permission, closed, bad_path).
ZKRECIPES_API LockView inspect_lock(Session& session, const std::string& path, Deadline deadline,
                                    bool up_to_date = true);

/// Reads every lock at or below `prefix` that somebody holds or waits for. A semaphore is one lock, whose directories
/// are not listed besides. What an access list hides below `prefix` is left out; its paths are put into `unreadable`.
/// Blocks; throws as inspect_lock.
ZKRECIPES_API std::vector<LockView> find_locks(Session& session, const std::string& prefix, Deadline deadline,
                                               std::vector<std::string>* unreadable = nullptr);

/// What is known of a contender. Everything that is set must be so; what is not set matters not.
struct ParticipantFilter {
    enum class Standing { any, holding, waiting };
    Standing standing = Standing::any;
    std::optional<std::string> id;
    std::optional<std::string> host;
    std::map<std::string, std::string> labels;  ///< each of these, with this value
    std::optional<std::chrono::milliseconds>
        at_least_for;  ///< age of the node, by this machine's clock and the server's

    /// `now`: for at_least_for.
    ZKRECIPES_API bool matches(const Participant& participant, std::chrono::system_clock::time_point now) const;
};

/// As above, but only the locks with a contender that matches, and of these only the contenders that do. Foreign nodes
/// (Curator's, kazoo's) say nothing of themselves, and match a filter only by standing and age.
ZKRECIPES_API std::vector<LockView> find_locks(Session& session, const std::string& prefix,
                                               const ParticipantFilter& filter, Deadline deadline);

/// Blocks until nobody holds the lock, or any lease, without standing in the queue. False: the deadline passed or a
/// stop was requested.
ZKRECIPES_API bool wait_until_free(Session& session, const std::string& path, Deadline deadline,
                                   std::stop_token stop = {});

/// Asks exactly this contender (same czxid) to give way, as Curator's Revoker does: its node's data becomes
/// "__REVOKE__", in place of what it said of its owner. What follows is the owner's affair: see Grant::revocation().
/// False: the node was gone already. Blocks for two round trips; throws Error as inspect_lock.
ZKRECIPES_API bool request_revocation(Session& session, const Participant& participant, Deadline deadline);

/// Deletes exactly this contender's node (same czxid), as an operator does to break a lock. False: it was gone
/// already. The owner is told if it is one of ours; Curator's and kazoo's do not watch their own nodes. Throws Error as
/// inspect_lock, and bad_data when the node's data have changed since it was read, but for a request to give way, which
/// forbids nothing.
ZKRECIPES_API bool remove_participant(Session& session, const Participant& participant, Deadline deadline);

}  // namespace zkrecipes
