#include "session/lease_clock.hpp"

#include <algorithm>

namespace zkrecipes::internal {

Nanoseconds LeaseClock::length_of(Nanoseconds timeout) const noexcept {
    // Two thirds, as long as T is at least two ticks, which the servers see to. Where an administrator allowed less,
    // the leader may have heard of us up to half a tick late, and a twelfth of T stays for jitter and drift.
    const Nanoseconds usual = timeout * 2 / 3;
    const Nanoseconds short_timeout = timeout * 11 / 12 - tick_ / 2;
    return std::max(Nanoseconds::zero(), std::min(usual, short_timeout));
}

void LeaseClock::set_timeout(std::chrono::milliseconds timeout, Instant now) {
    if (Nanoseconds(timeout) == timeout_) return;
    earlier_timeout_ = timeout_;
    timeout_ = timeout;
    timeout_since_ = now;
    if (last_sent_ != Instant::min()) until_ = std::min(until_, last_sent_ + length_of(timeout_));
}

bool LeaseClock::commit(Instant sent_at, Instant now) {
    const bool lapsed = until_ != Instant::min() && passed(now);
    const bool sent_before_change = sent_at < timeout_since_ && earlier_timeout_ > Nanoseconds::zero();
    const Nanoseconds length = length_of(sent_before_change ? std::min(timeout_, earlier_timeout_) : timeout_);
    last_sent_ = std::max(last_sent_, sent_at);
    until_ = std::max(until_, sent_at + length);
    return lapsed;
}

void LeaseClock::reset() {
    last_sent_ = until_ = timeout_since_ = Instant::min();
    timeout_ = earlier_timeout_ = Nanoseconds::zero();
}

bool LeaseClock::fresh(Instant now) const noexcept {
    return until_ != Instant::min() && now < until_ && until_ - now >= length() / 2;
}

Nanoseconds LeaseClock::interval() const noexcept {
    const Nanoseconds usual = timeout_ < 3 * tick_ ? timeout_ / 12 : timeout_ / 6;
    return std::max(usual, Nanoseconds(std::chrono::milliseconds(1)));
}

}  // namespace zkrecipes::internal
