#pragma once

#include <sys/types.h>

namespace zkrecipes::zklock {

// Questions about the children of this process that the kernel answers at once. Reading /proc takes a while, and may
// miss a process that forks and ends meanwhile. Each function is async-signal-safe.

/// Whether this process has children, dead or alive.
bool has_children() noexcept;

/// Whether a child of this process is alive. Zombies do not count, and neither does the dead man's switch: it is a
/// child without SIGCHLD, which waitid() leaves out. If this process is the subreaper of its descendants and had no
/// other children before, the answer is that for all descendants: each of them has an ancestor that is a living child.
bool live_child() noexcept;
/// The same for the children in this process group.
bool live_child_in(pid_t group) noexcept;

}  // namespace zkrecipes::zklock
