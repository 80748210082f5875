#include "sim/client_process.hpp"

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace zkrecipes::sim {

namespace {

/// The library's log lines become lines of the trace.
class TraceSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
    explicit TraceSink(Actor& actor) : actor_(actor) {}

private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        actor_.world().note_text(&actor_, "log: " + std::string(message.payload.data(), message.payload.size()));
    }
    void flush_() override {}
    Actor& actor_;
};

/// Finds out which servers answer, as connecting to all of them at once does.
class SimProbe final : public internal::ServerProbe {
public:
    SimProbe(SimEnsemble& ensemble, Actor& process)
        : ensemble_(ensemble), process_(process), rng_(ensemble.world().fork("probe " + process.name())) {}
    void probe(std::vector<std::string> hosts, std::chrono::milliseconds limit, Done done) override {
        const SimTime delay = rng_.between(kMilli, limit.count() * kMilli);
        ensemble_.world().in(delay, &process_, [this, hosts = std::move(hosts), done = std::move(done)] {
            Found serving, leaderless{.leaderless = true}, accepting;
            std::vector<std::string> awake;
            for (const std::string& host : hosts) {
                SimServer* const server = ensemble_.find(host);
                if (server == nullptr || !server->alive() || ensemble_.network().blocked(process_, server->id()))
                    continue;
                Found& found = server->actor().paused() ? accepting : server->serving() ? serving : leaderless;
                found.best.push_back(host);
                if (&found != &accepting) awake.push_back(host);
            }
            Found& found = !serving.best.empty() ? serving : !leaderless.best.empty() ? leaderless : accepting;
            found.awake = std::move(awake);
            done(found);
        });
    }

private:
    SimEnsemble& ensemble_;
    Actor& process_;
    Rng rng_;
};

constexpr std::int64_t kWorst = 9000;  // millionths; A3 allows 10000

std::int64_t rate_of(const Plan& plan, int number) {
    if (!plan.has(Fault::skewed_clocks)) return 0;
    Rng rng = Rng(plan.seed).fork("rate " + std::to_string(number));
    return rng.one_in(2) ? rng.between(-kWorst, kWorst) : rng.one_in(2) ? kWorst : -kWorst;
}

/// The real number is larger. With a small one a list is held back far more often than in a real crowd.
std::size_t lists_of(const Plan& plan, int number) {
    Rng rng = Rng(plan.seed).fork("lists " + std::to_string(number));
    return rng.one_in(2) ? 1 + rng.below(2) : 8;
}

RuntimeShape shape_of(const Plan& plan) {
    RuntimeShape shape;
    if (plan.has(Fault::slow_listeners)) shape.slow_notifier_one_in = 4;
    return shape;
}

}  // namespace

ClientProcess::ClientProcess(SimEnsemble& ensemble, const Plan& plan, int number)
    : ensemble_(ensemble),
      number_(number),
      actor_(ensemble.world(), "p" + std::to_string(number), rate_of(plan, number)),
      runtime_(std::make_shared<SimRuntime>(actor_, shape_of(plan))),
      clients_(std::make_shared<SimClientFactory>(ensemble, actor_, runtime_)) {
    SessionOptions options;
    for (const std::string& host : ensemble.hosts()) options.hosts += (options.hosts.empty() ? "" : ",") + host;
    options.timeout = std::chrono::milliseconds(plan.timeout_ms);
    if (plan.tick_known) options.server_tick = std::chrono::milliseconds(plan.tick_ms);
    options.logger = std::make_shared<spdlog::logger>(
        "simulation", ensemble.world().tracing() ? spdlog::sinks_init_list{std::make_shared<TraceSink>(actor_)}
                                                 : spdlog::sinks_init_list{});
    options.logger->set_level(ensemble.world().tracing() ? spdlog::level::debug : spdlog::level::off);
    internal::SessionCore::Environment environment;
    environment.runtime = runtime_;
    environment.clients = clients_;
    if (plan.probe) environment.probe = std::make_shared<SimProbe>(ensemble, actor_);
    environment.lists_at_once = lists_of(plan, number);
    auto core = internal::SessionCore::open(std::move(options), std::move(environment));
    core_ = core;
    session_ = std::make_unique<Session>(internal::SessionAccess::make(std::move(core)));
}

ClientProcess::~ClientProcess() = default;

void ClientProcess::die() {
    if (std::exchange(dead_, true)) return;
    actor_.world().note(&actor_, "dies");
    ensemble_.network().cut_off(actor_);
}

std::shared_ptr<SimClient> ClientProcess::client() const {
    const auto clients = clients_->clients();
    return clients.empty() ? nullptr : clients.back();
}

void ClientProcess::end_session() {
    session_->close();
    session_ = nullptr;
}

std::string ClientProcess::leftovers() const {
    const auto core = core_.lock();
    std::string text;
    if (core && !dead_) core->run_locked([&] { text = core->leftovers(); });
    return text;
}

std::string ClientProcess::leaks() const {
    std::string text;
    if (!core_.expired()) text += " a session core (" + std::to_string(core_.use_count()) + " references)";
    for (const auto& client : clients_->clients()) {
        text += " a handle (" + std::to_string(client.use_count() - 1) + " references)";
    }
    return text;
}

}  // namespace zkrecipes::sim
