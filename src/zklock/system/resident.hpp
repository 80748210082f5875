#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace zkrecipes::zklock {

using Memory = std::span<const std::byte>;

/// The segments of the program and of the C library, smallest first: all that code with plain system calls needs. Not
/// the whole process, because a user may lock only a few megabytes (RLIMIT_MEMLOCK).
std::vector<Memory> essential_memory();

/// Locks these segments and the stack in memory, as far as the limit permits. Async-signal-safe.
void stay_resident(std::span<const Memory> parts) noexcept;

}  // namespace zkrecipes::zklock
