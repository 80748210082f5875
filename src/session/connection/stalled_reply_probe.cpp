#include "session/connection/stalled_reply_probe.hpp"

#include <algorithm>

namespace zkrecipes::internal {

StalledReplyProbe::Ticket StalledReplyProbe::sent(Instant now) {
    waiting_.push_back({now});
    return first_ + waiting_.size() - 1;
}

void StalledReplyProbe::answered(Ticket ticket) {
    if (ticket < first_ || ticket - first_ >= waiting_.size()) return;
    waiting_[ticket - first_].answered = true;
    while (!waiting_.empty() && waiting_.front().answered) {
        waiting_.pop_front();
        ++first_;
        in_a_row_ = 0;  // answers move again
    }
}

void StalledReplyProbe::forget() {
    first_ += waiting_.size();
    waiting_.clear();
    in_a_row_ = 0;
    not_before_ = Instant::min();
}

Instant StalledReplyProbe::look_at() const noexcept {
    if (waiting_.empty()) return Instant::max();
    return std::max(waiting_.front().sent + kLate, not_before_);
}

bool StalledReplyProbe::due(Instant now) {
    if (waiting_.empty() || now < look_at()) return false;
    not_before_ = now + (++in_a_row_ < kOftenAtMost ? kLate : kRarely);
    return true;
}

}  // namespace zkrecipes::internal
