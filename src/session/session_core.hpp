#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_options.hpp>

#include "base/runtime.hpp"
#include "client/client.hpp"
#include "session/common/incarnation.hpp"
#include "session/connection/server_probe.hpp"
#include "session/lease/hold.hpp"
#include "session/requests/watch_table.hpp"

namespace zkrecipes::internal {

class SessionImpl;

/// What a session is closed with when one of its own steps has thrown.
inline constexpr Errc kStepFailed = Errc::out_of_resources;

/// Told what happens to the session. Always called under the session lock, in the order in which the observers were
/// added. A callback may add and remove any observer: a removed one is not called any more, an added one only for what
/// comes next. Must be removed before it is destroyed, unless the session was closed.
class SessionObserver {
public:
    SessionObserver() = default;
    SessionObserver(const SessionObserver&) = delete;
    SessionObserver& operator=(const SessionObserver&) = delete;
    virtual ~SessionObserver() = default;
    virtual void on_connected(bool same_session) = 0;  // each connect; requests may be sent
    virtual void on_suspended() = 0;                   // answers of what was sent arrive as unknown
    virtual void on_session_lost() = 0;                // the incarnation is over; a new one will follow
    virtual void on_closed(const Error& why) = 0;      // for ever; the observer has been removed already

private:
    friend class ObserverList;
    SessionObserver* previous_ = nullptr;
    SessionObserver* next_ = nullptr;
    std::uint64_t added_ = 0;  // 0: in no list
};

/// The session as the recipes see it: a lock, requests, a lease, and the guarantee that what was begun is cleaned up.
///
/// Everything marked *lock held* may be called only within run_locked(), from any thread. The session lock is one mutex
/// per session: protocol work is short and never blocks, and so an answer needs no further thread to reach its waiter.
/// Answers are delivered under the session lock, exactly once, never from inside the request call. All paths are server
/// paths; server_path() makes them from what users write.
class SessionCore : public std::enable_shared_from_this<SessionCore> {
public:
    struct Environment {
        std::shared_ptr<Runtime> runtime;
        std::shared_ptr<ClientFactory> clients;
        std::shared_ptr<ServerProbe> probe;  // null: none
    };
    static Environment real_environment();
    /// Validates, then opens the first handle. Throws Error.
    static std::shared_ptr<SessionCore> open(SessionOptions options, Environment environment);
    ~SessionCore();

    // ---- session lock --------------------------------------------------------------------------------------------
    /// Runs `work` under the session lock, then, outside of it, what `work` deferred. Throws would_deadlock under a
    /// session lock, where a retry policy or a log sink of the user runs, and closed in a forked child.
    void run_locked(const std::function<void()>& work);
    /// The same for destructors and stop callbacks: under a session lock `work` runs soon, on the protocol lane. It
    /// owns what it uses. Does nothing in a forked child.
    void run_locked_or_post(std::function<void()> work) noexcept;
    /// Whether run_locked() would run its work in this process.
    bool may_lock() const noexcept;
    /// *lock held*: runs `action` right after the session lock was released, on this thread: to wake a waiter, never
    /// user code.
    void defer(std::function<void()> action);
    /// User code: on the notifier thread, with no lock held; what it throws is logged.
    void notify(std::function<void()> callback);

    // ---- facts -------------------------------------------------------------------------------------------------
    Runtime& runtime() const noexcept;
    spdlog::logger& log() const noexcept;
    // For what a user's callback needs, which must not keep the session alive.
    const std::shared_ptr<Runtime>& shared_runtime() const noexcept;
    const std::shared_ptr<spdlog::logger>& shared_log() const noexcept;
    const SessionOptions& options() const noexcept;
    /// Anywhere, lock-free: this is a copy in a forked child. The threads are missing, the connection is the parent's,
    /// and any mutex may be locked for ever: nothing of it may be used or destroyed.
    bool inherited() const noexcept;
    SessionState state() const noexcept;     // anywhere, lock-free
    SessionInfo info() const;                // anywhere
    bool connected() const;                  // *lock held*
    const Incarnation& incarnation() const;  // *lock held*
    const Error* closed_because() const;     // *lock held*; null: not closed
    /// What a call that comes too late is told: auth_failed where that closed the session. Empty: it is not closed.
    std::optional<Error> closed_error(const char* operation, const std::string& user_path) const;  // *lock held*
    void throw_if_closed(const char* operation, const std::string& user_path);                     // anywhere
    void throw_if_inherited(const char* operation, const std::string& user_path) const;            // anywhere
    /// Anywhere. Checks the path and puts the namespace before it. Throws Error bad_path naming `operation`.
    std::string server_path(const std::string& path, const char* operation) const;
    std::string user_path(const std::string& server_path) const;

    // ---- observers and timers (*lock held*) -----------------------------------------------------------------------
    void add_observer(SessionObserver& observer);          // not any more when the session is closed
    void add_waiter(SessionObserver& waiter);              // always: a failure may come while it is being closed
    void remove_observer(SessionObserver& observer);       // also from within a callback
    TimerId at(Instant when, std::function<void()> work);  // `work` runs under the session lock
    bool cancel(TimerId timer);  // after this `work` does not run, true or false, if it has not begun

