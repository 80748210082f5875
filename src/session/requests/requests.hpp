#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "session/common/budget.hpp"
#include "session/common/session_lock.hpp"
#include "session/connection/connection.hpp"
#include "session/connection/stalled_reply_probe.hpp"

namespace zkrecipes::internal {

/// Sends requests on the present incarnation's handle and brings each answer under the session lock, exactly once,
/// never from inside the request call. All with the lock held. All paths are server paths.
class Requests {
public:
    class Port {
    public:
        virtual ~Port() = default;
        /// Before the answer itself is given: what was sent at `sent_at` has reached a server. `overtook`: see
        /// LeaseClock::answered.
        virtual void on_touch(Instant sent_at, Instant now, bool overtook) = 0;
    };
    Requests(SessionLock& lock, Connection& connection, Port& port)
        : lock_(lock), connection_(connection), port_(port) {}

    // While not connected they are answered Rc::not_connected (never sent). `sent_at` was read before the request went
    // out: a committed write proves that the session lived then.
    template <class... Values>
    using Done = std::function<void(Rc, Values..., Instant sent_at)>;
    void create(const std::string& path, const std::string& data, const std::vector<Acl>& acl, CreateMode mode,
                Done<std::string, const NodeStat&> done);
    void remove(const std::string& path, std::int32_t version, Done<> done);
    void exists(const std::string& path, Done<const NodeStat&> done, bool watch = false);
    void get(const std::string& path, Done<std::string, const NodeStat&> done, bool watch = false);
    void set(const std::string& path, const std::string& data, std::int32_t version, Done<const NodeStat&> done);
    void children(const std::string& path, Done<std::vector<std::string>, const NodeStat&> done, bool watch = false);
    void multi(std::vector<MultiOp> ops, Done<std::vector<MultiResult>> done);
    void sync(const std::string& path, Done<> done);
    /// Makes the directory and its missing ancestors. One try: answers the first thing that is not ok.
    void make_directory(const std::string& path, const std::vector<Acl>& acl, Done<> done,
                        CreateMode mode = CreateMode::container);

    /// Reserves room for an ephemeral node with this path. False: over 900 kB; the caller fails with budget_exceeded.
    /// Given back by release_ephemeral, or with the incarnation.
    bool reserve_ephemeral(std::size_t path_bytes) { return ephemerals_.reserve(path_bytes); }
    void release_ephemeral(std::size_t path_bytes) { ephemerals_.release(path_bytes); }
    std::size_t reserved_bytes() const { return ephemerals_.used(); }

    // ---- for the other parts of the session ------------------------------------------------------------------------
    void heartbeat(const std::vector<std::string>& nodes, Done<std::vector<MultiResult>> done);  // see Client
    void remove_watches(const std::string& path, Done<> done);
    Instant last_request() const noexcept { return last_request_; }
    /// Surely before the connect request of the present connection went out: when the handle was opened, or when the
    /// last request was sent that an earlier connection answered. (The client's word "connecting" may reach us late.)
    Instant before_connect() const noexcept { return before_connect_; }
    void handle_opens();
    void on_connected(Instant now) { last_request_ = now; }
    /// The connection or the handle is gone: no answer is late any more.
    void expect_nothing() { stalled_reply_probe_.forget(); }
    void forget_ephemerals() { ephemerals_.reset(); }
    /// When an answer is late, see StalledReplyProbe.
    Instant wake_at() const;
    void on_time(Instant now);

private:
    Rc on_answer(std::uint64_t handle, StalledReplyProbe::Ticket ticket, Instant sent_at, Rc rc, bool overtook = false);
    template <class Callback>
    auto answer_to(Callback done, bool overtakes = false);
    template <class... Values, class Callback>
    void not_sent(Callback done);

    SessionLock& lock_;
    Connection& connection_;
    Port& port_;
    StalledReplyProbe stalled_reply_probe_;
    Budget ephemerals_;
    Instant before_connect_ = Instant::min();
    Instant last_request_ = Instant::min();
};

}  // namespace zkrecipes::internal
