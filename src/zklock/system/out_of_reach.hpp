#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

namespace zkrecipes::zklock {

/// A live process that zklock may not signal, because it runs as another user.
struct OutOfReach {
    pid_t pid = 0;              ///< 0: not known, since /proc hides it (hidepid)
    std::optional<uid_t> user;  ///< the real user id; empty: not known
};

/// The processes of this group that are out of reach, without their descendants. Reads the whole of /proc.
std::vector<OutOfReach> out_of_reach(pid_t group);

/// The same for the descendants of `root`, except `spare` and its descendants.
std::vector<OutOfReach> out_of_reach_below(pid_t root, pid_t spare);

/// Whether this process is out of reach. Does not read /proc.
bool refuses_signals(pid_t process) noexcept;

}  // namespace zkrecipes::zklock
