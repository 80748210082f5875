#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

namespace zkrecipes::zklock {

/// One process as /proc shows it.
struct ProcessEntry {
    pid_t pid = 0;
    pid_t parent = 0;
    pid_t group = 0;
    char state = '?';  // Z: zombie

    bool alive() const noexcept { return state != 'Z' && state != 'X'; }
};

/// Reads the whole process table with plain system calls: the dead man's switch calls it in a process that was forked
/// off and may not allocate. What does not fit is left out.
std::size_t read_process_table(std::span<ProcessEntry> out) noexcept;

/// Sends SIGKILL to every live descendant of `root`, except `spare` and what is below it. Answers how many there were.
/// `scratch` is overwritten. Async-signal-safe.
std::size_t kill_descendants(pid_t root, pid_t spare, std::span<ProcessEntry> scratch) noexcept;

/// Whether a process of this group is alive, zombies not counted.
bool group_alive(pid_t group);

/// Whether `parent` has children, dead or alive.
bool has_children(pid_t parent);

/// Reaps zombies that were handed to us as their subreaper; `first` and `second` are left alone.
void reap_adopted(pid_t first, pid_t second);

}  // namespace zkrecipes::zklock
