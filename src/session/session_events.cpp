// What the connection and time say, and in which order the parts of the session and its observers are told.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "session/common/backoff.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {
namespace {

constexpr Nanoseconds kFailAgain = std::chrono::milliseconds(100);
constexpr Nanoseconds kShortConnection = std::chrono::seconds(1);
constexpr std::uint64_t kManyShortConnections = 4;

}  // namespace

void SessionCore::on_status(const SessionActions& actions) {
    apply(actions);
    search_.plan();
}

void SessionCore::apply(const SessionActions& actions) {
    using Kind = SessionAction::Kind;
    if (actions.empty()) return;
    update_info();  // before any listener is told
    for (const auto& action : actions) {
        switch (action.kind) {
            case Kind::open_handle: open_next_handle(action.handle); break;
            case Kind::close_handle: close_handle(action.detail); break;
            case Kind::add_auth: add_auth(); break;
            case Kind::session_over: on_session_over(); break;
            case Kind::state_changed: on_state(action.state); break;
            case Kind::connected: on_connected(action.same_session); break;
            case Kind::suspended: on_suspended(); break;
            case Kind::link_up:
                watch_table().on_connected();
                node_cleaner().go_on();
                break;
            case Kind::closed: on_closed(action.errc, action.detail); break;
        }
    }
}

void SessionCore::open_next_handle(std::uint64_t handle) {
    try {
        open_handle(handle);
    } catch (const std::exception& error) {
        if (should_log(++open_failures_)) {
            log().error("session: cannot open a client handle ({} times): {}", open_failures_, error.what());
        }
        apply(fsm().on_open_failed(handle, runtime().now()));
        return;
    }
    open_failures_ = 0;
}

void SessionCore::open_handle(std::uint64_t handle) {
    search_.handle_opened();
    handle_opens();
    Connection::open_handle(handle);
    search_.plan();
}

void SessionCore::close_handle(const std::string& why) {
    expect_nothing();
    Connection::close_handle(why);
}

void SessionCore::on_state(SessionState state) {
    show(state);
    state_changed(state, events_wanted() ? info() : SessionInfo());
    notifier_.publish(state);
    if (state == SessionState::lost) {
        log().warn("session {:#x}: lost{}", printable_id(),
                   fsm().has_session() ? " by our own clock: no server has answered for the session timeout" : "");
        // By our own clock this is after the end of the lease, whose timer may still be on its way.
        lose_all(LossReason::lease_ended, "the session was lost");
    }
}

void SessionCore::on_connected(bool same_session) {
    const Instant now = runtime().now();
    Requests::on_connected(now);
    connects.add();
    connected_at_ = now;
    if (!same_session) sessions.add();
    came_up();
    LeaseKeeper::on_connected(before_connect(), now);
    search_.connected();
    log().info("session {:#x}: {} to {}, timeout {} ms", printable_id(), same_session ? "connected again" : "connected",
               fsm().server(), incarnation().timeout.count());
    settings_.connected();
    if (!same_session && !incarnation().by_zookeeper) {
        log().warn(
            "session {:#x}: the servers seem not to be ZooKeeper (the id and the password of the session are foreign). "
            "They are not supported: two clients may hold one lock. Use ZooKeeper, with server numbers from 1 to 255",
            printable_id());
    }
    if (!same_session) tell_of_unattainable_leases();
    catch_up();
    // First of all requests but that: little may be left of the lease, and what follows may be much.
    check_all(now);
    if (same_session) watch_table().on_connected();
    node_cleaner().go_on();
    watch_unwatched();
    wake_connect_waiters();
    observers_.each([&](SessionObserver& observer) { observer.on_connected(same_session); });
}

void SessionCore::tell_of_unattainable_leases() {
    if (lease_clock().attainable()) return;
    const auto tick = lease_clock().tick() / std::chrono::milliseconds(1);
    const bool configured = lease_clock().tick_is_configured();
    log().error(
        "session {:#x}: the servers granted a timeout of {} ms, which is too short for {} of {} ms{}: "
        "no lock can be held for sure. Ask for a longer SessionOptions::timeout or raise minSessionTimeout{}",
        printable_id(), incarnation().timeout.count(), configured ? "the tickTime" : "their tickTime", tick,
        configured ? " that SessionOptions::server_tick states" : "",
        configured ? ", or correct SessionOptions::server_tick" : "");
}

