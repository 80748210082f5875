#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/grant.hpp>
#include <zkrecipes/session_options.hpp>

namespace zkrecipes {

/// Whose node names a lock uses. All who share a lock must use the same: under other names they neither see nor stop
/// each other. See docs/interop.md.
enum class Dialect {
    curator,  ///< Curator's: shared with JVM services, and with kazoo by the classes in examples/kazoo
    kazoo     ///< those of kazoo's own Lock, ReadLock and WriteLock; parents are made persistent, as kazoo expects
};

/// What a lock writes for people, and how it makes its nodes.
struct LockOptions {
    std::string id;                             ///< who we are; empty: host:pid
    std::string name;                           ///< what we do under the lock, for people; may be empty
    std::map<std::string, std::string> labels;  ///< shown by participants() and zklock status
    std::optional<std::vector<Acl>> acl;        ///< empty: the session's
    bool create_parents = true;                 ///< false: a missing lock directory is Errc::no_parent
    /// After a holder vanished (its session ended, or its node was deleted by somebody else; not: it gave back),
    /// whoever comes next waits so long before it is granted the lock. For resources that cannot compare fencing
    /// tokens. All who share the lock must say so. ExclusiveMutex only; see docs/recipes/lock_delay.md. Zero: no delay.
    /// At most 366 days.
    std::chrono::milliseconds delay_after_loss{0};
    Dialect dialect = Dialect::curator;  ///< recipes that the dialect does not have: Errc::unsupported
};

/// One contender for a lock, as seen in ZooKeeper.
struct Participant {
    std::string path;                               ///< absolute, as the caller names paths (without the namespace)
    std::string node;                               ///< last component
    bool holder = false;                            ///< holds the lock now, by the order of the nodes
    std::string mode;                               ///< "exclusive", "shared" or "semaphore"
    FencingToken token = 0;                         ///< the node's czxid
    std::int64_t session_id = 0;                    ///< owner of the ephemeral node; 0: not ephemeral
    std::chrono::system_clock::time_point since{};  ///< when the node was created, by the server's clock
    std::string id;                                 ///< owner id; empty for foreign data
    std::string host;
    std::int64_t pid = 0;
    std::string user;
    std::string name;
    std::map<std::string, std::string> labels;
    bool revocation_requested = false;  ///< its data is Curator's request to give way, and says nothing else any more
    std::string raw;                    ///< the node's data as it is
    std::int32_t version = 0;           ///< of the node's data
    bool by_zkrecipes = false;          ///< this library made the node, and so its owner notices when it is deleted
};

}  // namespace zkrecipes
