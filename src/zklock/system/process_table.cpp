#include "zklock/system/process_table.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "zklock/system/proc_directory.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

template <class Number>
Number parse_number(const char*& at) noexcept {
    Number value = 0;
    while (*at == ' ') ++at;
    while (*at >= '0' && *at <= '9') value = value * 10 + static_cast<Number>(*at++ - '0');
    return value;
}

void skip_fields(const char*& at, int count) noexcept {
    for (; count > 0 && *at; --count) {
        while (*at == ' ') ++at;
        while (*at && *at != ' ') ++at;
    }
}

enum class Presence { yes, gone, unknown };

/// /proc/PID/stat: "PID (name) STATE PARENT GROUP ..."; the name may hold anything, so the last parenthesis counts.
Presence read_stat(int proc, const char* pid, ProcessEntry& out) noexcept {
    char path[32];
    std::size_t length = 0;
    while (pid[length] && length < 16) {
        path[length] = pid[length];
        ++length;
    }
    std::memcpy(path + length, "/stat", 6);
    const int fd = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        const bool refused = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR;
        return refused ? Presence::unknown : Presence::gone;
    }
    char text[512];
    const ssize_t size = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (size <= 0) return Presence::gone;
    text[size] = '\0';
    const char* at = nullptr;
    for (const char* p = text; *p; ++p) {
        if (*p == ')') at = p;
    }
    if (!at || at[1] != ' ' || !at[2]) return Presence::gone;
    const char* number = pid;
    out.pid = parse_number<pid_t>(number);
    out.state = at[2];
    at += 3;
    out.parent = parse_number<pid_t>(at);
    out.group = parse_number<pid_t>(at);
    skip_fields(at, 14);  // to the 20th
    out.threads = parse_number<int>(at);
    skip_fields(at, 1);
    out.started = parse_number<std::uint64_t>(at);
    return Presence::yes;
}

/// Where numbers of processes, and times since boot, mean the same as here. Empty if /proc does not tell, or is that of
/// another PID namespace.
std::string this_place() {
    char self[16] = {};
    if (::readlink("/proc/self", self, sizeof self - 1) <= 0 || std::to_string(::getpid()) != self) return {};
    std::ifstream boot("/proc/sys/kernel/random/boot_id");
    std::string place;
    if (!std::getline(boot, place)) return {};
    for (const char* const space : {"/proc/self/ns/pid", "/proc/self/ns/time"}) {
        struct stat status {};
        place += ":" + std::to_string(::stat(space, &status) == 0 ? status.st_ino : 0);
    }
    return place;
}

bool by_number(const ProcessEntry& a, const ProcessEntry& b) noexcept { return a.pid < b.pid; }

const ProcessEntry* find(std::span<ProcessEntry> processes, pid_t pid) noexcept {
    ProcessEntry wanted;
    wanted.pid = pid;
    const auto at = std::lower_bound(processes.begin(), processes.end(), wanted, by_number);
    return at != processes.end() && at->pid == pid ? &*at : nullptr;
}

}  // namespace

std::optional<ProcessEntry> read_process(pid_t pid) noexcept {
    char name[16] = {};
    std::to_chars(name, name + sizeof name - 1, pid);
    const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ProcessEntry entry;
    if (!proc || read_stat(proc.get(), name, entry) != Presence::yes) return std::nullopt;
    return entry;
}

ProcessIdentity this_process() {
    const auto entry = read_process(::getpid());
    return {::getpid(), entry ? entry->started : 0, entry ? this_place() : ""};
}

bool has_ended(const ProcessIdentity& process) {
    if (process.pid <= 0 || process.where.empty() || process.where != this_place()) return false;
    if (::kill(process.pid, 0) != 0 && errno == ESRCH) return true;
    const auto now = read_process(process.pid);
    return now && (!now->alive() || process.started != now->started);
}

ProcessTable::ProcessTable(std::size_t room) noexcept { make_room(std::max<std::size_t>(room, 1)); }

ProcessTable::~ProcessTable() {
    if (entries_) ::munmap(entries_, room_ * sizeof(ProcessEntry));
}

