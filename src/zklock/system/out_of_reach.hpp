#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

namespace zkrecipes::zklock {

/// A live process that we may not send signals to, because it runs as another user.
struct OutOfReach {
    pid_t pid = 0;              ///< 0: not known, since /proc hides it (hidepid)
    std::optional<uid_t> user;  ///< the real user id; empty: not known
};

/// Such processes of this group, without those that such a process of the group has started. Reads the whole of /proc.
std::vector<OutOfReach> out_of_reach(pid_t group);

/// Whether this process is one, without a look at /proc.
bool refuses_signals(pid_t process) noexcept;

/// Whether a child of ours in this group is alive. Sees also those that /proc hides.
bool live_child_in(pid_t group) noexcept;

}  // namespace zkrecipes::zklock
