#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/session_events.hpp>
#include <zkrecipes/session_options.hpp>
#include <zkrecipes/session_stats.hpp>

#include "base/runtime.hpp"
#include "session/stats/counter.hpp"
#include "session/stats/event_queue.hpp"
#include "session/stats/lock_label.hpp"

namespace zkrecipes::internal {

/// One call of a user that waits for a lock, as others see it.
class WaitRecord {
public:
    WaitRecord() = default;
    WaitRecord(const WaitRecord&) = delete;
    WaitRecord& operator=(const WaitRecord&) = delete;

private:
    friend class SessionMeter;
    std::shared_ptr<const LockLabel> label_;  // null: it does not wait
    Instant since_{};
    std::uint64_t id_ = 0;
    std::atomic<std::int64_t> in_front_{-1};
    WaitRecord* previous_ = nullptr;
    WaitRecord* next_ = nullptr;
};

/// Counts what happens in a session, and tells SessionEvents of it. What nobody asks for costs nothing but counting.
///
/// All under the session lock, where nothing else is said. What is counted here decides nothing.
class SessionMeter {
public:
    SessionMeter(std::shared_ptr<Runtime> runtime, const SessionOptions& options, std::shared_ptr<EventQueue> events);
    SessionMeter(const SessionMeter&) = delete;
    SessionMeter& operator=(const SessionMeter&) = delete;

    // ---- anywhere --------------------------------------------------------------------------------------------------
    /// Calls SessionOptions::name_of_path, and throws what that throws.
    std::shared_ptr<const LockLabel> label(std::string recipe, std::string mode, std::string path) const;
    SessionStats stats() const;
    std::vector<WaitInfo> waits() const;
    /// A call that is destroyed before it has ended.
    void forget(WaitRecord& wait) noexcept;

    // ---- calls and their holds -------------------------------------------------------------------------------------
    void wait_begins(WaitRecord& wait, std::shared_ptr<const LockLabel> label);
    void in_front(WaitRecord& wait, std::size_t contenders);
    void granted(WaitRecord& wait, HoldRecord& hold, FencingToken token);
    void missed(WaitRecord& wait, Missed why);
    void failed(WaitRecord& wait, const Error& error);
    void released(HoldRecord& hold) noexcept;
    void lost(HoldRecord& hold, LossReason reason) noexcept;

    // ---- the session -----------------------------------------------------------------------------------------------
    void state_changed(SessionState state, const SessionInfo& info);
    void request(RequestKind kind) noexcept { requests_[static_cast<std::size_t>(kind)].add(); }
    void heartbeat_answered(Nanoseconds round_trip) noexcept {
        heartbeat_round_trip_ns.set(static_cast<std::uint64_t>(round_trip.count()));
    }
    Counter connects, suspensions, sessions, heartbeats_refused, stalled_replies;
    Counter node_bytes, watch_bytes, nodes_to_delete, connected_now, timeout_ms, heartbeat_round_trip_ns;
    std::atomic<std::int64_t> lease_ends_at{0};  // as LeaseView

    bool events_wanted() const noexcept { return events_ != nullptr; }
    Instant events_due_at() const noexcept { return events_ ? events_->flush_at() : Instant::max(); }
    void tell_events() {
        if (events_) events_->flush();
    }

private:
    template <class Tell>
    void tell(EventQueue::Kind kind, const std::shared_ptr<const LockLabel>& label, std::uint64_t id,
              Tell tell) noexcept;
    Nanoseconds wait_ends(WaitRecord& wait) noexcept;
    void unlink(WaitRecord& wait) noexcept;

    static constexpr std::size_t kMostNames = 128;
    using Key = std::tuple<std::string, std::string, std::string>;  // recipe, mode, name

    const std::shared_ptr<Runtime> runtime_;
    const std::function<std::string(const std::string&)> name_of_path_;
    const std::shared_ptr<EventQueue> events_;  // null: nobody listens
    mutable std::mutex names_mutex_;            // guards what follows
    mutable std::map<Key, std::shared_ptr<LockMeter>> meters_;
    mutable std::set<std::string> names_;
    mutable std::mutex waits_mutex_;  // guards the list, and all LockMeter::waiting
    WaitRecord* waits_ = nullptr;
    std::array<Counter, kRequestKinds> requests_;
    std::uint64_t last_id_ = 0;
};

}  // namespace zkrecipes::internal
