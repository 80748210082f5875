#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "session/common/budget.hpp"
#include "session/common/session_lock.hpp"
#include "session/connection/connection.hpp"
#include "session/connection/stalled_reply_probe.hpp"
#include "session/requests/missing_right.hpp"
#include "session/stats/session_meter.hpp"

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
        /// A server refused a request of the session on this handle because it demands credentials.
        virtual bool on_credentials_demanded(std::uint64_t handle) = 0;  // false: the session goes on
    };
    Requests(SessionLock& lock, Connection& connection, SessionMeter& meter, Port& port, std::size_t lists_at_once)
        : lock_(lock), connection_(connection), meter_(meter), port_(port), lists_at_once_(lists_at_once) {}

    // While not connected they are answered Rc::not_connected (never sent). `sent_at` was read before the request went
    // out: a committed write proves that the session lived then.
    template <class... Values>
    using Done = std::function<void(Rc, Values..., Instant sent_at)>;
    void create(std::string path, std::string data, const std::vector<Acl>& acl, CreateMode mode,
                Done<std::string, const NodeStat&> done);
    void remove(const std::string& path, std::int32_t version, Done<> done);
    void exists(const std::string& path, Done<const NodeStat&> done, bool watch = false);
    void get(const std::string& path, Done<std::string, const NodeStat&> done, bool watch = false);
    void set(const std::string& path, const std::string& data, std::int32_t version, Done<const NodeStat&> done);
    void children(const std::string& path, Done<std::vector<std::string>, const NodeStat&> done, bool watch = false);
    /// As children. But if `lists_at_once` of this path are on the way, whoever asks is answered by the next one, which
    /// is sent when one of those is answered: so it shows all that each of them had sent before it asked.
    void list(const std::string& path, Done<std::vector<std::string>, const NodeStat&> done);
    void multi(std::vector<MultiOp> ops, Done<std::vector<MultiResult>> done);
    void sync(const std::string& path, Done<> done);
    /// Makes the directory and its missing ancestors. One try: answers the first thing that is not ok.
    void make_directory(const std::string& path, const std::vector<Acl>& acl, Done<> done,
                        CreateMode mode = CreateMode::container);

    /// Of the request that was answered Rc::no_auth last. For whoever is given that answer, at that moment.
    const MissingRight& last_missing_right() const noexcept { return last_missing_right_; }

    /// Reserves room for an ephemeral node with this path. False: over 900 kB; the caller fails with budget_exceeded.
    /// Given back by release_ephemeral, or with the incarnation.
    bool reserve_ephemeral(std::size_t path_bytes) { return ephemerals_.reserve(path_bytes); }
    void release_ephemeral(std::size_t path_bytes) { ephemerals_.release(path_bytes); }
    std::size_t reserved_bytes() const { return ephemerals_.used(); }
    bool lists_nothing() const { return lists_.empty(); }

    // ---- for the other parts of the session ------------------------------------------------------------------------
    void heartbeat(const std::vector<std::string>& nodes, Done<std::vector<MultiResult>> done);  // see Client
    void remove_watches(const std::string& path, Done<> done);
    /// A watch event has shown something that others rely on, and nothing is as new as that in what the client tells a
    /// server when it connects: it counts answers only, and events have no number. Until a request that is made from
    /// now on is answered, another server may be behind that event. So when the connection breaks before, the first
    /// request on the next one is a committed one, behind which the server answers nothing older; and what was handed
    /// over before that is answered as lost, if it is a read.
    void seen_by_event() noexcept { seen_at_ = handed_over_; }
    /// First of all on a new connection.
    void catch_up();
    Instant last_request() const noexcept { return last_request_; }
    /// Surely before the connect request of the present connection went out: when the handle was opened, or when the
    /// last request was sent that an earlier connection answered. (The client's word "connecting" may reach us late.)
    Instant before_connect() const noexcept { return before_connect_; }
    void handle_opens();
    void on_connected(Instant now);
    /// The connection or the handle is gone: no answer is late any more.
    void expect_nothing() { stalled_reply_probe_.forget(); }
    void forget_ephemerals() { ephemerals_.reset(); }
    /// When an answer is late, see StalledReplyProbe.
    Instant wake_at() const;
    void on_time(Instant now);

private:
    enum class Handling { read, write, urgent };  // of an answer
    struct Sent {
        std::uint64_t handle;
        StalledReplyProbe::Ticket ticket;
        Instant at;
        Handling handling;
        std::uint64_t number;
        std::uint64_t connection;
    };
    using ListDone = Done<std::vector<std::string>, const NodeStat&>;
    struct Lists {
        std::size_t on_the_way = 0;
        std::vector<ListDone> waiting;
    };
    void send_list(const std::string& path, std::vector<ListDone> done);
    Rc on_answer(const Sent& sent, Rc rc);
    void nudge();
    Rc as_in_local_session(const Sent& sent);
    template <class Callback, class What>
    auto answer_to(Callback done, Handling handling, RequestKind kind, What needs);
    template <class... Values, class Callback>
    void not_sent(Callback done);

    SessionLock& lock_;
    Connection& connection_;
    SessionMeter& meter_;
    Port& port_;
    const std::size_t lists_at_once_;
    StalledReplyProbe stalled_reply_probe_;
    Budget ephemerals_;
    Instant before_connect_ = Instant::min();
    Instant last_request_ = Instant::min();
    std::uint64_t handed_over_ = 0;  // requests
    std::uint64_t connections_ = 0;
    bool answered_here_ = true;             // a server has answered a request on the latest connection
    std::uint64_t unknown_codes_ = 0;       // answers with such a code
    std::uint64_t local_session_on_ = 0;    // the connection whose server said that the session is local
    std::uint64_t asked_if_local_on_ = 0;   // the latest connection whose server was asked that
    std::optional<std::uint64_t> seen_at_;  // seen_by_event() came behind this request, and nothing was answered since
    std::map<std::string, Lists> lists_;    // by path
    MissingRight last_missing_right_;
    bool catching_up_ = false;  // no committed request of this connection was answered since catch_up()
    std::uint64_t behind_ = 0;  // the connection on which reads that are older than it may be outdated
};

}  // namespace zkrecipes::internal
