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
#include "zklock/system/boot_clock.hpp"
#include "zklock/system/signals.hpp"

namespace zkrecipes::zklock {

/// Not connected yet. Throws Failure with the option that is refused, or the place where it stands.
Session open_session(const Options& options, Console& console);

/// The session, the wait for the lock, and the lock: what `run` and `hold` have in common. Main thread only.
class LockSession {
public:
    LockSession(const Options& options, Console& console, EventLog& events, Signals& signals);
    ~LockSession();  ///< gives everything back
    LockSession(const LockSession&) = delete;
    LockSession& operator=(const LockSession&) = delete;

    /// Connects and waits for the lock. Throws Failure or Interrupted; then nothing of ours is left in the queue, or is
    /// being removed.
    void acquire();

    const Grant& grant() const noexcept { return grant_; }
    FencingToken token() const noexcept { return token_; }  ///< also after release()
    /// In the order of Options::locks; also after release().
    const std::vector<std::string>& nodes() const noexcept { return nodes_; }
    /// Until when the lock is surely ours; never later than the truth. Already passed: not ours.
    Instant sure_until() const noexcept;
    /// Asks the servers now whether our nodes are there, and posts the answer; does not block. The lease goes on as it
    /// does: this is for whoever cannot wait for the next check of the library.
    void ask_now();
    /// What Ctrl-Z means for the lock.
    void warn_of_stop(const std::string& who);
    EventQueue& event_queue() noexcept { return *event_queue_; }
    SessionInfo info() const { return session_->info(); }
    Instant acquired_at() const noexcept { return acquired_at_; }
    Nanoseconds waited() const noexcept { return acquired_at_ - started_at_; }
    /// Call at least every twelfth of the session timeout while the lock is held: a much longer pause between two calls
    /// means that zklock did not run.
    void look() noexcept;
    /// Why no server has confirmed the lock in time, in words.
    std::string unconfirmed_reason() const;
    /// In words, after the hold was lost.
    std::string loss_reason() const;

    /// Gives the lock back and waits a moment for the servers' word. Says so when it does not come.
    void release();
    /// Whether it came.
    bool release_confirmed() const noexcept { return release_confirmed_; }

private:
    EventQueue::Batch await(std::optional<Instant> until);
    void connect();
    void wait_for_grant();
    void check_negotiated() const;
    std::string holder_in_words();
    [[noreturn]] void explain(const Error& error);
    QueueView look_at_queues();
    [[noreturn]] void give_up(bool connected);
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
    SessionState state_ = SessionState::connecting;
    std::uint64_t incarnation_ = 0;  // of the session in which we wait or hold
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
    std::int64_t grant_session_ = 0;
    Nanoseconds timeout_{0};      // of the session, as it was when we got the lock
    Instant looked_at_{};         // by look()
    Nanoseconds pause_{0};        // for which zklock did not run; 0: the lock was confirmed since
    Instant sure_after_pause_{};  // sure_until() then
    bool release_confirmed_ = false;
    QueueView shown_;
    std::atomic<bool> asks_{false};
    std::jthread asking_;  // the last member, so that it ends before what it uses
};

}  // namespace zkrecipes::zklock
