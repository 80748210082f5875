#include "fake_server/posted_client.hpp"

#include <utility>

namespace zkrecipes::fake {

using internal::ClientEvents;
using internal::ClientOptions;
using internal::ClientStatus;
using internal::MultiResult;
using internal::NodeStat;
using internal::Rc;
using internal::WatchEventType;

/// Keeps the last status for callers on other threads.
class PostedClient::Events final : public ClientEvents {
public:
    explicit Events(std::shared_ptr<ClientEvents> to) : to_(std::move(to)) {}
    void on_status(const ClientStatus& status) override {
        {
            const std::lock_guard lock(mutex_);
            status_ = status;
        }
        to_->on_status(status);
    }
    void on_watch(WatchEventType type, const std::string& path) override { to_->on_watch(type, path); }
    void on_auth(Rc rc) override { to_->on_auth(rc); }
    ClientStatus status() const {
        const std::lock_guard lock(mutex_);
        return status_;
    }

private:
    const std::shared_ptr<ClientEvents> to_;
    mutable std::mutex mutex_;  // guards status_
    ClientStatus status_;
};

/// The simulated client, which only the world's thread touches, until that has ended.
struct PostedClient::Slot {
    Slot(std::shared_ptr<Engine> its_engine, Process& its_process)
        : engine(std::move(its_engine)), process(its_process) {
        engine->client_opened(process);
    }
    ~Slot() { closed(); }
    void closed() {
        if (!std::exchange(counted_out, true)) engine->client_closed(process);
    }
    const std::shared_ptr<Engine> engine;
    Process& process;
    std::shared_ptr<sim::SimClient> client;
    bool counted_out = false;
};

PostedClient::PostedClient(std::shared_ptr<Engine> engine, Process& process, std::shared_ptr<internal::Runtime> runtime,
                           const ClientOptions& options, std::shared_ptr<ClientEvents> events)
    : runtime_(runtime),
      events_(std::make_shared<Events>(std::move(events))),
      slot_(std::make_shared<Slot>(std::move(engine), process)) {
    slot_->engine->post([slot = slot_, told = events_, options, runtime = std::move(runtime)] {
        auto& ensemble = slot->engine->ensemble();
        ClientOptions ours = options;
        ours.hosts = ensemble.hosts();
        slot->client = std::make_shared<sim::SimClient>(ensemble, slot->process.actor, runtime, ours, told, true);
        std::erase_if(slot->process.clients, [](const auto& client) { return client.expired(); });
        slot->process.clients.push_back(slot->client);
        slot->client->start();
    });
}

PostedClient::~PostedClient() {
    const auto engine = slot_->engine;
    // The world's thread is to destroy it. If that has ended, nobody else uses it any more.
    engine->post([slot = std::move(slot_)]() mutable { slot = nullptr; });
}

template <class Ask, class Refuse>
void PostedClient::post(Ask ask, Refuse refuse) {
    const bool posted = slot_->engine->post([slot = slot_, ask = std::move(ask)] { ask(*slot->client); });
    if (!posted) runtime_->post(internal::Lane::protocol, std::move(refuse));
}

void PostedClient::create(std::string path, std::string data, const std::vector<Acl>& acl, internal::CreateMode mode,
                          CreateDone done) {
    post([=, path = std::move(path),
          data = std::move(data)](sim::SimClient& to) { to.create(path, data, acl, mode, done); },
         [done] { done(Rc::closed, {}, {}); });
}

void PostedClient::remove(const std::string& path, std::int32_t version, VoidDone done) {
    post([=](sim::SimClient& to) { to.remove(path, version, done); }, [done] { done(Rc::closed); });
}

void PostedClient::exists(const std::string& path, bool watch, StatDone done) {
    post([=](sim::SimClient& to) { to.exists(path, watch, done); }, [done] { done(Rc::closed, {}); });
}

void PostedClient::get(const std::string& path, bool watch, GetDone done) {
    post([=](sim::SimClient& to) { to.get(path, watch, done); }, [done] { done(Rc::closed, {}, {}); });
}

void PostedClient::set(const std::string& path, const std::string& data, std::int32_t version, StatDone done) {
    post([=](sim::SimClient& to) { to.set(path, data, version, done); }, [done] { done(Rc::closed, {}); });
}

void PostedClient::children(const std::string& path, bool watch, ChildrenDone done) {
    post([=](sim::SimClient& to) { to.children(path, watch, done); }, [done] { done(Rc::closed, {}, {}); });
}

void PostedClient::multi(std::vector<internal::MultiOp> ops, MultiDone done) {
    post([=](sim::SimClient& to) { to.multi(ops, done); }, [done] { done(Rc::closed, {}); });
}

void PostedClient::sync(const std::string& path, VoidDone done) {
    post([=](sim::SimClient& to) { to.sync(path, done); }, [done] { done(Rc::closed); });
}

void PostedClient::heartbeat(const std::vector<std::string>& nodes, MultiDone done) {
    post([=](sim::SimClient& to) { to.heartbeat(nodes, done); }, [done] { done(Rc::closed, {}); });
}

void PostedClient::nudge(StatDone done) {
    post([=](sim::SimClient& to) { to.nudge(done); }, [done] { done(Rc::closed, {}); });
}

void PostedClient::remove_watches(const std::string& path, VoidDone done) {
    post([=](sim::SimClient& to) { to.remove_watches(path, done); }, [done] { done(Rc::closed); });
}

void PostedClient::add_auth(const Auth& auth) {
    post([=](sim::SimClient& to) { to.add_auth(auth); }, [] {});
}

void PostedClient::close(std::function<void()> done) {
    const auto closed = [slot = slot_, done] {
        slot->closed();
        done();
    };
    post([=, told = events_](sim::SimClient& to) { to.close([closed] { closed(); }); }, done);
}

ClientStatus PostedClient::status() const { return events_->status(); }

}  // namespace zkrecipes::fake
