#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include <zkrecipes/deadline.hpp>

namespace zkrecipes::internal {

/// The time base of leases and timers: CLOCK_BOOTTIME, which also runs while the machine sleeps. It has no now():
/// only the Runtime knows what time it is, so that the simulation can decide it.
struct BootTime {
    using rep = std::int64_t;
    using period = std::nano;
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<BootTime>;
    static constexpr bool is_steady = true;
};
using Instant = BootTime::time_point;
using Nanoseconds = std::chrono::nanoseconds;

/// Where a piece of work runs.
enum class Lane {
    protocol,  ///< timers and internal continuations; never user code, never blocks
    notifier,  ///< user callbacks, one at a time, in order
    blocking   ///< closing handles, resolving names, probing servers: may take seconds
};

using TimerId = std::uint64_t;  ///< 0: none

/// Everything non-deterministic that the session takes from its surroundings: time, timers, other threads of
/// control, random numbers. Two implementations: ThreadRuntime, and the seeded one of tests/sim. Below the public
/// headers nothing else in src/ may read a clock, sleep, start a thread or draw a random number.
class Runtime {
public:
    virtual ~Runtime() = default;

    virtual Instant now() const noexcept = 0;  ///< lock-free: Grant::held() reads it
    virtual Deadline::TimePoint steady_now() const noexcept = 0;
    virtual std::chrono::system_clock::time_point wall_now() const noexcept = 0;  ///< for people only
    virtual std::uint64_t random() noexcept = 0;

    /// Runs `work` on the protocol lane at `when` or soon after. `work` runs exactly once unless cancelled.
    virtual TimerId at(Instant when, std::function<void()> work) = 0;
    /// True: `work` has not started and will not. Never waits.
    virtual bool cancel(TimerId timer) noexcept = 0;

    /// Runs `work` soon, in the order of the posts of its lane. Never runs it inside post().
    virtual void post(Lane lane, std::function<void()> work) = 0;

    /// Ends all lanes: runs what was posted, drops timers, joins. Afterwards post() and at() drop their work. When
    /// called on one of the lanes, that lane ends by itself after the present piece of work.
    virtual void stop() noexcept = 0;

    /// The deadline on the lease time base; Instant::max() for never, now() for passed.
    Instant instant(Deadline deadline) const noexcept {
        if (deadline.is_never()) return Instant::max();
        const auto steady = steady_now();
        if (deadline.is_passed(steady)) return now();
        const auto boot = now();
        const auto left = deadline.time_point() - steady;
        return left >= Instant::max() - boot ? Instant::max() : boot + left;
    }
};

/// Threads (one for each lane, started here), timerfd on CLOCK_BOOTTIME, getrandom. Throws std::system_error.
std::shared_ptr<Runtime> make_thread_runtime();

}  // namespace zkrecipes::internal
