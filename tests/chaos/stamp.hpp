#pragma once

#include <cstdint>
#include <ctime>

namespace zkrecipes::chaos {

/// Nanoseconds of CLOCK_BOOTTIME: the one clock of the machine on which holders, contenders and observers are compared.
/// 0: never happened.
using Stamp = std::int64_t;

inline Stamp stamp_now() noexcept {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<Stamp>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline constexpr Stamp from_ms(std::int64_t ms) noexcept { return ms * 1'000'000; }
inline constexpr double to_ms(Stamp nanoseconds) noexcept { return static_cast<double>(nanoseconds) / 1e6; }

}  // namespace zkrecipes::chaos
