#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "testing/ensemble.hpp"
#include "testing/sim_client.hpp"
#include "testing/sim_runtime.hpp"

namespace zkrecipes::sim {

/// A client of the ensemble that is none of the library's. A session that is over is followed by another.
class RawClient {
public:
    RawClient(SimEnsemble& ensemble, const std::string& name, std::int64_t timeout_ms)
        : timeout_ms_(timeout_ms),
          ensemble_(ensemble),
          actor_(ensemble.world(), name, 0),
          runtime_(std::make_shared<SimRuntime>(actor_, RuntimeShape{})),
          clients_(ensemble, actor_, runtime_) {
        open();
    }

    Client& client() {
        if (client_->status().state == ClientState::expired) open();
        return *client_;
    }
    Actor& actor() noexcept { return actor_; }
    bool connected() const { return client_->status().state == ClientState::connected; }
    /// Now or formerly.
    bool owns(SessionId session) const { return session != 0 && events_->sessions.contains(session); }
    /// Whatever is open is answered, and nothing of this session stays.
    void begin_anew() {
        close();
        open();
    }
    void close() {
        client_->close([] {});
    }

private:
    struct Events final : ClientEvents {
        std::set<SessionId> sessions;
        void on_status(const ClientStatus& status) override { sessions.insert(status.session_id); }
        void on_watch(WatchEventType, const std::string&) override {}
        void on_auth(Rc) override {}
    };

    void open() {
        ClientOptions options;
        options.hosts = ensemble_.hosts();
        options.timeout = std::chrono::milliseconds(timeout_ms_);
        client_ = clients_.open(options, events_);
    }

    const std::int64_t timeout_ms_;
    SimEnsemble& ensemble_;
    Actor actor_;
    std::shared_ptr<SimRuntime> runtime_;
    SimClientFactory clients_;
    const std::shared_ptr<Events> events_ = std::make_shared<Events>();
    std::shared_ptr<Client> client_;
};

}  // namespace zkrecipes::sim
