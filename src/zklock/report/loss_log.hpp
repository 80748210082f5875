#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <zkrecipes/session_events.hpp>

namespace zkrecipes::zklock {

/// The losses that a session reports, on a thread of its own. All functions may be called anywhere.
class LossLog final : public SessionEvents {
public:
    void on_lost(const EventSubject& subject, FencingToken token, LossReason reason,
                 std::chrono::nanoseconds held_for) override;

    /// `origin_of_tick`: as in in_words().
    explicit LossLog(std::string origin_of_tick) : origin_of_tick_(std::move(origin_of_tick)) {}
    void on_error(const std::string& text) override;

    /// The cause why no server confirms the lock; empty: the session has told none.
    std::string cause() const;
    /// Why a lock node that is no longer needed was not deleted; empty: the session has told nothing.
    std::string not_deleted() const;
    /// The reason why the hold with this token was lost, if the session has told it. The session tells it before it
    /// requests a stop by Grant::lost().
    std::optional<LossReason> reason_of(FencingToken token) const;

private:
    const std::string origin_of_tick_;
    mutable std::mutex mutex_;  // guards what follows
    FencingToken token_ = 0;    // of the last loss
    LossReason reason_{};
    std::string cause_;
    std::string not_deleted_;
};

}  // namespace zkrecipes::zklock
