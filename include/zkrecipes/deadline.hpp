#pragma once

#include <chrono>

namespace zkrecipes {

/// The one point in time at which a call gives up, however many steps it takes on the way.
///
/// Made from any duration or from a time point of any clock. Never overflows: what is too far away becomes
/// `never()`, what lies behind becomes `passed()`. A call with a passed deadline makes one attempt and does not
/// wait for anybody else; right after an outage that attempt may take a third of the session timeout, until the
/// session is known to be ours for long enough to hold something.
class Deadline {
public:
    using Clock = std::chrono::steady_clock;
    using TimePoint = Clock::time_point;

    constexpr Deadline() noexcept : at_(TimePoint::max()) {}

    template <class Rep, class Period>
    Deadline(std::chrono::duration<Rep, Period> from_now)  // NOLINT: a duration is a deadline
        : Deadline(after(Clock::now(), from_now)) {}

    constexpr Deadline(TimePoint at) noexcept : at_(at) {}  // NOLINT: a time point is a deadline

    template <class OtherClock, class Duration>
    Deadline(std::chrono::time_point<OtherClock, Duration> at)  // NOLINT: a time point is a deadline
        : Deadline(at == at.max() ? never()
                                  : after(Clock::now(),
                                          Wide(at.time_since_epoch()) - Wide(OtherClock::now().time_since_epoch()))) {}

    /// `from_now` after `now`, saturating at both ends. Not-a-number counts as nothing.
    template <class Rep, class Period>
    static constexpr Deadline after(TimePoint now, std::chrono::duration<Rep, Period> from_now) noexcept {
        const Wide delta = from_now;
        if (!(delta > Wide::zero())) return passed();
        const Wide room = Wide(TimePoint::max().time_since_epoch()) - Wide(now.time_since_epoch());
        if (delta >= room || delta >= Wide(TimePoint::duration::max())) return never();
        return Deadline(now + std::chrono::duration_cast<TimePoint::duration>(from_now));
    }

    static constexpr Deadline never() noexcept { return Deadline(TimePoint::max()); }
    static constexpr Deadline passed() noexcept { return Deadline(TimePoint::min()); }

    constexpr bool is_never() const noexcept { return at_ == TimePoint::max(); }
    constexpr bool is_passed(TimePoint now) const noexcept { return at_ <= now; }
    bool is_passed() const noexcept { return at_ <= Clock::now(); }
    constexpr TimePoint time_point() const noexcept { return at_; }

private:
    /// Holds any duration without overflow, and all that a clock can show to the nanosecond.
    using Wide = std::chrono::duration<long double, std::nano>;

    TimePoint at_;
};

namespace internal {

/// Any duration in nanoseconds; what does not fit becomes the longest one, and what is negative or not a number none.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturated(const std::chrono::duration<Rep, Period>& wait) noexcept {
    using Wide = std::chrono::duration<long double, std::nano>;
    const Wide wide = wait;
    if (wide >= Wide(std::chrono::nanoseconds::max())) return std::chrono::nanoseconds::max();
    if (!(wide > Wide::zero())) return std::chrono::nanoseconds::zero();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(wait);
}

}  // namespace internal

}  // namespace zkrecipes
