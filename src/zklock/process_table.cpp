#include "zklock/process_table.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "zklock/proc_directory.hpp"

namespace zkrecipes::zklock {
namespace {

pid_t parse_number(const char*& at) noexcept {
    pid_t value = 0;
    while (*at == ' ') ++at;
    while (*at >= '0' && *at <= '9') value = value * 10 + (*at++ - '0');
    return value;
}

void skip_fields(const char*& at, int count) noexcept {
    for (; count > 0 && *at; --count) {
        while (*at == ' ') ++at;
        while (*at && *at != ' ') ++at;
    }
}

/// /proc/PID/stat: "PID (name) STATE PARENT GROUP ..."; the name may hold anything, so the last parenthesis counts.
bool read_stat(int proc, const char* pid, ProcessEntry& out) noexcept {
    char path[32];
    std::size_t length = 0;
    while (pid[length] && length < 16) {
        path[length] = pid[length];
        ++length;
    }
    std::memcpy(path + length, "/stat", 6);
    const int fd = ::openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char text[512];
    const ssize_t size = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (size <= 0) return false;
    text[size] = '\0';
    const char* at = nullptr;
    for (const char* p = text; *p; ++p) {
        if (*p == ')') at = p;
    }
    if (!at || at[1] != ' ' || !at[2]) return false;
    const char* number = pid;
    out.pid = parse_number(number);
    out.state = at[2];
    at += 3;
    out.parent = parse_number(at);
    out.group = parse_number(at);
    skip_fields(at, 14);  // to the 20th
    out.threads = parse_number(at);
    return true;
}

}  // namespace

std::size_t read_process_table(std::span<ProcessEntry> out) noexcept {
    std::size_t count = 0;
    for_each_number("/proc", [&](int proc, const char* pid) {
        if (count < out.size() && read_stat(proc, pid, out[count])) ++count;
    });
    return count;
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

namespace {

std::size_t kill_those_seen(pid_t root, pid_t spare, std::span<ProcessEntry> scratch) noexcept {
    const std::size_t count = read_process_table(scratch);
    // Parents may stand behind their children in the table, so marking goes round until nothing is added. A marked
    // entry has its parent replaced by the root.
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < count; ++i) {
            ProcessEntry& process = scratch[i];
            if (process.parent == root || process.pid == root) continue;
            for (std::size_t j = 0; j < count; ++j) {
                if (scratch[j].pid == process.parent && scratch[j].parent == root && scratch[j].pid != spare) {
                    process.parent = root;
                    changed = true;
                    break;
                }
            }
        }
    }
    std::size_t alive = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const ProcessEntry& process = scratch[i];
        if (process.parent != root || process.pid == spare || process.pid == root || !process.alive()) continue;
        ++alive;
        ::kill(process.pid, SIGKILL);
    }
    return alive;
}

std::vector<ProcessEntry> whole_table() {
    std::vector<ProcessEntry> table(1024);
    for (;;) {
        const std::size_t count = read_process_table(table);
        if (count < table.size()) {
            table.resize(count);
            return table;
        }
        table.resize(table.size() * 2);
    }
}

}  // namespace

std::size_t kill_descendants(pid_t root, pid_t spare, std::span<ProcessEntry> scratch) noexcept {
    return count_surely([&] { return kill_those_seen(root, spare, scratch); }, fork_count);
}

bool group_alive(pid_t group) {
    const auto members = [group] {
        const std::vector<ProcessEntry> table = whole_table();
        return std::count_if(table.begin(), table.end(), [group](const ProcessEntry& process) {
            return process.group == group && process.alive();
        });
    };
    return count_surely(members, fork_count) > 0;
}

bool has_children(pid_t parent) {
    for (const ProcessEntry& process : whole_table()) {
        if (process.parent == parent) return true;
    }
    return false;
}

void reap_adopted(pid_t first, pid_t second) {
    const pid_t self = ::getpid();
    for (const ProcessEntry& process : whole_table()) {
        if (process.parent != self || process.alive() || process.pid == first || process.pid == second) continue;
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOHANG);
    }
}

}  // namespace zkrecipes::zklock
