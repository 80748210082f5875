#pragma once

#include <cstdint>
#include <string>

namespace zkrecipes::zklock {

/// How the lock is held.
enum class Mode {
    exclusive,  ///< exclusively, by a node of a mutex
    writer,     ///< exclusively, by a node of a read-write lock
    shared,     ///< shared
    semaphore,  ///< one of N leases
    leader      ///< as the leader of an election
};
/// The name that the command and --result see. Both exclusive modes have the same name.
const char* mode_name(Mode mode) noexcept;

/// A lock to acquire.
struct LockSpec {
    std::string path;
    Mode mode = Mode::exclusive;
    bool operator==(const LockSpec&) const = default;
};

/// Parses the value of -L: PATH, PATH:shared, PATH:rw or PATH:exclusive. Throws Failure.
LockSpec parse_lock_spec(const std::string& text);
/// Parses a number of leases, the value of `origin`. Throws Failure.
std::int32_t parse_lease_count(const std::string& origin, const std::string& text);
/// Parses "TERM", "SIGTERM" or "15". Throws Failure.
int parse_signal(const std::string& text);
/// Parses a number from 0 to 255. Throws a Failure that names `option`.
int parse_exit_code(const std::string& option, const std::string& text);

}  // namespace zkrecipes::zklock
