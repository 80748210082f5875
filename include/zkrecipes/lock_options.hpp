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

/// The node names of a lock. All clients of a lock must use the same dialect: clients with different names neither see
/// nor exclude each other. See docs/interop.md.
enum class Dialect {
    curator,  ///< Curator's names: for locks shared with JVM services, and with kazoo by the classes in examples/kazoo
    kazoo     ///< the names of kazoo's Lock, ReadLock and WriteLock; parents are made persistent, as kazoo expects
};

/// What a lock writes into its nodes for people to read, and how it makes them.
struct LockOptions {
    std::string id{};                             ///< identifies the owner; empty: host:pid
    std::string name{};                           ///< names the work that is done under the lock; may be empty
    std::map<std::string, std::string> labels{};  ///< shown by participants() and zklock status
    std::optional<std::vector<Acl>> acl{};        ///< empty: the session's
    bool create_parents = true;                   ///< if false, a missing lock directory is an error, Errc::no_parent
    /// How long the next client waits for the lock in addition if the last holder vanished: its session ended, or
    /// another client deleted its node. A normal release causes no delay. For resources that cannot compare fencing
    /// tokens. All clients of the lock must set the same delay. ExclusiveMutex only; see docs/recipes/lock_delay.md.
    /// Zero: no delay. At most 366 days.
    std::chrono::milliseconds delay_after_loss{0};
    /// Exclusive holds: how many calls of this session may hold the lock one after the other by the same lock node,
    /// including the first one. The lock goes from one to the next without a request, and they have the same token. 0
    /// and 1: every hold has its own node. Shared holds: how many calls may join the first one on its node. 0: none.
    /// For ExclusiveMutex and ReadWriteLock. See docs/recipes/local.md.
    std::uint32_t local_handovers = 0;
    /// A lock node is handed over, and shared holds join it, only until this time after the node was granted.
    std::chrono::milliseconds local_turn{1000};
    /// After a release, the session may keep the lock node for its next acquire, until this time after the node was
    /// granted. It deletes the node earlier if another contender creates a node. Zero: it keeps no node. Not together
    /// with delay_after_loss. For ExclusiveMutex, and for exclusive holds of ReadWriteLock. See docs/recipes/local.md.
    std::chrono::milliseconds keep_for{0};
    /// A hold ends so long after it was granted, by the clock of this machine, if it was not released before: held() is
    /// false from then on, and lost() is signalled. The session deletes the lock node then, also if the owner never
    /// releases, so that other clients can get the lock. Each grant counts from its own beginning: also one that has
    /// the lock node of an earlier one (local_handovers, keep_for), and a shared one after a downgrade. Grants made by
    /// Grant::again() are one hold, and so are repeated lock() calls of one owner. Of shared holds on one node each
    /// ends by itself, and the last one deletes the node. With delay_after_loss, the next client waits for the delay,
    /// as the owner may still be at work. Zero: no limit. At most 366 days.
    std::chrono::milliseconds max_hold{0};
    Dialect dialect = Dialect::curator;  ///< a recipe that does not support it throws Errc::unsupported
};

/// One contender for a lock, a holder or a waiter, as its znode describes it.
struct Participant {
    std::string path;                               ///< absolute, but without the session's path_prefix
    std::string node;                               ///< last component of the path
    bool holder = false;                            ///< whether it holds the lock now, by the order of the nodes
    std::string mode;                               ///< "exclusive", "shared" or "semaphore"
    FencingToken token = 0;                         ///< the node's czxid
    std::int64_t session_id = 0;                    ///< owner of the node; 0: not ephemeral, no session ends it
    std::chrono::system_clock::time_point since{};  ///< when the node was created, by the server's clock
    std::string id;                                 ///< identifies the owner; empty if another library made the node
    std::string host;                               ///< of the owner; empty if another library made the node
    std::int64_t pid = 0;                           ///< of the owner; 0: unknown
    std::string user;                               ///< of the owner
    std::string name;                               ///< of the owner
    std::map<std::string, std::string> labels;      ///< of the owner
    /// How many further calls of the same session waited for the lock when the session took this place in the queue. A
    /// session has one place for all its calls that wait with equal LockOptions. See docs/recipes/local.md.
    std::uint64_t waiting = 0;
    bool revocation_requested = false;  ///< a request to release the lock has replaced the node's data
    std::string raw;                    ///< the node's data, unparsed
    std::int32_t version = 0;           ///< of the node's data
    bool by_zkrecipes = false;          ///< this library made the node, so its owner notices when it is deleted
    std::int32_t children = 0;          ///< of the node; a client of a lock makes none, and an ephemeral node has none
    /// False: an access list forbids to read the node. Only path, node, holder, mode and by_zkrecipes are known then.
    bool readable = true;
};

}  // namespace zkrecipes
