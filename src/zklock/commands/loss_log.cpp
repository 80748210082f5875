#include "zklock/commands/loss_log.hpp"

namespace zkrecipes::zklock {

void LossLog::on_lost(const EventSubject& /*subject*/, FencingToken token, LossReason reason,
                      std::chrono::nanoseconds /*held_for*/) {
    const std::lock_guard lock(mutex_);
    token_ = token;
    reason_ = reason;
}

std::optional<LossReason> LossLog::reason_of(FencingToken token) const {
    const std::lock_guard lock(mutex_);
    if (token_ != token) return std::nullopt;
    return reason_;
}

}  // namespace zkrecipes::zklock
