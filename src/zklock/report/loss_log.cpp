#include "zklock/report/loss_log.hpp"

#include "zklock/report/explain.hpp"

namespace zkrecipes::zklock {

void LossLog::on_lost(const EventSubject& /*subject*/, FencingToken token, LossReason reason,
                      std::chrono::nanoseconds /*held_for*/) {
    const std::lock_guard lock(mutex_);
    token_ = token;
    reason_ = reason;
}

void LossLog::on_error(const std::string& text) {
    std::string cause = why_unconfirmed(text, origin_of_tick_);
    const std::size_t not_deleted = text.find("cannot clean up ");
    const std::lock_guard lock(mutex_);
    if (!cause.empty()) cause_ = std::move(cause);
    if (not_deleted != std::string::npos) {
        not_deleted_ = text.substr(not_deleted, text.find(" (", not_deleted) - not_deleted);
    }
}

std::string LossLog::not_deleted() const {
    const std::lock_guard lock(mutex_);
    return not_deleted_;
}

std::string LossLog::cause() const {
    const std::lock_guard lock(mutex_);
    return cause_;
}

std::optional<LossReason> LossLog::reason_of(FencingToken token) const {
    const std::lock_guard lock(mutex_);
    if (token_ != token) return std::nullopt;
    return reason_;
}

}  // namespace zkrecipes::zklock
