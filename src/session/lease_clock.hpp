#pragma once

#include <chrono>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Until when the session is surely ours, by our own clock alone. Pure.
///
/// Sure until the send time of the last committed write plus two thirds of the negotiated timeout. Only a write that
/// went through the quorum proves anything: a follower that has lost its leader still answers reads and pings for
/// seconds while the leader expires the session. The third that is left out covers that the follower tells the leader
/// of us only every half tick. (docs/guarantees.md)
class LeaseClock {
public:
    explicit LeaseClock(std::chrono::milliseconds server_tick) : tick_(server_tick) {}

    /// The timeout as negotiated by a connect at `now`. A smaller one shortens the lease at once; a larger one counts
    /// only for writes sent after it was agreed.
    void set_timeout(std::chrono::milliseconds timeout, Instant now);
    /// A write sent at `sent_at` was committed. True: the lease had passed before, and so every hold must be marked
    /// lost *before* the new end is shown to anybody.
    [[nodiscard]] bool commit(Instant sent_at, Instant now);
    /// The session is over.
    void reset();

    Instant sure_until() const noexcept { return until_; }  // Instant::min(): not at all
    bool passed(Instant now) const noexcept { return now >= until_; }
    /// Enough is left (T/3) that a hold may begin on it without a further round trip.
    bool fresh(Instant now) const noexcept;
    Instant last_commit() const noexcept { return last_sent_; }
    /// Time between heartbeats while something is held.
    Nanoseconds interval() const noexcept;
    /// How long a committed write keeps the session ours.
    Nanoseconds length() const noexcept { return length_of(timeout_); }

private:
    Nanoseconds length_of(Nanoseconds timeout) const noexcept;

    const Nanoseconds tick_;
    Nanoseconds timeout_{0};
    Nanoseconds earlier_timeout_{0};  // before timeout_since_
    Instant timeout_since_ = Instant::min();
    Instant last_sent_ = Instant::min();
    Instant until_ = Instant::min();
};

}  // namespace zkrecipes::internal
