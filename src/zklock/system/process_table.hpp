#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace zkrecipes::zklock {

/// One process as /proc shows it.
struct ProcessEntry {
    std::uint64_t started = 0;  // in clock ticks since boot; tells a process from a later one with its number
    pid_t pid = 0;
    pid_t parent = 0;
    pid_t group = 0;
    int threads = 1;
    char state = '?';  // of its first thread; Z: zombie

    /// A process whose first thread has ended while others go on looks like a zombie with more than one thread.
    bool alive() const noexcept { return (state != 'Z' && state != 'X') || threads > 1; }
};

/// Reads the whole process table with plain system calls: the dead man's switch does it in a process that was forked
/// off and may not allocate. Not for concurrent use.
class ProcessTable {
public:
    /// `room`: for so many processes at first. It grows.
    explicit ProcessTable(std::size_t room = 1024) noexcept;
    ~ProcessTable();
    ProcessTable(const ProcessTable&) = delete;
    ProcessTable& operator=(const ProcessTable&) = delete;

    /// All processes, ordered by number. Valid until the next call. Async-signal-safe.
    std::span<ProcessEntry> read() noexcept;
    /// False: the system refused memory or a descriptor, and the last read() may have left out processes.
    bool complete() const noexcept { return complete_; }
    /// The memory, to be locked.
    std::span<const std::byte> memory() const noexcept;

private:
    bool make_room(std::size_t room) noexcept;

    ProcessEntry* entries_ = nullptr;
    std::size_t room_ = 0;
    bool complete_ = true;
};

/// How many processes and threads this machine has started so far; 0: it does not say. Async-signal-safe.
std::uint64_t fork_count() noexcept;

/// How often "nobody" must be seen in a row where others are started all the time.
inline constexpr int kEmptyScans = 3;

/// What `count` finds in the process table. Reading /proc takes no snapshot: of a process that forks and ends meanwhile
/// neither may be seen, the child because its number lies in a part of the table that was listed before. So "nobody" is
/// believed when nothing at all was started while it was read, which `forks` tells, or after kEmptyScans of them.
template <class Count, class Forks>
auto count_surely(Count count, Forks forks) {
    for (int scan = 1;; ++scan) {
        const std::uint64_t before = forks();
        const auto found = count();
        if (found != 0 || scan == kEmptyScans || (before != 0 && forks() == before)) return found;
    }
}

/// Sends SIGKILL to exactly this process, and not to a later one with its number. Async-signal-safe.
void kill_process(const ProcessEntry& process) noexcept;

/// Sends SIGKILL to every live descendant of `root`, except `spare` and what is below it. Answers how many there were;
/// none: see count_surely. `table` is overwritten. Async-signal-safe.
std::size_t kill_descendants(pid_t root, pid_t spare, ProcessTable& table) noexcept;

/// Whether a process of this group is alive, zombies not counted: a signal to the group would find those, too. Also
/// true when the process table cannot be read.
bool group_alive(pid_t group);

/// Whether `parent` has children, dead or alive.
bool has_children(pid_t parent);

/// Reaps zombies that were handed to us as their subreaper; `first` and `second` are left alone.
void cleaning_adopted(pid_t first, pid_t second);

}  // namespace zkrecipes::zklock