    // ---- requests (*lock held*) -----------------------------------------------------------------------------------
    // Sent on the present incarnation's handle. While not connected they are answered Rc::not_connected (never sent).
    // `sent_at` was read before the request went out: a committed write proves that the session lived then.
    template <class... Values>
    using Done = std::function<void(Rc, Values..., Instant sent_at)>;
    void create(const std::string& path, const std::string& data, const std::vector<Acl>& acl, CreateMode mode,
                Done<std::string, const NodeStat&> done);
    void remove(const std::string& path, std::int32_t version, Done<> done);
    void exists(const std::string& path, Done<const NodeStat&> done);
    void get(const std::string& path, Done<std::string, const NodeStat&> done);
    void set(const std::string& path, const std::string& data, std::int32_t version, Done<const NodeStat&> done);
    void children(const std::string& path, Done<std::vector<std::string>, const NodeStat&> done);
    void multi(std::vector<MultiOp> ops, Done<std::vector<MultiResult>> done);
    void sync(const std::string& path, Done<> done);

    // ---- watches (*lock held*) ------------------------------------------------------------------------------------
    // One watch on the server per path and facet, however many ask; removed there when nobody asks any more.
    // WatchListener::ready (or listed) is called once, under the session lock, and never from inside watch_node.
    using WatchListener = internal::WatchListener;
    using WatchId = internal::WatchId;  // 0: over the budget, nothing was done
    WatchId watch_node(const std::string& path, WatchListener listener);
    WatchId watch_existence(const std::string& path, WatchListener listener);  // the node; missing: its creation
    WatchId watch_children(const std::string& path, WatchListener listener);
    WatchId watch_directory(const std::string& path, WatchListener listener);  // its children; missing: its creation
    /// Watches die silently with their incarnation; removing a dead one is harmless.
    void unwatch(WatchId watch);

    // ---- budgets (*lock held*) ------------------------------------------------------------------------------------
    /// Reserves room for an ephemeral node with this path. False: over 900 kB; the caller fails with budget_exceeded.
    /// Given back by release_ephemeral, or with the incarnation.
    bool reserve_ephemeral(std::size_t path_bytes);
    void release_ephemeral(std::size_t path_bytes);
    bool reserve_watch_possible(std::size_t path_bytes) const;

    // ---- lease and holds (*lock held*) ----------------------------------------------------------------------------
    /// A write that checked or created the own node was committed; it was sent at `sent_at`.
    void lease_committed(Instant sent_at);
    /// One committed check of these nodes of ours, as a lease renewal: ok, no_node, or unknown.
    void renew_lease(std::vector<std::string> nodes, Done<> done);
    /// From now on the nodes, made by one transaction, are held together under the lease. Null when the lease is not
    /// fresh: verify first.
    std::shared_ptr<Hold> begin_hold(std::vector<std::string> nodes, std::int64_t czxid);
    std::shared_ptr<Hold> begin_hold(std::string node, std::int64_t czxid);
    /// Ends it: no lost() any more; the nodes are handed to the reaper. `gone` runs under the session lock when all of
    /// them are surely gone (true), or the session ended without our knowing (false). Harmless on a hold of a former
    /// incarnation.
    void end_hold(const std::shared_ptr<Hold>& hold, std::function<void(bool)> gone = {});

    /// The hold is lost as soon as no server answers, not only when the lease ends.
    void lose_when_suspended(const Hold& hold);

    /// From now on Hold::revocation() tells when somebody has written kRevocationRequest into one of its nodes, also if
    /// that was before. Costs one read for each node, which nobody waits for.
    void watch_revocation(const std::shared_ptr<Hold>& hold);

    // ---- what must happen in the end (*lock held*) ----------------------------------------------------------------
    /// Deletes a node of the present incarnation, trying until it or the incarnation is gone.
    void delete_node(std::string node, std::function<void(bool gone)> done = {});
    /// Several, by one request if that is possible. `done`: of all of them.
    void delete_nodes(std::vector<std::string> nodes, std::function<void(bool gone)> done = {});
    /// The same for a node of which only the directory and a unique part of its name are known, because the answer to
    /// its create was lost: sync, list, compare the owner, delete.
    void delete_by_identity(std::string directory, std::string name_prefix, std::function<void(bool gone)> done = {});

    /// The same for a node of a name that others may use, too: deleted only if it belongs to the present incarnation.
    void delete_if_owned(std::string node, std::function<void(bool gone)> done = {});

    // ---- directories (*lock held*) --------------------------------------------------------------------------------
    /// Makes the directory and its missing ancestors. One try: answers the first thing that is not ok.
    void make_directory(const std::string& path, const std::vector<Acl>& acl, Done<> done,
                        CreateMode mode = CreateMode::container);

    // ---- life --------------------------------------------------------------------------------------------------
    bool wait_connected(Deadline deadline, std::stop_token stop);
    Subscription watch_state(std::function<void(SessionState)> listener);
    void close() noexcept;

private:
    explicit SessionCore(std::shared_ptr<SessionImpl> impl);
    const std::shared_ptr<SessionImpl> impl_;
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
    static Session make(std::shared_ptr<SessionCore> core) { return Session(std::move(core)); }
};

}  // namespace zkrecipes::internal
