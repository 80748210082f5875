#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/session.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/commands/acquire_fn.hpp"
#include "zklock/commands/event_queue.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/loss_log.hpp"
#include "zklock/system/boot_clock.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// Opens a session that is not connected yet. Throws a Failure that names the refused option or its place.
Session open_session(const Options& options, Console& console, RetryPolicy retry = {},
                     std::shared_ptr<SessionEvents> events = {});
/// Why no server has accepted a session that is not connected: what the session knows, or what a connection to each
/// server shows.
std::string why_not_connected(const Session& session, const Options& options);
/// Why a call ended without an answer.
std::string why_no_answer_came(const Session& session, const Options& options);
/// As why_not_connected, for a session that was given this time to connect.
Failure not_connected_within(Nanoseconds limit, const Session& session, const Options& options);

/// The session and the lock, from the connection to the release: the common part of `run` and `hold`. Main thread only.
class LockSession {
public:
    LockSession(const Options& options, Console& console, EventLog& events, Signals& signals);
    ~LockSession();  ///< releases the lock and closes the session
    LockSession(const LockSession&) = delete;
    LockSession& operator=(const LockSession&) = delete;

    /// Connects and acquires the lock. If it throws Failure or Interrupted, its node has left the queue or is being
    /// removed.
    void acquire();

    const Grant& grant() const noexcept { return grant_; }
    Session& session() noexcept { return *session_; }
    FencingToken token() const noexcept { return token_; }  ///< also after release()
    /// In the order of Options::locks; also after release().
    const std::vector<std::string>& nodes() const noexcept { return nodes_; }
    /// The time until which the lock is guaranteed to be held. If it has passed, the lock is lost.
    Instant lease_until() noexcept;
    /// The last lease_until() before the loss. If it has not passed, the lease is not the reason of the loss.
    Instant lease_before_loss() const noexcept { return lease_seen_; }
    /// Asks the servers whether the nodes still exist, and posts the answer. Does not block, and does not extend the
    /// lease. For callers that cannot wait for the next check of the library.
    void ask_now();
    /// Warns how long the lock lasts after Ctrl-Z.
    void warn_of_stop(const std::string& who);
    EventQueue& event_queue() noexcept { return *event_queue_; }
    SessionInfo info() const { return session_->info(); }
    Instant acquired_at() const noexcept { return acquired_at_; }
    Nanoseconds waited() const noexcept { return acquired_at_ - started_at_; }
    /// Call this at least every twelfth of the session timeout while the lock is held. From a much longer pause between
    /// two calls it concludes that zklock did not run.
    void look() noexcept;
    /// Call instead after a longer pause in which zklock did run.
    void look_after_pause() noexcept { looked_at_ = BootClock::now(); }
    /// The reason that no server confirmed the lock in time.
    std::string unconfirmed_reason() const;
    /// The reason of a loss.
    std::string loss_reason();
    /// Whether that is the end of the lease.
    bool lease_has_ended() const { return why_lost() == LossReason::lease_ended; }

    /// Releases the lock and waits a moment for the confirmation of the servers. Warns if there is none.
    void release();
    /// Whether the servers confirmed the release.
    bool release_confirmed() const noexcept { return release_confirmed_; }
    /// Whether the session has ended: the process may end, too.
    bool closed() const { return session_->state() == SessionState::closed; }

private:
    EventQueue::Batch await(std::optional<Instant> until);
    void connect();
    void wait_for_grant();
    void check_negotiated() const;
    std::string holder_in_words();
    std::string not_acquired() const;
    std::string why_closed();
    LossReason why_lost() const { return loss_log_->reason_of(token_).value_or(LossReason::lease_ended); }
    [[noreturn]] void explain(const Error& error);
    QueueView look_at_queues();
    [[noreturn]] void give_up();
    void note_states(const EventQueue::Batch& batch);
    void watch_queue();
    void show_queue(const QueueView& view);
    void stop_watching();

    const Options& options_;
    Console& console_;
    EventLog& events_;
    Signals& signals_;
    const Instant started_at_ = BootClock::now();
    const std::shared_ptr<EventQueue> event_queue_ = std::make_shared<EventQueue>();
    const std::shared_ptr<LossLog> loss_log_;
    SessionState state_ = SessionState::connecting;
    std::optional<Session> session_;
    std::optional<Subscription> subscription_;
    AcquireFn acquire_fn_;
    std::stop_source stop_wait_;
    std::jthread queue_watch_;
    Grant grant_;
    std::optional<std::stop_callback<std::function<void()>>> on_lost_;
    FencingToken token_ = 0;
    std::vector<std::string> nodes_;
    Instant acquired_at_{};
    std::int64_t waits_in_ = 0;  // the session of the last connection before the lock was acquired
    std::int64_t grant_session_ = 0;
    Nanoseconds timeout_{0};       // of the session when the lock was acquired
    Instant lease_seen_{};         // the last lease_until() while the lock was held
    Instant looked_at_{};          // by look()
    Nanoseconds pause_{0};         // for which zklock did not run; 0: the lock was confirmed since
    Instant lease_after_pause_{};  // lease_until() then
    bool release_confirmed_ = false;
    QueueView shown_;
    std::atomic<bool> asks_{false};
    std::jthread asking_;  // the last member, so that it ends before what it uses
};

}  // namespace zkrecipes::zklock
