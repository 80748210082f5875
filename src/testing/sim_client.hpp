#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "testing/ensemble.hpp"
#include "testing/sim_runtime.hpp"

namespace zkrecipes::sim {

using internal::Client;
using internal::ClientEvents;
using internal::ClientFactory;
using internal::ClientOptions;
using internal::ClientState;
using internal::ClientStatus;

/// A handle that behaves as the library's real one does on the C client: pings after a third of the timeout when
/// nothing is under way, gives up a silent server after two thirds, goes on at another server, sets its watches again
/// in one request, learns of an expiry only from a server. Replies, events and status changes come in one order.
class SimClient final : public Client, public std::enable_shared_from_this<SimClient> {
public:
    /// `plain`: it does nothing at random, and connects again at once when its connection has broken.
    SimClient(SimEnsemble& ensemble, Actor& process, std::shared_ptr<internal::Runtime> runtime, ClientOptions options,
              std::shared_ptr<ClientEvents> events, bool plain = false);
    ~SimClient() override;
    void start();

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
    ClientStatus status() const override { return status_; }

    /// The thread that runs callbacks stands still for so long, and then, once it has told of the next broken
    /// connection, until run_callbacks().
    void delay_callbacks(SimTime at_first);
    void run_callbacks();
    /// Does not rest any longer before it connects again.
    void hurry();

    std::size_t watches() const noexcept {
        return data_watches_.size() + exist_watches_.size() + child_watches_.size();
    }
    std::size_t open_requests() const noexcept { return queued_.size() + waiting_.size() + sent_.size(); }

private:
    using Done = std::function<void(const Reply&)>;
    struct Pending {
        Request request;
        Done done;
        bool urgent = false;  // overtakes those that wait and are not
    };
    void submit(Request request, Done done, bool urgent = false);
    void send_waiting();
    void send(Pending pending);
    void deliver(std::function<void()> work);
    void tell_status(ClientState state);
    void connect_next();
    void on_connected_to(std::shared_ptr<Connection> connection);
    void on_reply(const Reply& reply);
    void on_session(const Reply& reply);
    void on_event(const WatchEvent& event);
    void connection_over(Rc rc);
    void fail_all(Rc rc);
    void watch_clock();
    void check_clock();
    void die(ClientState state, Rc rc);
    void finish_close();
    void register_watch(const Request& request, Rc rc);
    SimTime local_now() const { return process_.local_now(); }
    SimTime timeout() const { return timeout_ms_ * kMilli; }

    SimEnsemble& ensemble_;
    World& world_;
    Actor& process_;
    const std::shared_ptr<internal::Runtime> runtime_;
    std::shared_ptr<ClientEvents> events_;
    std::vector<std::string> servers_;
    std::vector<Auth> auths_;
    Rng rng_;
    const bool plain_;

    enum class Phase { idle, connecting, associating, connected, dead, closed } phase_ = Phase::idle;
    std::shared_ptr<Connection> connection_;
    std::uint64_t attempt_ = 0;  // counts connects; answers of former ones are dropped
    std::size_t next_server_ = 0;
    std::int64_t timeout_ms_;
    SessionId session_ = 0;
    std::int64_t last_zxid_ = 0;
    std::int64_t next_xid_ = 1;
    SimTime last_heard_ = 0, last_sent_ = 0;
    std::deque<Pending> queued_;   // not sent, for want of a connection
    std::deque<Pending> waiting_;  // not sent: the window is full
    const std::size_t window_;     // how many are sent before an answer must come
    std::deque<Pending> sent_;
    std::set<std::string> data_watches_, exist_watches_, child_watches_;
    ClientStatus status_;
    EventId clock_ = 0;
    std::vector<std::function<void()>> on_closed_;
    std::size_t auth_replies_ = 0;    // on this connection
    std::size_t auths_answered_ = 0;  // told
    bool closing_ = false;
    SimTime last_delivery_ = 0;
    enum class Callbacks { run, run_until_broken, wait } callbacks_ = Callbacks::run;
    std::deque<std::function<void()>> waiting_callbacks_;
};

/// Opens SimClients for one simulated process.
class SimClientFactory final : public ClientFactory {
public:
    SimClientFactory(SimEnsemble& ensemble, Actor& process, std::shared_ptr<internal::Runtime> runtime)
        : ensemble_(ensemble), process_(process), runtime_(std::move(runtime)) {}
    std::shared_ptr<Client> open(const ClientOptions& options, std::shared_ptr<ClientEvents> events) override;
    /// Those still alive: for the leak check.
    std::vector<std::shared_ptr<SimClient>> clients() const;

private:
    SimEnsemble& ensemble_;
    Actor& process_;
    std::shared_ptr<internal::Runtime> runtime_;
    std::vector<std::weak_ptr<SimClient>> opened_;
};

}  // namespace zkrecipes::sim
