#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>

namespace zkrecipes {

/// Why a hold was lost. A release is no loss.
enum class LossReason {
    lease_ended,    ///< by the clock of this machine, the servers may have ended the session
    session_ended,  ///< the servers ended the session
    closed,         ///< the Session was closed
    node_gone,      ///< somebody deleted the lock node
    suspended,      ///< no server answered, and the hold was to end then (WhenSuspended::step_down)
    max_hold        ///< the hold has lasted for LockOptions::max_hold
};
inline constexpr std::size_t kLossReasons = 6;
ZKRECIPES_API const char* to_string(LossReason reason) noexcept;

/// The requests of a session, by kind.
enum class RequestKind { create, remove, exists, get, set, children, multi, sync, heartbeat, other };
inline constexpr std::size_t kRequestKinds = 10;
ZKRECIPES_API const char* to_string(RequestKind kind) noexcept;

/// How often times of certain lengths were seen.
struct DurationHistogram {
    /// Upper bounds of the buckets, in seconds. A last bucket has no bound.
    static constexpr std::array<double, 20> bounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                   0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5,
                                                   5,      10,      30,     60,    300,    3600};
    std::array<std::uint64_t, bounds.size() + 1> counts{};
    std::chrono::nanoseconds sum{0};

    /// How many times were seen.
    std::uint64_t count() const noexcept {
        std::uint64_t all = 0;
        for (const std::uint64_t each : counts) all += each;
        return all;
    }
};

/// What happened to the locks of one recipe that have one name (SessionOptions::name_of_path).
struct LockStats {
    std::string recipe;  ///< the class, for example "ExclusiveMutex"
    std::string mode;    ///< "exclusive", "shared" or "semaphore"
    std::string name;    ///< "": SessionOptions::name_of_path is not set

    // How acquires ended. Re-entrant calls are not counted.
    std::uint64_t acquired = 0;     ///< granted
    std::uint64_t busy = 0;         ///< nothing granted: others had the lock or waited for it until the time was over
    std::uint64_t stopped = 0;      ///< nothing granted: a stop was requested
    std::uint64_t unreachable = 0;  ///< nothing granted: no server answered until the time was over
    std::uint64_t failed = 0;       ///< the call threw an Error, or told its callback of one

    // How holds ended.
    std::uint64_t released = 0;                      ///< by the program
    std::array<std::uint64_t, kLossReasons> lost{};  ///< by LossReason

    std::uint64_t waiting = 0;  ///< calls that wait now
    std::uint64_t held = 0;     ///< holds now

    DurationHistogram wait;  ///< of the acquires that were granted, from the call to the grant
    DurationHistogram hold;  ///< of the holds that ended, from the grant to the release or the loss
};

/// Numbers of one Session object since it was made. See Session::stats().
struct SessionStats {
    std::uint64_t connects = 0;                           ///< how often it was connected
    std::uint64_t suspensions = 0;                        ///< how often a connection broke
    std::uint64_t sessions = 0;                           ///< how many ZooKeeper sessions it has made
    std::array<std::uint64_t, kRequestKinds> requests{};  ///< sent, by RequestKind; those of the C client not counted
    std::uint64_t heartbeats_refused = 0;                 ///< committed checks of the own nodes that failed
    std::uint64_t stalled_replies = 0;                    ///< answers that came only after a further request
    std::uint64_t events_dropped = 0;                     ///< SessionEvents was too slow for them

    std::uint64_t waiting = 0;          ///< calls that wait for a lock now
    std::uint64_t held = 0;             ///< holds now
    std::uint64_t node_bytes = 0;       ///< of the budget for ephemeral nodes that the session uses
    std::uint64_t node_bytes_max = 0;   ///< the budget
    std::uint64_t watch_bytes = 0;      ///< of the budget for watches
    std::uint64_t watch_bytes_max = 0;  ///< the budget
    std::uint64_t nodes_to_delete = 0;  ///< nodes that are no longer needed and not yet deleted

    bool connected = false;                            ///< a server answers now
    std::chrono::nanoseconds remaining_lease{0};       ///< zero: no hold would be guaranteed now
    std::chrono::nanoseconds session_timeout{0};       ///< that the servers granted; zero: no session yet
    std::chrono::nanoseconds heartbeat_round_trip{0};  ///< of the last committed heartbeat; zero: none yet

    /// By recipe, mode and name. At most 128 names: all that come later are counted together under the name "other".
    std::vector<LockStats> locks;
};

/// One hold of a session. See Session::holds().
struct HoldInfo {
    std::string recipe;                           ///< the class, for example "ExclusiveMutex"
    std::string mode;                             ///< "exclusive", "shared" or "semaphore"
    std::string path;                             ///< as the recipe was given it
    std::vector<std::string> nodes;               ///< the lock nodes
    FencingToken token = 0;                       ///< Grant::token()
    std::chrono::nanoseconds held_for{0};         ///< since the grant
    std::chrono::nanoseconds remaining_lease{0};  ///< Grant::remaining_lease()
};

/// One call of a session that waits for a lock. See Session::waits().
struct WaitInfo {
    std::string recipe;                       ///< the class, for example "ExclusiveMutex"
    std::string mode;                         ///< "exclusive", "shared" or "semaphore"
    std::string path;                         ///< as the recipe was given it
    std::chrono::nanoseconds waiting_for{0};  ///< since the call
    /// How many are in front of it, the holder included, as far as the session has seen. It learns of changes only when
    /// it reads the queue, so the number may be too large. -1: it has not read the queue yet.
    std::int64_t in_front = -1;
};

}  // namespace zkrecipes