bool ProcessTable::make_room(std::size_t room) noexcept {
    void* const memory =
        ::mmap(nullptr, room * sizeof(ProcessEntry), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    if (entries_) ::munmap(entries_, room_ * sizeof(ProcessEntry));
    entries_ = static_cast<ProcessEntry*>(memory);
    room_ = room;
    return true;
}

std::span<const std::byte> ProcessTable::memory() const noexcept {
    return {reinterpret_cast<const std::byte*>(entries_), room_ * sizeof(ProcessEntry)};
}

std::span<ProcessEntry> ProcessTable::read() noexcept {
    for (;;) {
        std::size_t seen = 0;
        std::size_t count = 0;
        complete_ = true;
        const bool opened = for_each_number("/proc", [&](int proc, const char* pid) {
            ProcessEntry process;
            const Presence found = read_stat(proc, pid, process);
            if (found == Presence::unknown) complete_ = false;
            if (found != Presence::yes) return;
            if (count < room_) entries_[count++] = process;
            ++seen;
        });
        complete_ = complete_ && opened;
        if (seen > count && make_room(seen + seen / 2)) continue;
        complete_ = complete_ && seen == count;
        const std::span<ProcessEntry> processes(entries_, count);
        if (!std::is_sorted(processes.begin(), processes.end(), by_number)) {
            std::sort(processes.begin(), processes.end(), by_number);
        }
        return processes;
    }
}

std::uint64_t fork_count() noexcept {
    const int fd = ::open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    constexpr char kName[] = "\nprocesses ";  // never the first line
    constexpr std::size_t kLength = sizeof kName - 1;
    std::size_t matched = 0;
    std::uint64_t value = 0;
    bool done = false;
    char text[4096];  // the whole file may be larger: its line of interrupts is long
    for (ssize_t size = 0; !done && (size = ::read(fd, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < size && !done; ++i) {
            if (matched < kLength) {
                matched = text[i] == kName[matched] ? matched + 1 : text[i] == kName[0];
            } else if (text[i] >= '0' && text[i] <= '9') {
                value = value * 10 + static_cast<std::uint64_t>(text[i] - '0');
            } else {
                done = true;
            }
        }
    }
    ::close(fd);
    return value;
}

void kill_process(const ProcessEntry& process) noexcept {
    char name[16] = {};
    std::to_chars(name, name + sizeof name - 1, process.pid);
    const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
    if (!handle) {
        // If there is no pidfd (Linux before 5.3, no descriptor left), signal by number: a survivor would be worse.
        if (errno != ESRCH) ::kill(process.pid, SIGKILL);
        return;
    }
    // The pidfd may refer to a later process with this number. From here on that cannot change.
    const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ProcessEntry now;
    const Presence found = proc ? read_stat(proc.get(), name, now) : Presence::unknown;
    if (found == Presence::gone || (found == Presence::yes && now.started != process.started)) return;
    if (::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0) == 0 || errno == ESRCH) return;
    if (errno == ENOSYS) ::kill(process.pid, SIGKILL);
}

namespace {

/// Calls `visit(process)` for each live descendant of `root`, except `spare` and its descendants, and returns their
/// number. Async-signal-safe if `visit` is.
template <class Visit>
std::size_t for_each_descendant(pid_t root, pid_t spare, ProcessTable& table, Visit visit) {
    const std::span<ProcessEntry> processes = table.read();
    // A parent may come after its children in the table, so marking is repeated until nothing is added. The parent of a
    // marked entry is replaced by the root.
    for (bool changed = true; changed;) {
        changed = false;
        for (ProcessEntry& process : processes) {
            if (process.parent == root || process.pid == root) continue;
            const ProcessEntry* const parent = find(processes, process.parent);
            if (!parent || parent->parent != root || parent->pid == spare) continue;
            process.parent = root;
            changed = true;
        }
    }
    std::size_t alive = 0;
    for (const ProcessEntry& process : processes) {
        if (process.parent != root || process.pid == spare || process.pid == root || !process.alive()) continue;
        ++alive;
        visit(process);
    }
    return alive;
}

}  // namespace

std::size_t kill_descendants(pid_t root, pid_t spare, ProcessTable& table) noexcept {
    return count_reliably([&] { return for_each_descendant(root, spare, table, kill_process); }, fork_count);
}

std::vector<pid_t> descendants(pid_t root, pid_t spare) {
    ProcessTable table;
    std::vector<pid_t> found;
    for_each_descendant(root, spare, table, [&](const ProcessEntry& process) { found.push_back(process.pid); });
    return found;
}

bool group_alive(pid_t group) {
    ProcessTable table;
    const auto members = [&] {
        const std::span<const ProcessEntry> processes = table.read();
        const auto found = std::count_if(processes.begin(), processes.end(), [group](const ProcessEntry& process) {
            return process.group == group && process.alive();
        });
        return found > 0 || !table.complete();
    };
    return count_reliably(members, fork_count);
}

void cleaning_adopted(pid_t first, pid_t second) {
    const pid_t self = ::getpid();
    ProcessTable table;
    for (const ProcessEntry& process : table.read()) {
        if (process.parent != self || process.alive() || process.pid == first || process.pid == second) continue;
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG);
    }
}

}  // namespace zkrecipes::zklock
