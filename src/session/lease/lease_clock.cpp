#include "session/lease/lease_clock.hpp"

#include <algorithm>

namespace zkrecipes::internal {

void LeaseClock::connected(std::chrono::milliseconds timeout, Instant since, Instant now) {
    touches_.clear();
    connected_since_ = since;
    if (Nanoseconds(timeout) == timeout_) return;
    earlier_timeout_ = timeout_;
    timeout_ = timeout;
    timeout_since_ = now;
    // A smaller timeout shortens the lease at once; a larger one counts only for writes sent after it was agreed.
    if (last_sent_ != Instant::min()) until_ = std::min(until_, last_sent_ + length());
}

void LeaseClock::answered(Instant sent_at, Instant now, bool overtook) {
    if (timeout_ == Nanoseconds::zero()) return;
    // One in each T/24 is enough; leaving out the younger one only makes the lease shorter.
    if (!overtook && !touches_.empty() && now - touches_.back().answered_at < timeout_ / 24) return;
    touches_.push_back({sent_at, now});
    while (touches_.size() > 1 && now - touches_.front().sent_at > timeout_) touches_.pop_front();
}

/// The latest time at which the leader has certainly been touched on our behalf before it processed that write.
Instant LeaseClock::touched_by(Instant write_sent_at) const noexcept {
    Instant latest = connected_since_;
    for (const Touch& touch : touches_) {
        if (touch.answered_at + touch_delay() < write_sent_at) latest = std::max(latest, touch.sent_at);
    }
    return latest;
}

bool LeaseClock::commit(Instant sent_at, Instant now) {
    const bool lapsed = until_ != Instant::min() && passed(now);
    const bool sent_before_change = sent_at < timeout_since_ && earlier_timeout_ > Nanoseconds::zero();
    const Nanoseconds timeout = sent_before_change ? std::min(timeout_, earlier_timeout_) : timeout_;
    const Instant touched = touched_by(sent_at);
    last_sent_ = std::max(last_sent_, sent_at);
    if (touched == Instant::min()) return lapsed;
    // One per cent of the timeout for clocks that run at different rates.
    const Nanoseconds proven = timeout * 2 / 3;
    const Nanoseconds heard = timeout * 99 / 100;
    const Instant by_touch = touched + heard;
    const Instant until = std::min(sent_at + proven, by_touch);
    until_ = std::max(until_, until);
    return lapsed;
}

void LeaseClock::learned(std::chrono::milliseconds tick) {
    if (tick <= learned_tick_) return;
    learned_tick_ = tick;
    if (last_sent_ == Instant::min()) return;
    // The touch on which the lease was built may not have reached the leader before that write.
    until_ = std::min(until_, touched_by(last_sent_) + timeout_ * 99 / 100);
}

void LeaseClock::reset() {
    last_sent_ = until_ = timeout_since_ = connected_since_ = Instant::min();
    timeout_ = earlier_timeout_ = Nanoseconds::zero();
    touches_.clear();
}

bool LeaseClock::fresh(Instant now) const noexcept {
    return until_ != Instant::min() && now < until_ && until_ - now >= timeout_ / 3;
}

Nanoseconds LeaseClock::interval() const noexcept {
    const Nanoseconds usual = timeout_ < 3 * tick() ? timeout_ / 12 : timeout_ / 6;
    return std::max(usual, Nanoseconds(std::chrono::milliseconds(1)));
}

}  // namespace zkrecipes::internal
