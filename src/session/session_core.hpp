#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "session/common/given_up.hpp"
#include "session/common/session_lock.hpp"
#include "session/common/session_observer.hpp"
#include "session/common/state_notifier.hpp"
#include "session/connection/connection.hpp"
#include "session/connection/server_search.hpp"
#include "session/connection/settings_check.hpp"
#include "session/lease/lease_keeper.hpp"
#include "session/lease/lease_renewal.hpp"
#include "session/options_check.hpp"
#include "session/requests/node_deletion.hpp"
#include "session/requests/requests.hpp"
#include "session/requests/watches.hpp"
#include "session/stats/session_meter.hpp"

namespace zkrecipes::internal {

class WaitEvent;

/// What a session is closed with when one of its own steps has thrown.
inline constexpr Errc kStepFailed = Errc::out_of_resources;

/// The session as the recipes see it: a lock, requests, a lease, and the guarantee that what was begun is cleaned up.
/// Each of these is a part with a header of its own; what is public there may be called here. This class opens and
/// closes the session and decides in which order its parts are told what happens.
///
/// Everything marked *lock held* may be called only within run_locked(), from any thread. All paths are server paths;
/// server_path() makes them from what users write.
///
/// The recipes keep the session open by the pointer that open() returns. When the last of them is gone the session is
/// closed. The object itself lives on until the last handle is closed: the handle's events, its answers and the lanes'
/// work keep it by SessionLock::self(), so that no cycle holds a session open.
///
/// Files: session_core.cpp (opening, what callers ask), session_events.cpp (what the connection and time say),
/// session_close.cpp, session_failure.cpp (a step that throws).
class SessionCore final : public std::enable_shared_from_this<SessionCore>,
                          private Connection::Port,
                          private Requests::Port,
                          public SessionLock,
                          public SessionMeter,
                          public Connection,
                          public Requests,
                          public Watches,
                          public NodeDeletion,
                          public LeaseKeeper,
                          public LeaseRenewal {
public:
    struct Environment {
        std::shared_ptr<Runtime> runtime;
        std::shared_ptr<ClientFactory> clients;
        std::shared_ptr<ServerProbe> probe;         // null: none
        std::shared_ptr<SettingsProbe> settings{};  // null: none
        std::size_t lists_at_once = 8;              // Requests::list
    };
    static Environment real_environment();
    /// The threads of a session. Throws Error out_of_resources.
    static std::shared_ptr<Runtime> make_runtime();
    /// Validates, then opens the first handle. Throws Error.
    static std::shared_ptr<SessionCore> open(SessionOptions options, Environment environment);

    // ---- anywhere --------------------------------------------------------------------------------------------------
    /// Checks the path and puts the namespace before it. Throws Error bad_path naming `operation`.
    std::string server_path(const std::string& path, const char* operation) const;
    std::string user_path(const std::string& server_path) const;
    bool wait_connected(Deadline deadline, std::stop_token stop);
    Subscription watch_state(std::function<void(SessionState)> listener);
    std::vector<HoldInfo> holds();
    void close() noexcept;

    // ---- lock held -------------------------------------------------------------------------------------------------
    void add_observer(SessionObserver& observer);     // not any more when the session is closed
    void add_waiter(SessionObserver& waiter);         // always: a failure may come while it is being closed
    void remove_observer(SessionObserver& observer);  // also from within a callback
    /// A call is over while its nodes may still be made; it is known whether they were.
    void call_left_open() { ++calls_left_open_; }
    void left_call_ended() { --calls_left_open_; }
    /// A call that would make a node for a place in a queue waits for SessionObserver::on_room() instead.
    bool many_given_up() { return given_up_.many(given_up_now()); }
    /// For the recipes: what all of this session share by a name, for as long as somebody has it. Null: nobody has it.
    std::shared_ptr<void> shared(const std::string& name) const;
    void share(const std::string& name, std::weak_ptr<void> object);  // an empty one: forgets the name
    /// What an error says: `detail`, and for no_permission which right is missing on which node, and as whom the
    /// session is authenticated. The node has its path on the servers: somebody is to change its access list. While the
    /// answer is given that makes the call fail.
    std::string explained(Errc error, std::string detail) const;
    /// For tests: what calls that have returned have left in the session. Empty: nothing.
    std::string leftovers();

private:
    struct LastPointer;
    struct ConnectWaiter;

    SessionCore(SessionOptions options, CheckedOptions checked, Environment environment,
                std::shared_ptr<EventQueue> events, std::shared_ptr<spdlog::logger> logger);

    // SessionLock
    void settle() override;
    void on_time() override;
    void fail_stop(const std::exception_ptr& thrown) noexcept override;
    // Connection::Port
    void on_status(const SessionActions& actions) override;
    void on_auth(const SessionActions& actions) override { apply(actions); }
    void on_watch(WatchEventType type, const std::string& path) override { watch_table().on_event(type, path); }
    void on_last_handle_closed() override;
    // Requests::Port
    void on_touch(Instant sent_at, Instant now, bool overtook) override {
        LeaseKeeper::on_touch(sent_at, now, overtook);
    }
    bool on_credentials_demanded(std::uint64_t handle) override;

    std::size_t given_up_now() { return calls_left_open_ + node_cleaner().given_up(); }

    // session_events.cpp
    void apply(const SessionActions& actions);
    void open_handle(std::uint64_t handle);
    void open_next_handle(std::uint64_t handle);
    void close_handle(const std::string& why);
    void on_state(SessionState state);
    void on_connected(bool same_session);
    void tell_of_unattainable_leases();
    void on_suspended();
    void tell_of_short_connections();
    void on_session_over();
    void on_closed(Errc errc, const std::string& detail);
    void wake_connect_waiters();
    void show_numbers();

    // session_close.cpp
    void core_is_gone() noexcept;
    void begin_close();
    void continue_close();
    void wait_closed(bool bounded);
    void stop_lanes(bool may_wait) noexcept;

    // session_failure.cpp
    void finish_failing() noexcept;

    const std::string prefix_;  // chroot and namespace, before every path; empty or "/…"
    ServerSearch search_;
    SettingsCheck settings_;
    StateNotifier notifier_;
    ObserverList observers_;
    std::size_t calls_left_open_ = 0;
    GivenUp given_up_;
    std::vector<std::shared_ptr<ConnectWaiter>> connect_waiters_;
    std::unordered_map<std::string, std::weak_ptr<void>> shared_;
    std::uint64_t open_failures_ = 0;
    Instant connected_at_ = Instant::min();
    std::uint64_t short_connections_ = 0;  // in a row
    std::uint64_t demands_ = 0;            // of credentials, while something was held

    std::string closed_detail_;
    bool closed_ = false;  // the last handle is gone
    bool core_gone_ = false;
    Instant drain_until_ = Instant::max();
    std::vector<std::shared_ptr<WaitEvent>> close_waiters_;

    std::optional<Error> failure_;  // why a session closes that fails; made beforehand, as memory may be short then
    bool failed_ = false;
    bool failure_unfinished_ = false;
    Instant may_act_until_ = Instant::min();  // when it failed: the end of the lease that holders may have read
};

/// Throws Error closed for an object that was moved from (without a core), or belongs to the parent process. `object`:
/// its class.
void check_usable(const SessionCore* core, const char* object, const char* operation,
                  const std::string& user_path = {});

/// The way from the public Session to its core, for the recipes and for the simulation.
struct SessionAccess {
    /// Throws Error closed for a Session object that was moved from, or belongs to the parent process.
    static const std::shared_ptr<SessionCore>& core(const Session& session) {
        check_usable(session.core_.get(), "Session", "session");
        return session.core_;
    }
    static const void* id(const Session& session) noexcept { return session.core_.get(); }
    static Session make(std::shared_ptr<SessionCore> core) { return Session(std::move(core)); }
};

}  // namespace zkrecipes::internal
