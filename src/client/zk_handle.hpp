#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/connect_string.hpp"
#include "client/client.hpp"
#include "client/zk_log.hpp"
#include "client/zk_relay.hpp"
#include "client/zk_request.hpp"
#include "client/zk_secure.hpp"
#include "client/zk_tls_check.hpp"

struct _zhandle;

namespace zkrecipes::internal {

/// A handle of the multi-threaded ZooKeeper C client. docs/design/c-client.md says which of its pitfalls is dealt with
/// where.
///
/// Locks: `delivery_` is held while a callback runs, so that one callback runs at a time, by whichever
/// thread; `mutex_` guards the state and is never held while a callback runs. The C client's functions are
/// called with `mutex_` held, so nothing that it may call with its own locks held (the log function, the answer to an
/// authentication) takes `mutex_`.
class ZkHandle final : public Client, public std::enable_shared_from_this<ZkHandle> {
public:
    /// The answer closes itself when the last reference goes, and lives on until that is done.
    static std::shared_ptr<Client> open(std::shared_ptr<Runtime> runtime, const ClientOptions& options,
                                        std::shared_ptr<ClientEvents> events);
    ZkHandle(std::shared_ptr<Runtime> runtime, const ClientOptions& options, std::shared_ptr<ClientEvents> events);
    ~ZkHandle() override;

    void create(std::string path, std::string data, const std::vector<Acl>& acl, CreateMode mode,
                CreateDone done) override;
    void remove(const std::string& path, std::int32_t version, VoidDone done) override;
    void exists(const std::string& path, bool watch, StatDone done) override;
    void get(const std::string& path, bool watch, GetDone done) override;
    void set(const std::string& path, const std::string& data, std::int32_t version, StatDone done) override;
    void children(const std::string& path, bool watch, ChildrenDone done) override;
    void multi(std::vector<MultiOp> ops, MultiDone done) override;
    void sync(const std::string& path, VoidDone done) override;
    void heartbeat(const std::vector<std::string>& nodes, MultiDone done) override;
    void nudge(StatDone done) override;
    void remove_watches(const std::string& path, VoidDone done) override;
    void add_auth(const Auth& auth) override;
    void set_servers(const std::vector<std::string>& hosts) override;
    void close(std::function<void()> done) override;
    ClientStatus status() const override;

    // ---- called by the C client, on its completion thread --------------------------------------------------------
    void on_session_event(_zhandle* zh, int state) noexcept;
    void on_node_event(int type, const char* path) noexcept;
    /// Takes the request out of the books, then runs `answer` unless it was answered before.
    void finish(ZkRequest& request, const std::function<void(ZkRequest&)>& answer) noexcept;
    /// On its I/O thread, possibly with its locks held.
    void on_auth_reply(std::size_t index, Rc rc) noexcept;

private:
    struct PendingAuth {
        ZkHandle* handle;
        std::size_t index;
        Auth auth;
        enum class State { waiting, sent, answered } state = State::waiting;
    };

    void submit(ZkRequest::List made);
    bool has_room_locked(const ZkRequest& request) const;
    void send_locked(ZkRequest& request);
    void send_waiting_locked();
    void refuse_locked(ZkRequest& request, ZkRequest::List& from, Rc rc);
    void post_refused_locked();
    bool take_refused_locked(ZkRequest::List& due, std::uint64_t before);
    void answer_refused();
    void give_refused(ZkRequest::List& due);
    void connected(_zhandle* zh);
    void disconnected();
    void ended(ClientState state, Rc rc);
    void adopt(_zhandle* zh);
    int start(const std::vector<std::string>& addresses);
    std::vector<std::string> usable_of(const std::vector<std::string>& addresses) const;
    std::string list_of(const std::vector<std::string>& addresses);
    void start_when_resolved();
    std::string begin_relay(const std::vector<std::string>& addresses);
    void on_tls_problem(const ZkRelay::Problem& problem);
    void look_for_sasl_failure_locked();
    void on_sasl_timer();
    void apply_servers();
    void log_left_out(const std::string& problem);
    void look_up_again_later();
    void send_auth_locked();
    void auth_answered(std::size_t index, Rc rc);
    void answer_auths(Rc rc);
    void drain();
    void do_close();
    void abandon();
    template <class Action>
    void answer(const Action& action) {
        const std::lock_guard lock(delivery_);
        action();
    }
    template <class Action>
    void tell(const Action& action) {
        const std::lock_guard lock(delivery_);
        if (events_) action(*events_);
    }

    const std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<ClientLog> log_lines_;
    const std::shared_ptr<spdlog::logger> logger_;
    const int timeout_ms_;
    const std::optional<TlsOptions> tls_;
    const std::unique_ptr<TlsTrust> trust_;  // null: no TLS
    const SaslAnswersPointer sasl_;          // null: none

    std::mutex delivery_;                   // one callback at a time; taken before mutex_
    std::shared_ptr<ClientEvents> events_;  // guarded by delivery_; null once closed

    mutable std::mutex mutex_;  // guards all below
    _zhandle* zh_ = nullptr;
    ClientStatus status_;
    Rc final_rc_ = Rc::ok;  // why the handle will never answer again; ok: it may
    enum class Life { open, draining, closing, closed } life_ = Life::open;
    std::vector<std::function<void()>> close_done_;
    std::condition_variable drained_;  // while closing: nothing is on its way any more, or never will be
    bool ending_ = false;              // ended() answers what is on answered_
    ZkRequest::List sent_;             // in the C client's books
    std::size_t sent_weight_ = 0;      // of all of these together
    std::size_t usual_children_ = 0;   // how many children directories had that were asked about lately
    ZkRequest::List waiting_;          // not yet sent: too many are
    ZkRequest::List refused_;          // never sent; by number, to be answered when it is their turn
    bool refused_posted_ = false;      // the protocol lane will look for those whose turn it is
    std::uint64_t requests_ = 0;       // so far
    ZkRequest::List answered_;         // by us, and kept until the C client can name them no more
    std::vector<std::unique_ptr<PendingAuth>> auths_;
    std::vector<HostPort> servers_;       // as wanted
    bool servers_changed_ = false;        // since they were given to the C client
    std::vector<std::string> addresses_;  // that the C client has
    std::size_t listed_ = 0;              // the length of its list; not guarded: the blocking lane's, after the start
    TimerId lookup_timer_ = 0, sasl_timer_ = 0;
    std::shared_ptr<ZkRelay> relay_;  // null: no TLS, or not started
    std::uint64_t tls_problems_ = 0;  // since the last connect
    std::string tls_problem_;         // the last one
};

}  // namespace zkrecipes::internal
