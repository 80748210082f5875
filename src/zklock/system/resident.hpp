#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace zkrecipes::zklock {

using Memory = std::span<const std::byte>;

/// The segments of the program and of the C library, the smallest first: all that code needs which makes plain system
/// calls only. Not the rest of a process, because a user may lock a few megabytes only (RLIMIT_MEMLOCK).
std::vector<Memory> essential_memory();

/// Keeps these parts, and the stack, in memory while the machine swaps. Leaves out what the limit does not allow.
/// Async-signal-safe.
void stay_resident(std::span<const Memory> parts) noexcept;

}  // namespace zkrecipes::zklock
