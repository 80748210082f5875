#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Decides when to send one more harmless read because an answer is late. Pure.
///
/// Servers before 3.8.1 lose a wake-up now and then (ZOOKEEPER-4537) and leave a lone request unanswered until the
/// connection times out; any further request wakes them. A server that is really stuck is not flooded: after ten in a
/// row, one a second.
class StalledReplyProbe {
public:
    static constexpr Nanoseconds kLate = std::chrono::milliseconds(100);
    static constexpr Nanoseconds kRarely = std::chrono::seconds(1);
    static constexpr int kOftenAtMost = 10;

    using Ticket = std::uint64_t;

    Ticket sent(Instant now);
    void answered(Ticket ticket);
    /// The connection or the handle is gone: nothing is waited for any more.
    void forget();

    bool idle() const noexcept { return waiting_.empty(); }
    /// When to look again; Instant::max(): not before the next request.
    Instant look_at() const noexcept;
    /// At or after look_at(): true when one more read must be sent now.
    bool due(Instant now);

private:
    struct Entry {
        Instant sent;
        bool answered = false;
    };
    std::deque<Entry> waiting_;  // in the order of sending, which is that of the answers
    Ticket first_ = 1;           // of waiting_.front()
    Instant not_before_ = Instant::min();
    int in_a_row_ = 0;
};

}  // namespace zkrecipes::internal