void SessionCore::on_suspended() {
    log().warn("session {:#x}: connection lost", printable_id());
    suspensions.add();
    tell_of_short_connections();
    expect_nothing();
    search_.restore_servers();
    settings_.stop();
    LeaseKeeper::on_suspended();
    observers_.each([](SessionObserver& observer) { observer.on_suspended(); });
}

/// The C client sends all watches in one request after each connect. Servers cut the connection at a request that is
/// larger than they accept, without a word.
void SessionCore::tell_of_short_connections() {
    const bool short_one = runtime().now() - connected_at_ < kShortConnection;
    short_connections_ = short_one ? short_connections_ + 1 : 0;
    if (short_connections_ < kManyShortConnections || !should_log(short_connections_)) return;
    const std::string why =
        "the servers cut the connection right after each of the last " + std::to_string(short_connections_) +
        " connects; perhaps they demand credentials, or a request is larger than their jute.maxbuffer (the watches of "
        "this session take " +
        std::to_string(watch_table().bytes()) +
        " bytes): raise that on all servers, or use several sessions, and fewer locks or shorter names in one call";
    note_problem(why);
    log().warn("session {:#x}: {}", printable_id(), why);
}

/// While something is held, the session is not closed: that would free the lock at once, before its holder knows. The
/// servers end the connection; if all of them refuse the session, the lease ends the hold first.
bool SessionCore::on_credentials_demanded(std::uint64_t handle) {
    if (hold_table().empty()) {
        apply(fsm().on_credentials_demanded(handle));
        return true;
    }
    const std::string why = "the servers demand credentials, and accept none of this session";
    note_problem(why);
    if (should_log(++demands_)) log().error("session {:#x}: {} ({} times)", printable_id(), why, demands_);
    return false;
}

void SessionCore::on_session_over() {
    closing() ? lose_all(LossReason::closed, "the session was closed")
              : lose_all(LossReason::session_ended, "the servers ended the session");
    LeaseKeeper::on_session_over();
    forget_ephemerals();
    watch_table().reset();
    node_cleaner().session_over();
    expect_nothing();
    check_waiting();  // they are told that it is over
    if (!closing()) observers_.each([](SessionObserver& observer) { observer.on_session_lost(); });
}

void SessionCore::on_closed(Errc errc, const std::string& detail) {
    stop_serving();
    close_because(Error(errc, "session", prefix_.empty() ? options().hosts : options().hosts + " " + prefix_, detail));
    closed_detail_ = detail;
    if (errc != Errc::closed) log().error("{}", closed_because()->what());
    lose_all(LossReason::closed, "the session was closed");
    end_lease();
    check_waiting();  // they are told, and let go of
    search_.stop();
    settings_.stop();
    wake_connect_waiters();
    observers_.each([this](SessionObserver& observer) {
        observers_.remove(observer);
        observer.on_closed(*closed_because());
    });
    search_.restore_servers();  // last: it may throw
}

// ---- time ----------------------------------------------------------------------------------------------------------

/// At the end of each hold of the session lock.
void SessionCore::settle() {
    if (given_up_.room_again(given_up_now())) {
        observers_.each([](SessionObserver& observer) { observer.on_room(); });
    }
    continue_close();
    show_numbers();
    if (failure_unfinished_) finish_failing();
    if (fsm().finished() && !last_handle_closing() && client() == nullptr) on_last_handle_closed();
    arm(std::min({fsm().wake_at(), LeaseKeeper::wake_at(), search_.wake_at(), settings_.wake_at(), drain_until_,
                  failure_unfinished_ ? runtime().now() + kFailAgain : Instant::max(), Requests::wake_at(),
                  connected() ? node_cleaner().wake_at() : Instant::max(), events_due_at()}));
}

void SessionCore::on_time() {
    const Instant now = runtime().now();
    // First of all: nothing that is done below may find a hold that is over.
    end_what_has_passed(now);
    apply(fsm().on_time(now));
    Requests::on_time(now);
    LeaseKeeper::on_time(now);
    if (connected() && now >= node_cleaner().wake_at()) node_cleaner().go_on();
    search_.on_time(now);
    settings_.on_time(now);
    if (now >= events_due_at()) tell_events();
}

/// What stats() answers without the session lock.
void SessionCore::show_numbers() {
    node_bytes.set(reserved_bytes());
    watch_bytes.set(watch_table().bytes());
    nodes_to_delete.set(node_cleaner().pending());
    timeout_ms.set(static_cast<std::uint64_t>(incarnation().timeout.count()));
    lease_ends_at.store(lease_ends_at_ns(), std::memory_order_relaxed);
}

}  // namespace zkrecipes::internal
