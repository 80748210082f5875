#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

/// Empty: /proc shows no process with this number.
std::optional<ProcessEntry> read_process(pid_t pid) noexcept;

/// Tells a process from later ones with its number, also in other programs.
struct ProcessIdentity {
    pid_t pid = 0;
    std::uint64_t started = 0;  ///< in clock ticks since boot
    std::string where{};        ///< the boot of the machine and the namespaces in which these count; empty: not known
};
ProcessIdentity this_process();
/// False also if nobody can tell: the process is of another machine or in another namespace, or /proc does not show it.
bool has_ended(const ProcessIdentity& process);

/// Reads the whole process table with plain system calls: the dead man's switch runs in a forked process and may not
/// allocate. Not for concurrent use.
class ProcessTable {
public:
    /// `room`: the initial number of processes. It grows.
    explicit ProcessTable(std::size_t room = 1024) noexcept;
    ~ProcessTable();
    ProcessTable(const ProcessTable&) = delete;
    ProcessTable& operator=(const ProcessTable&) = delete;

    /// All processes, ordered by number. Valid until the next call. Async-signal-safe.
    std::span<ProcessEntry> read() noexcept;
    /// False: the system refused memory or a descriptor, so the last read() may be incomplete.
    bool complete() const noexcept { return complete_; }
    /// The memory of the table, for locking it.
    std::span<const std::byte> memory() const noexcept;

private:
    bool make_room(std::size_t room) noexcept;

    ProcessEntry* entries_ = nullptr;
    std::size_t room_ = 0;
    bool complete_ = true;
};

/// The number of processes and threads that this machine has started; 0: not known. Async-signal-safe.
std::uint64_t fork_count() noexcept;

/// How many empty scans in a row count as "none" on a machine that starts processes all the time.
inline constexpr int kEmptyScans = 3;

/// The result of `count` on the process table. A scan of /proc is no snapshot: if a process forks and ends meanwhile,
/// the scan may miss both, because the child's number may lie in the part that was already read. So "none" is believed
/// only if nothing was started during the scan (`forks` tells), or after kEmptyScans empty scans.
template <class Count, class Forks>
auto count_reliably(Count count, Forks forks) {
    for (int scan = 1;; ++scan) {
        const std::uint64_t before = forks();
        const auto found = count();
        if (found != 0 || scan == kEmptyScans || (before != 0 && forks() == before)) return found;
    }
}

/// Sends SIGKILL to exactly this process, never to a later one with the same number. Async-signal-safe.
void kill_process(const ProcessEntry& process) noexcept;

/// Sends SIGKILL to every live descendant of `root`, except `spare` and its descendants. Returns their number; 0 as in
/// count_reliably. Overwrites `table`. Async-signal-safe.
std::size_t kill_descendants(pid_t root, pid_t spare, ProcessTable& table) noexcept;

/// The numbers of the live descendants of `root`, except `spare` and its descendants.
std::vector<pid_t> descendants(pid_t root, pid_t spare);

/// Whether a process of this group is alive. Zombies do not count; a signal to the group would find those, too. Also
/// true if the process table cannot be read.
bool group_alive(pid_t group);

/// Reaps the zombies that this process got as subreaper, except `first` and `second`.
void cleaning_adopted(pid_t first, pid_t second);

}  // namespace zkrecipes::zklock
