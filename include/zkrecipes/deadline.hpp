#pragma once

#include <chrono>

#include <zkrecipes/export.hpp>

namespace zkrecipes {

/// How long a call may wait: any duration of std::chrono converts to it.
using Timeout = std::chrono::duration<double>;

/// The point in time at which a call gives up, however many requests it needs.
///
/// Any duration and any time point of std::chrono converts to it, without overflow. A time too far away becomes
/// `never()`. A time in the past becomes `passed()`.
///
/// The rules for time are the same for all calls of the library:
///   - A passed deadline allows one attempt: the call sends its requests and waits for their answers, but not for other
///     clients. Right after an outage this attempt may take a third of the session timeout, until the lease of the
///     session is renewed.
///   - Calls that wait for other clients are `try_…`, `wait…`, `enter` and `leave`. They return an empty value or false
///     if the lock is busy, the deadline passes or a stop is requested. They throw Error for everything else. Of an
///     empty grant, Grant::missed() says why. Calls that return false do not say it.
///   - Calls that only need an answer of the servers are, for example, `participants()` and `get()`. They throw Error
///     unreachable if the deadline passes, or a stop is requested, before that answer.
///   - `verb_async` tells its callback what the blocking form of the same verb would have returned or thrown.
class Deadline {
public:
    /// The clock of all deadlines.
    using Clock = std::chrono::steady_clock;
    using TimePoint = Clock::time_point;

    constexpr Deadline() noexcept : at_(TimePoint::max()) {}  ///< never()

    /// So long after now.
    template <class Rep, class Period>
    Deadline(std::chrono::duration<Rep, Period> from_now)  // NOLINT: a duration is a deadline
        : Deadline(after(Clock::now(), from_now)) {}

    /// At this time.
    constexpr Deadline(TimePoint at) noexcept : at_(at) {}  // NOLINT: a time point is a deadline

    /// At this time of another clock: as far from now as that clock says now.
    template <class OtherClock, class Duration>
    Deadline(std::chrono::time_point<OtherClock, Duration> at)  // NOLINT: a time point is a deadline
        : Deadline(at == at.max() ? never()
                                  : after(Clock::now(),
                                          Wide(at.time_since_epoch()) - Wide(OtherClock::now().time_since_epoch()))) {}

    /// `from_now` after `now`. Negative durations and not-a-number count as zero.
    template <class Rep, class Period>
    static constexpr Deadline after(TimePoint now, std::chrono::duration<Rep, Period> from_now) noexcept {
        const Wide delta = from_now;
        if (!(delta > Wide::zero())) return passed();
        const Wide room = Wide(TimePoint::max().time_since_epoch()) - Wide(now.time_since_epoch());
        if (delta >= room || delta >= Wide(TimePoint::duration::max())) return never();
        return Deadline(now + std::chrono::duration_cast<TimePoint::duration>(from_now));
    }

    /// The call waits without a limit; it makes one attempt.
    static constexpr Deadline never() noexcept { return Deadline(TimePoint::max()); }
    static constexpr Deadline passed() noexcept { return Deadline(TimePoint::min()); }

    constexpr bool is_never() const noexcept { return at_ == TimePoint::max(); }   ///< whether it is never()
    constexpr bool is_passed(TimePoint now) const noexcept { return at_ <= now; }  ///< whether it is at `now` or before
    bool is_passed() const noexcept { return at_ <= Clock::now(); }                ///< whether it is now or before
    constexpr TimePoint time_point() const noexcept { return at_; }                ///< the time itself

private:
    /// Holds any duration without overflow, and the time of any clock to the nanosecond.
    using Wide = std::chrono::duration<long double, std::nano>;

    TimePoint at_;
};

}  // namespace zkrecipes
