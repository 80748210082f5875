#include "session/lease_clock.hpp"

#include <algorithm>

#include "base/mutation.hpp"

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

void LeaseClock::answered(Instant sent_at, Instant now) {
    if (timeout_ == Nanoseconds::zero()) return;
    // Leaving out a touch only makes the lease shorter. One that was sent earlier than the last one proves less: a
    // heartbeat overtakes what waits to be sent. Of those close to each other one in each T/24 is enough.
    if (!touches_.empty()) {
        const Touch& last = touches_.back();
        if (sent_at <= last.sent_at) return;
        if (now - last.answered_at < timeout_ / 24 && sent_at - last.sent_at < timeout_ / 24) return;
    }
    touches_.push_back({sent_at, now});
    while (touches_.size() > 1 && now - touches_.front().sent_at > timeout_) touches_.pop_front();
}

/// The latest time at which the leader has surely been touched on our behalf before it processed that write.
Instant LeaseClock::touched_by(Instant write_sent_at) const noexcept {
    for (auto touch = touches_.rbegin(); touch != touches_.rend(); ++touch) {
        if (touch->answered_at + touch_delay() < write_sent_at) return std::max(touch->sent_at, connected_since_);
    }
    return connected_since_;
}

bool LeaseClock::commit(Instant sent_at, Instant now) {
    const bool lapsed = until_ != Instant::min() && passed(now);
    const bool sent_before_change = sent_at < timeout_since_ && earlier_timeout_ > Nanoseconds::zero();
    const Nanoseconds timeout = sent_before_change ? std::min(timeout_, earlier_timeout_) : timeout_;
    const Instant touched = touched_by(sent_at);
    last_sent_ = std::max(last_sent_, sent_at);
    if (touched == Instant::min()) return lapsed;
    // One per cent of the timeout for clocks that run at different rates.
    const Nanoseconds proven = ZKRECIPES_MUTATION("lease-full-timeout") ? timeout : timeout * 2 / 3;
    const Nanoseconds heard = ZKRECIPES_MUTATION("clock-margin-left-out") ? timeout : timeout * 99 / 100;
    const Instant by_touch = ZKRECIPES_MUTATION("touch-ignored") ? Instant::max() : touched + heard;
    const Instant until = std::min(sent_at + proven, by_touch);
    until_ = std::max(until_, until);
    return lapsed;
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
