#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/connect_string.hpp"
#include "base/threads/about_to_block.hpp"
#include "client/client.hpp"
#include "client/tls/zk_relay.hpp"
#include "client/tls/zk_tls_check.hpp"
#include "client/zk_driver.hpp"
#include "client/zk_log.hpp"
#include "client/zk_request.hpp"
#include "client/zk_secure.hpp"

struct _zhandle;

namespace zkrecipes::internal {

/// A handle of the single-threaded ZooKeeper C client, and the driver that looks after it. docs/design/c-client.md says
/// which of the C client's pitfalls is dealt with where.
///
/// Locks, in this order: `delivery_` is held while a callback runs, so that one callback runs at a time, by whichever
/// thread. `client_mutex_` is held in the C client: for long only by the driver, since the C client may connect there;
/// who wants to send and does not get it leaves that to whoever has it. `mutex_` guards the rest of the state, and is
/// held neither while a callback runs nor in the C client.
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

    // ---- called by the C client, with client_mutex_ held ----------------------------------------------------------
    void arrived(ZkRequest& request) noexcept;
    void on_session_event(_zhandle* zh, int state) noexcept;
    void on_node_event(int type, const char* path) noexcept;
    void on_auth_reply(std::size_t index, Rc rc) noexcept;

private:
    struct PendingAuth {
        ZkHandle* handle;
        std::size_t index;
        Auth auth;
        enum class State { waiting, sent, answered } state = State::waiting;
    };

    /// What the C client has told, until it is passed on.
    struct SessionNews {
        int state;
        ClientStatus status;  // if connected
    };
    struct NodeNews {
        WatchEventType type;
        std::string path;
    };
    struct AuthNews {
        std::size_t index;
        Rc rc;
    };
    using News = std::variant<ZkRequest*, SessionNews, NodeNews, AuthNews>;

    ZkDriver::Wait drive(short ready);
    ZkDriver::Wait turn(short ready);
    bool process(short ready);
    void answer_what_is_lost();
    void pass_on(News& news);
    void finish(ZkRequest& request);
    bool is_connected() const;
    void look();

    void submit(ZkRequest::List made);
    bool has_room_locked(const ZkRequest& request) const;
    bool may_send_locked() const;
    bool next_to_send(ZkRequest*& request);
    void send(ZkRequest& request);
    void send_waiting();
    void refuse_locked(ZkRequest& request, ZkRequest::List& from, Rc rc);
    void post_refused_locked();
    bool take_refused_locked(ZkRequest::List& due, std::uint64_t before);
    void answer_refused();
    void give_refused(ZkRequest::List& due);
    void connected(ClientStatus news);
    void disconnected();
    void ended(ClientState state, Rc rc);
    int start(const std::vector<std::string>& addresses);
    std::vector<std::string> usable_of(const std::vector<std::string>& addresses) const;
    std::string list_of(const std::vector<std::string>& addresses);
    void start_when_resolved();
    std::string begin_relay(const std::vector<std::string>& addresses);
    void on_tls_problem(const ZkRelay::Problem& problem);
    void apply_servers();
    void use_servers(const std::vector<std::string>& addresses);
    void log_left_out(const std::string& problem);
    void look_up_again_later();
    bool auth_waits_locked() const;
    bool send_auth();
    void auth_answered(std::size_t index, Rc rc);
    void answer_auths(Rc rc);
    void drain();
    void do_close();
    void abandon();
    template <class Action>
    void answer(const Action& action) {
        const UserCodeLock lock(delivery_);
        action();
    }
    template <class Action>
    void tell(const Action& action) {
        const UserCodeLock lock(delivery_);
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

    std::mutex client_mutex_;  // guards these
    _zhandle* zh_ = nullptr;   // null: not started, or being closed
    std::vector<News> news_;
    std::size_t in_books_ = 0;  // requests that the C client has not answered
    int socket_ = -1;           // that the driver knows; -1: the C client has closed it

    mutable std::mutex mutex_;  // guards all below
    bool started_ = false;
    std::unique_ptr<ZkDriver> driver_;  // there at least as long as zh_
    ClientStatus status_;
    Rc final_rc_ = Rc::ok;  // why the handle will never answer again; ok: it may
    enum class Life { open, draining, closing, closed } life_ = Life::open;
    std::vector<std::function<void()>> close_done_;
    std::condition_variable drained_;  // while closing: nothing is on its way any more, or never will be
    ZkRequest::List sent_;             // in the C client's books
    std::size_t sent_weight_ = 0;      // of all of these together
    std::size_t usual_children_ = 0;   // how many children directories had that were asked about lately
    ZkRequest::List waiting_;          // not yet sent: too many are
    ZkRequest::List refused_;          // never sent; by number, to be answered when it is their turn
    bool refused_posted_ = false;      // the protocol lane will look for those whose turn it is
    std::uint64_t requests_ = 0;       // so far
    ZkRequest::List kept_;             // refused ones that the C client may name once more
    std::vector<std::unique_ptr<PendingAuth>> auths_;
    std::vector<HostPort> servers_;       // as wanted
    bool servers_changed_ = false;        // since they were given to the C client
    std::vector<std::string> addresses_;  // that the C client has
    std::size_t listed_ = 0;              // the length of its list; not guarded: the blocking lane's, after the start
    TimerId lookup_timer_ = 0;
    std::shared_ptr<ZkRelay> relay_;  // null: no TLS, or not started
    std::uint64_t tls_problems_ = 0;  // since the last connect
    std::string tls_problem_;         // the last one
};

}  // namespace zkrecipes::internal
