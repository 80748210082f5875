#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace zkrecipes::zklock {

using Nanoseconds = std::chrono::nanoseconds;

/// CLOCK_BOOTTIME, the clock of leases: it also advances while the machine sleeps.
struct BootClock {
    using rep = std::int64_t;
    using period = std::nano;
    using duration = Nanoseconds;
    using time_point = std::chrono::time_point<BootClock>;
    static constexpr bool is_steady = true;

    static time_point now() noexcept {  // async-signal-safe
        timespec ts{};
        ::clock_gettime(CLOCK_BOOTTIME, &ts);
        return time_point(std::chrono::seconds(ts.tv_sec) + Nanoseconds(ts.tv_nsec));
    }
};
using Instant = BootClock::time_point;

inline std::int64_t in_ms(Nanoseconds duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

}  // namespace zkrecipes::zklock
