#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "fake_server/engine.hpp"

namespace zkrecipes::fake {

/// A handle whose simulated client lives on the world's thread. Any thread may call it.
class PostedClient final : public internal::Client {
public:
    PostedClient(std::shared_ptr<Engine> engine, Process& process, std::shared_ptr<internal::Runtime> runtime,
                 const internal::ClientOptions& options, std::shared_ptr<internal::ClientEvents> events);
    ~PostedClient() override;

    void create(std::string path, std::string data, const std::vector<Acl>& acl, internal::CreateMode mode,
                CreateDone done) override;
    void remove(const std::string& path, std::int32_t version, VoidDone done) override;
    void exists(const std::string& path, bool watch, StatDone done) override;
    void get(const std::string& path, bool watch, GetDone done) override;
    void set(const std::string& path, const std::string& data, std::int32_t version, StatDone done) override;
    void children(const std::string& path, bool watch, ChildrenDone done) override;
    void multi(std::vector<internal::MultiOp> ops, MultiDone done) override;
    void sync(const std::string& path, VoidDone done) override;
    void heartbeat(const std::vector<std::string>& nodes, MultiDone done) override;
    void nudge(StatDone done) override;
    void remove_watches(const std::string& path, VoidDone done) override;
    void add_auth(const Auth& auth) override;
    void set_servers(const std::vector<std::string>&) override {}  // there is one
    void close(std::function<void()> done) override;
    internal::ClientStatus status() const override;

private:
    struct Slot;
    class Events;
    /// Runs `ask` with the simulated client. Once the world's thread has ended, `refuse` answers.
    template <class Ask, class Refuse>
    void post(Ask ask, Refuse refuse);

    const std::shared_ptr<internal::Runtime> runtime_;
    const std::shared_ptr<Events> events_;
    std::shared_ptr<Slot> slot_;
};

/// Opens the handles of one session.
class PostedClientFactory final : public internal::ClientFactory {
public:
    PostedClientFactory(std::shared_ptr<Engine> engine, Process& process, std::shared_ptr<internal::Runtime> runtime)
        : engine_(std::move(engine)), process_(process), runtime_(std::move(runtime)) {}
    std::shared_ptr<internal::Client> open(const internal::ClientOptions& options,
                                           std::shared_ptr<internal::ClientEvents> events) override {
        return std::make_shared<PostedClient>(engine_, process_, runtime_, options, std::move(events));
    }

private:
    const std::shared_ptr<Engine> engine_;
    Process& process_;  // the engine's
    const std::shared_ptr<internal::Runtime> runtime_;
};

}  // namespace zkrecipes::fake
