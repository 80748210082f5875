#pragma once

#include <spdlog/spdlog.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/process.hpp"
#include "base/wait_event.hpp"
#include "session/common/backoff.hpp"
#include "session/common/budget.hpp"
#include "session/common/internal_thread.hpp"
#include "session/common/state_notifier.hpp"
#include "session/connection/session_fsm.hpp"
#include "session/connection/stalled_reply_probe.hpp"
#include "session/lease/hold_table.hpp"
#include "session/lease/lease_clock.hpp"
#include "session/observer_list.hpp"
#include "session/requests/node_cleaner.hpp"
#include "session/requests/watch_table.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {

/// What a SessionCore consists of: the driver of the pure parts.
///
/// It lives as long as the core, and until the last handle is closed. The core is what the recipes keep alive; the
/// handle's events, its answers and the lanes' work keep this one alive, so that no cycle holds a session open.
///
/// Files: session_life.cpp (state, handles, probing), session_close.cpp, session_failure.cpp (a step that throws),
/// session_lock.cpp (timers),
/// session_requests.cpp (requests, watches, directories), session_lease.cpp (lease, holds, heartbeat),
/// session_verify.cpp (checks that end with a fresh lease). Everything but the *anywhere* part runs under the session
/// lock.
class SessionImpl final : public std::enable_shared_from_this<SessionImpl>,
                          private WatchTable::Port,
                          private NodeCleaner::Port {
public:
    SessionImpl(SessionOptions options, std::vector<std::string> hosts, std::string prefix,
                SessionCore::Environment environment);

    // ---- anywhere ----------------------------------------------------------------------------------------------
    /// An Error that `work` throws is meant for the caller. Whatever else is thrown under the session lock may have
    /// left something half done: the session is closed with it (fail_stop), and the caller is told.
    template <class Work>
    void inside(Work&& work);
    /// inside(), called by our own threads: nothing may be thrown into them, and any exception closes the session.
    template <class Work>
    void internally(Work&& work) noexcept;
    bool is_inside() const noexcept { return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }
    /// False for user code that runs under a session lock: a retry policy, of whichever session; a log sink.
    bool may_lock() const noexcept { return !is_inside() && !PolicyCall::here(); }
    void run_locked_or_post(std::function<void()> work) noexcept;
    /// Runs `work` under the session lock soon, on the protocol lane.
    void post_inside(std::function<void()> work);
    void notify(std::function<void()> callback);
    SessionState state() const noexcept { return state_.load(std::memory_order_acquire); }
    SessionInfo info() const;
    bool wait_connected(Deadline deadline, std::stop_token stop);
    Subscription watch_state(std::function<void(SessionState)> listener);
    void close() noexcept;
    void core_is_gone() noexcept;

    // ---- life --------------------------------------------------------------------------------------------------
    void start();
    void apply(const SessionActions& actions);
    const Error* closed_because() const { return closed_because_ ? &*closed_because_ : nullptr; }
    bool connected() const { return fsm_.usable() && client_ != nullptr; }

    // ---- timers ------------------------------------------------------------------------------------------------
    TimerId at(Instant when, std::function<void()> work);
    bool cancel(TimerId timer);

    // ---- requests ----------------------------------------------------------------------------------------------
    template <class... Values>
    using Done = SessionCore::Done<Values...>;
    void create(const std::string& path, const std::string& data, const std::vector<Acl>& acl, CreateMode mode,
                Done<std::string, const NodeStat&> done);
    void remove(const std::string& path, std::int32_t version, Done<> done);
    void exists(const std::string& path, Done<const NodeStat&> done, bool watch = false);
    void get(const std::string& path, bool watch, Done<std::string, const NodeStat&> done);
    void set(const std::string& path, const std::string& data, std::int32_t version, Done<const NodeStat&> done);
    void children(const std::string& path, bool watch, Done<std::vector<std::string>, const NodeStat&> done);
    void multi(std::vector<MultiOp> ops, Done<std::vector<MultiResult>> done);
    void sync(const std::string& path, Done<> done);
    void heartbeat(const std::vector<std::string>& nodes, Done<std::vector<MultiResult>> done);
    void remove_watches(const std::string& path, Done<> done);
    void make_directory(const std::string& path, const std::vector<Acl>& acl, Done<> done, CreateMode mode);

    // ---- lease and holds ---------------------------------------------------------------------------------------
    void lease_committed(Instant sent_at);
    void renew_lease(std::vector<std::string> nodes, Done<> done);
    std::shared_ptr<Hold> begin_hold(std::vector<std::string> nodes, std::int64_t czxid);
    void end_hold(const std::shared_ptr<Hold>& hold, std::function<void(bool)> gone);
    void lose_when_suspended(const Hold& hold);
    void watch_revocation(const HoldTable::HoldPtr& hold);
    void delete_node(std::string node, std::function<void(bool)> done);
    void delete_nodes(std::vector<std::string> nodes, std::function<void(bool)> done);
    void delete_if_owned(std::string node, std::function<void(bool)> done);
    void delete_by_identity(std::string directory, std::string name_prefix, std::function<void(bool)> done);

    // Used by SessionCore as they are.
    const ProcessMark process_;
    const SessionOptions options_;
    const std::string prefix_;  // chroot and namespace, before every path; empty or "/…"
    const std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<spdlog::logger> logger_;
    ObserverList observers_;
    WatchTable watches_;
    NodeCleaner node_cleaner_;
    Budget ephemerals_;
    SessionFsm fsm_;
    std::vector<std::function<void()>> deferred_;

private:
    class Link;
    struct ConnectWaiter;
    /// This thread is under the session lock.
    class Owner {
    public:
        explicit Owner(std::atomic<std::thread::id>& owner) noexcept : owner_(owner) {
            owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
        }
        ~Owner() { owner_.store(std::thread::id(), std::memory_order_relaxed); }
        Owner(const Owner&) = delete;
        Owner& operator=(const Owner&) = delete;

    private:
        std::atomic<std::thread::id>& owner_;
    };
    struct UserTimer {
        TimerId runtime_timer = 0;
        std::function<void()> work;
    };

    // WatchTable::Port
    void send_get_watch(const std::string& path, std::uint64_t ticket) override;
    void send_children_watch(const std::string& path, std::uint64_t ticket) override;
    void send_exists_watch(const std::string& path, std::uint64_t ticket) override;
    void send_remove_watches(const std::string& path, std::uint64_t ticket) override;
    bool can_send() const override { return connected(); }
    // NodeCleaner::Port
    void cleaner_remove(const std::string& path, NodeCleaner::Ticket ticket) override;
    void cleaner_remove_all(const std::vector<std::string>& paths, NodeCleaner::Ticket ticket) override;
    void cleaner_sync(const std::string& path, NodeCleaner::Ticket ticket) override;
    void cleaner_children(const std::string& path, NodeCleaner::Ticket ticket) override;
    void cleaner_exists(const std::string& path, NodeCleaner::Ticket ticket) override;
    bool cleaner_can_send() const override { return connected(); }
    Instant cleaner_now() const override { return runtime_->now(); }
    std::uint64_t cleaner_random() override { return runtime_->random(); }
    void cleaner_refused(const std::string& path, const char* operation, Rc rc, std::uint64_t n) override;

    // session_life.cpp
    void open_handle(std::uint64_t handle);
    void open_next_handle(std::uint64_t handle);
    void close_handle(const std::string& why);
    void handle_closed();
    void on_state(SessionState state);
    void on_connected(bool same_session);
    void on_suspended();
    void on_session_over();
    void on_closed(Errc errc, const std::string& detail);
    void update_info();
    void wake_connect_waiters();
    void plan_probe();
    void start_probe();
    void on_probed(std::uint64_t round, const std::vector<std::string>& answering);
    void restore_servers();

    // session_close.cpp
    void begin_close();
    void continue_close();
    bool wait_closed(bool bounded);
    void stop_lanes(bool may_wait) noexcept;

    // session_failure.cpp
    void fail_stop(const std::exception_ptr& thrown) noexcept;
    void finish_failing() noexcept;

    // session_lock.cpp
    [[noreturn]] static void refuse_entry();
    template <class Work>
    void run(Work&& work, bool errors_are_told);
    void release(std::vector<std::function<void()>> after);
    void settle();
    void on_time();
    void arm(Instant when);

    // session_requests.cpp
    Rc on_answer(std::uint64_t handle, StalledReplyProbe::Ticket ticket, Instant sent_at, Rc rc, bool overtook = false);
    void send_nudge();
    Instant hold_ends_at() const;
    Instant touch_due_at() const;
    template <class Callback>
    auto answer_to(Callback done, Instant sent_at, bool overtakes = false);
    template <class... Values, class Callback>
    void not_sent(Callback done);

    // session_verify.cpp
    struct LeaseRenewal {
        std::vector<std::string> nodes;
        Done<> done;
    };
    using Verifications = std::vector<LeaseRenewal>;
    void send_verifications(Verifications asked);
    void on_one_refused(Verifications asked, Rc rc, const std::vector<MultiResult>& results, Instant sent_at);
    void await_fresh_lease(Verifications asked, Nanoseconds took);
    void verify_waiting();

    // session_lease.cpp
    static constexpr const char* kNoHeartbeat = "no committed heartbeat within the lease";
    void lose(const Hold* hold, const char* why);
    void lose_all(const char* why);
    void lose_those_seen_to_end();
    void report_lost(const std::vector<HoldTable::Entry>& lost, const char* why);
    void tell_of_losses();
    void start_heartbeat(Instant now);
    void watch_unwatched();
    void send_check(std::vector<HoldTable::HoldPtr> group);
    void on_checked(const std::vector<HoldTable::HoldPtr>& group, Rc rc, const std::vector<MultiResult>& results,
                    Instant sent_at);
    void plan_heartbeat();
    void watch_own_nodes(const HoldTable::HoldPtr& hold);
    void tell_of_revocation(const HoldTable::HoldPtr& hold);
    void watch_own_node(const HoldTable::HoldPtr& hold, std::size_t index);
    void new_lease_view();

    const std::vector<std::string> hosts_;
    const std::shared_ptr<ClientFactory> clients_;
    const std::shared_ptr<ServerProbe> probe_;

    std::mutex mutex_;                      // guards everything that is not const or atomic
    std::atomic<std::thread::id> owner_{};  // the thread that is inside

    std::atomic<SessionState> state_{SessionState::connecting};
    StateNotifier notifier_;
    mutable std::mutex info_mutex_;  // guards info_
    SessionInfo info_;

    std::shared_ptr<Client> client_;
    std::optional<Error> closed_because_;  // set once
    std::string closed_detail_;
    std::vector<std::shared_ptr<ConnectWaiter>> connect_waiters_;
    bool closing_ = false;
    bool last_handle_closing_ = false;
    bool closed_ = false;  // the last handle is gone
    bool core_gone_ = false;
    Instant drain_until_ = Instant::max();
    std::vector<std::shared_ptr<WaitEvent>> close_waiters_;
    std::optional<Error> failure_;  // why a session closes that fails; made beforehand, as memory may be short then
    bool failed_ = false;
    bool failure_unfinished_ = false;
    Instant may_act_until_ = Instant::min();  // when it failed: the end of the lease that holders may have read

    std::unordered_map<TimerId, UserTimer> timers_;
    TimerId last_timer_ = 0;
    TimerId housekeeping_ = 0;
    Instant housekeeping_at_ = Instant::max();

    StalledReplyProbe stalled_reply_probe_;
    // Surely before the connect request of the present connection went out: when the handle was opened, or when the
    // last request was sent that an earlier connection answered. (The client's word "connecting" may reach us late.)
    Instant before_connect_ = Instant::min();
    Instant last_request_ = Instant::min();
    LeaseClock lease_;
    std::shared_ptr<LeaseView> lease_view_;
    HoldTable holds_;
    std::vector<HoldTable::HoldPtr> untold_;  // lost, and their owners are not told yet
    Instant heartbeat_at_ = Instant::max();
    std::uint64_t heartbeat_round_ = 0;
    int checks_open_ = 0;
    std::uint64_t check_refusals_ = 0;
    Verifications waiting_for_lease_;  // their nodes were there; a second check is planned
    bool second_check_planned_ = false;
    Nanoseconds slowest_verification_{0};  // of those who wait
    std::uint64_t slow_verifications_ = 0;

    Instant probe_at_ = Instant::max();
    ExponentialBackoff probe_pace_;
    std::uint64_t probe_round_ = 0;
    bool probing_ = false;
    std::vector<std::string> narrowed_to_;      // empty: the client has the full list
    int narrowed_rounds_ = 0;                   // probes since then that said the same
    std::set<std::vector<std::string>> tried_;  // what it was narrowed to since it was last connected
    std::uint64_t outage_failures_ = 0;
    std::uint64_t open_failures_ = 0;
    std::uint64_t replaced_handles_ = 0;  // since the last connect
};

template <class Work>
void SessionImpl::run(Work&& work, bool errors_are_told) {
    if (!may_lock()) refuse_entry();
    std::vector<std::function<void()>> after;
    std::exception_ptr thrown;
    {
        const std::lock_guard lock(mutex_);
        const Owner owner(owner_);
        const auto attempt = [&](auto&& step, bool may_refuse) {
            try {
                return step();
            } catch (const Error&) {
                if (!thrown) thrown = std::current_exception();
                if (may_refuse) return;
            } catch (...) {
                if (!thrown) thrown = std::current_exception();
            }
            fail_stop(thrown);
        };
        attempt(work, errors_are_told);
        attempt([this] { settle(); }, false);
        after.swap(deferred_);
    }
    release(std::move(after));
    if (thrown) std::rethrow_exception(thrown);
}

template <class Work>
void SessionImpl::inside(Work&& work) {
    run(std::forward<Work>(work), true);
}

template <class Work>
void SessionImpl::internally(Work&& work) noexcept {
    const InternalThread mark;
    try {
        run(std::forward<Work>(work), false);
    } catch (...) {
        // The session was closed because of it, and everybody was told.
    }
}

}  // namespace zkrecipes::internal
