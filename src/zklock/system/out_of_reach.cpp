#include "zklock/system/out_of_reach.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "zklock/system/proc_directory.hpp"
#include "zklock/system/process_table.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

/// `group` 0: any.
bool refuses_in(pid_t group, pid_t process) noexcept {
    return process > 0 && (group == 0 || ::getpgid(process) == group) && refuses_signals(process);
}

/// The data of a process in /proc; empty: the process is dead, or its parent is out of reach as well.
std::optional<OutOfReach> look_at(int proc, const char* pid, pid_t group) {
    OutOfReach process{static_cast<pid_t>(std::atol(pid)), {}};
    struct stat directory {};
    if (::fstatat(proc, pid, &directory, 0) != 0) return std::nullopt;
    const UniqueFd file(::openat(proc, (std::string(pid) + "/status").c_str(), O_RDONLY | O_CLOEXEC));
    char text[2048];
    const ssize_t size = file ? ::read(file.get(), text, sizeof text - 1) : -1;
    if (size <= 0) {  // another user's, and hidden
        process.user = directory.st_uid;
        return process;
    }
    text[size] = '\0';
    const char* const state = std::strstr(text, "\nState:\t");
    if (state && (state[8] == 'Z' || state[8] == 'X')) return std::nullopt;
    const char* const parent = std::strstr(text, "\nPPid:\t");
    if (parent && refuses_in(group, static_cast<pid_t>(std::atol(parent + 7)))) return std::nullopt;
    if (const char* const user = std::strstr(text, "\nUid:\t")) {
        process.user = static_cast<uid_t>(std::strtoul(user + 6, nullptr, 10));
    }
    return process;
}

}  // namespace

bool refuses_signals(pid_t process) noexcept { return ::kill(process, 0) != 0 && errno == EPERM; }

std::vector<OutOfReach> out_of_reach(pid_t group) {
    std::vector<OutOfReach> found;
    for_each_number("/proc", [&](int proc, const char* name) {
        const pid_t pid = static_cast<pid_t>(std::atol(name));
        if (!refuses_in(group, pid)) return;
        if (const auto process = look_at(proc, name, group)) found.push_back(*process);
    });
    return found;
}

std::vector<OutOfReach> out_of_reach_below(pid_t root, pid_t spare) {
    std::vector<OutOfReach> found;
    const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const pid_t pid : proc ? descendants(root, spare) : std::vector<pid_t>{}) {
        if (!refuses_signals(pid)) continue;
        if (const auto process = look_at(proc.get(), std::to_string(pid).c_str(), 0)) found.push_back(*process);
    }
    return found;
}

}  // namespace zkrecipes::zklock
