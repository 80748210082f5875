#pragma once

#include <cstdint>
#include <string>

namespace zkrecipes::zklock {

/// How the lock is held.
enum class Mode {
    exclusive,  ///< by a node of a mutex
    writer,     ///< alone as well, by a node of a read-write lock
    shared,     ///< beside others that share it
    semaphore,  ///< one of so many leases
    leader      ///< as the leader of an election
};
/// As the command, and --result, are told: both ways of being alone are the same to them.
const char* mode_name(Mode mode) noexcept;

/// A lock that is to be taken.
struct LockSpec {
    std::string path;
    Mode mode = Mode::exclusive;
    bool operator==(const LockSpec&) const = default;
};

/// What stands behind -L: PATH, PATH:shared, PATH:rw or PATH:exclusive. Throws Failure.
LockSpec parse_lock_spec(const std::string& text);
/// What stands behind -j. Throws Failure.
std::int32_t parse_lease_count(const std::string& text);
/// "TERM", "SIGTERM" or "15". Throws Failure.
int parse_signal(const std::string& text);
/// From 0 to 255. Throws Failure that names `option`.
int parse_exit_code(const std::string& option, const std::string& text);

}  // namespace zkrecipes::zklock
