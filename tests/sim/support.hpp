#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "testing/ensemble.hpp"
#include "testing/sim_client.hpp"
#include "testing/sim_runtime.hpp"

namespace zkrecipes::sim {

/// One client process with one handle, for tests of the world itself.
struct Handle final : ClientEvents {
    std::vector<ClientStatus> statuses;
    std::vector<std::string> log;  // events and answers in the order in which they came
    std::vector<WatchEvent> events;
    std::vector<Rc> auths;

    void on_status(const ClientStatus& status) override {
        statuses.push_back(status);
        log.push_back("status " + std::to_string(static_cast<int>(status.state)));
    }
    void on_watch(WatchEventType type, const std::string& path) override {
        events.push_back({type, path});
        log.push_back("event " + path);
    }
    void on_auth(Rc rc) override { auths.push_back(rc); }
};

struct Process {
    Process(SimEnsemble& ensemble, const std::string& name, std::chrono::milliseconds timeout,
            std::vector<std::string> hosts = {}, std::int64_t rate_ppm = 0)
        : world(ensemble.world()),
          actor(world, name, rate_ppm),
          runtime(std::make_shared<SimRuntime>(actor, RuntimeShape{})),
          factory(ensemble, actor, runtime),
          handle(std::make_shared<Handle>()) {
        ClientOptions options;
        options.hosts = hosts.empty() ? ensemble.hosts() : std::move(hosts);
        options.timeout = timeout;
        client = factory.open(options, handle);
    }
    bool connected() const { return client->status().state == ClientState::connected; }
    ClientState state() const { return client->status().state; }
    bool until(const std::function<bool()>& done, SimTime limit = 60 * kSecond) {
        return world.run(world.now() + limit, done);
    }
    bool connect() {
        return until([this] { return !handle->statuses.empty() && connected(); });
    }

    // Blocking forms: run the world until the answer is there.
    struct Answer {
        Rc rc = Rc::closed;
        bool answered = false;
        std::string path, data;
        NodeStat stat;
        std::vector<std::string> names;
        std::vector<MultiResult> results;
    };
    Answer wait(const std::shared_ptr<Answer>& answer, SimTime limit = 60 * kSecond) {
        until([answer] { return answer->answered; }, limit);
        return *answer;
    }
    std::shared_ptr<Answer> start_create(const std::string& path, CreateMode mode, const std::string& data = "",
                                         const std::vector<Acl>& acl = open_acl()) {
        auto answer = std::make_shared<Answer>();
        client->create(path, data, acl, mode, [answer](Rc rc, std::string made, const NodeStat& stat) {
            answer->rc = rc, answer->path = std::move(made), answer->stat = stat, answer->answered = true;
        });
        return answer;
    }
    Answer create(const std::string& path, CreateMode mode, const std::string& data = "",
                  const std::vector<Acl>& acl = open_acl()) {
        return wait(start_create(path, mode, data, acl));
    }
    Answer remove(const std::string& path, std::int32_t version = -1) {
        auto answer = std::make_shared<Answer>();
        client->remove(path, version, [answer](Rc rc) { answer->rc = rc, answer->answered = true; });
        return wait(answer);
    }
    std::shared_ptr<Answer> start_exists(const std::string& path, bool watch = false) {
        auto answer = std::make_shared<Answer>();
        client->exists(path, watch, [answer](Rc rc, const NodeStat& stat) {
            answer->rc = rc, answer->stat = stat, answer->answered = true;
        });
        return answer;
    }
    Answer exists(const std::string& path, bool watch = false) { return wait(start_exists(path, watch)); }
    Answer get(const std::string& path, bool watch = false) {
        auto answer = std::make_shared<Answer>();
        client->get(path, watch, [answer](Rc rc, std::string data, const NodeStat& stat) {
            answer->rc = rc, answer->data = std::move(data), answer->stat = stat, answer->answered = true;
        });
        return wait(answer);
    }
    Answer set(const std::string& path, const std::string& data, std::int32_t version = -1) {
        auto answer = std::make_shared<Answer>();
        client->set(path, data, version, [answer](Rc rc, const NodeStat& stat) {
            answer->rc = rc, answer->stat = stat, answer->answered = true;
        });
        return wait(answer);
    }
    Answer children(const std::string& path, bool watch = false) {
        auto answer = std::make_shared<Answer>();
        client->children(path, watch, [answer](Rc rc, std::vector<std::string> names, const NodeStat& stat) {
            answer->rc = rc, answer->names = std::move(names), answer->stat = stat, answer->answered = true;
        });
        return wait(answer);
    }
    std::shared_ptr<Answer> start_multi(std::vector<MultiOp> ops) {
        auto answer = std::make_shared<Answer>();
        client->multi(std::move(ops), [answer](Rc rc, std::vector<MultiResult> results) {
            answer->rc = rc, answer->results = std::move(results), answer->answered = true;
        });
        return answer;
    }
    Answer multi(std::vector<MultiOp> ops) { return wait(start_multi(std::move(ops))); }
    std::shared_ptr<Answer> start_sync(const std::string& path) {
        auto answer = std::make_shared<Answer>();
        client->sync(path, [answer](Rc rc) { answer->rc = rc, answer->answered = true; });
        return answer;
    }
    Answer sync(const std::string& path) { return wait(start_sync(path)); }
    bool close() {
        auto closed = std::make_shared<bool>(false);
        client->close([closed] { *closed = true; });
        return until([closed] { return *closed; });
    }

    World& world;
    Actor actor;
    std::shared_ptr<SimRuntime> runtime;
    SimClientFactory factory;
    std::shared_ptr<Handle> handle;
    std::shared_ptr<Client> client;
};

}  // namespace zkrecipes::sim
