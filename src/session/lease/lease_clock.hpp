#pragma once

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Until when the session is guaranteed, by our own clock only. Pure.
///
/// Two things bound it. (1) The send time of the last *committed* write plus two thirds of the negotiated timeout: only
/// a write that went through the quorum proves that the session lived; a follower that has lost its leader still
/// answers reads and pings for seconds. (2) The send time of a request whose *touch* has certainly reached the leader,
/// plus the whole timeout: a write that a follower forwards does not touch the session on the leader; only the
/// follower's answer to the leader's ping does, every half tick. A client that had been silent, or stopped, before its
/// write is closer to expiry than (1) knows. So: not beyond T after a request that was answered at least half a tick
/// and T/12 (jitter) before the write was sent; a ping has carried its touch before the write, since the follower's
/// link is first in, first out. Checked as formal/lease.pml; argued in docs/design/lease.md.
class LeaseClock {
public:
    /// `server_tick`: zero when not known; then half of the timeout, the most that the servers' defaults allow. Twice
    /// the tickTime where touches may take two hops to the leader (an observer of an observer master).
    explicit LeaseClock(std::chrono::milliseconds server_tick) : configured_tick_(server_tick) {}

    /// A connection was made, by a connect request that went out at `since` or later: the connect touches the session
    /// on the leader itself. What was known of earlier connections is void: another follower carried it.
    void connected(std::chrono::milliseconds timeout, Instant since, Instant now);
    /// A server answered, on this connection, a request that was sent at `sent_at`. `overtook`: it is a heartbeat,
    /// which was sent in front of others, so the others' answers that come just before it count from much earlier.
    void answered(Instant sent_at, Instant now, bool overtook = false);
    /// A write sent at `sent_at` was committed. True: the lease had passed before, and so every hold must be marked
    /// lost *before* the new end is shown.
    [[nodiscard]] bool commit(Instant sent_at, Instant now);
    /// A server has a tick that is this long, or twice as long with two hops: from now on no smaller one is assumed,
    /// also if a smaller one is configured. The lease may end earlier now.
    void learned(std::chrono::milliseconds tick);
    /// The session is over.
    void reset();

    Instant ends_at() const noexcept { return until_; }  // Instant::min(): not at all
    bool passed(Instant now) const noexcept { return now >= until_; }
    /// Enough is left (T/3) that a hold may begin on it without a further round trip.
    bool fresh(Instant now) const noexcept;
    /// False: the timeout is too short for the servers' tick, and no lease can ever become fresh.
    bool attainable() const noexcept { return timeout_ * 99 / 100 - touch_delay() > timeout_ / 3; }
    Instant last_commit() const noexcept { return last_sent_; }
    /// Time between heartbeats while something is held.
    Nanoseconds interval() const noexcept;
    /// While nothing is held: a request at least this often, so that a create finds the session well touched. It takes
    /// the place of the client's own ping, which goes out every T/3.
    Nanoseconds idle_interval() const noexcept { return timeout_ / 4; }
    /// How long a write has to wait after an earlier request so that that one counts.
    Nanoseconds touch_delay() const noexcept { return tick() / 2 + timeout_ / 12; }
    /// A fresh lease takes two answers: one of a touch, and one of a write that is sent touch_delay() after that. Not
    /// slower than this each, or less than T/3 is left.
    Nanoseconds slowest_answer() const noexcept { return (timeout_ * 99 / 100 - timeout_ / 3 - touch_delay()) / 2; }
    Nanoseconds timeout() const noexcept { return timeout_; }
    /// The longest that the tick of the servers may be.
    Nanoseconds tick() const noexcept {
        const Nanoseconds stated = configured_tick_ > Nanoseconds::zero() ? configured_tick_ : timeout_ / 2;
        return std::max(stated, learned_tick_);
    }
    /// tick() is the configured one, and no server has told a longer one.
    bool tick_is_configured() const noexcept {
        return configured_tick_ > Nanoseconds::zero() && configured_tick_ >= learned_tick_;
    }
    /// How long a committed write keeps the session, at best.
    Nanoseconds length() const noexcept { return timeout_ * 2 / 3; }

private:
    struct Touch {
        Instant sent_at, answered_at;
    };
    Instant touched_by(Instant write_sent_at) const noexcept;

    const Nanoseconds configured_tick_;
    Nanoseconds learned_tick_{0};
    Nanoseconds timeout_{0};
    Nanoseconds earlier_timeout_{0};  // before timeout_since_
    Instant timeout_since_ = Instant::min();
    Instant connected_since_ = Instant::min();
    std::deque<Touch> touches_;  // of this connection, oldest first, T/24 apart or more
    Instant last_sent_ = Instant::min();
    Instant until_ = Instant::min();
};

}  // namespace zkrecipes::internal
