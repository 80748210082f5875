#pragma once

#include <sys/resource.h>

namespace zkrecipes::bench {

/// What this process has used of the processors so far, in microseconds.
inline double processor_microseconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto of = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
}

}  // namespace zkrecipes::bench
