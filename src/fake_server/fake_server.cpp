#include <algorithm>
#include <utility>

#include <zkrecipes/testing.hpp>

#include "fake_server/engine.hpp"
#include "fake_server/fake_runtime.hpp"
#include "fake_server/faults.hpp"
#include "fake_server/posted_client.hpp"
#include "session/for_testing.hpp"

namespace zkrecipes::testkit {

using fake::Engine;
using fake::Process;
using sim::Verdict;
using zkrecipes::internal::ForTesting;

struct FakeServer::State {
    explicit State(Time time) : engine(Engine::start(time == Time::manual)) {
        engine->run([this] {
            engine->ensemble().judge = [this](const sim::Actor& client, const sim::Request& request) {
                return verdict_on(client, request);
            };
        });
    }
    ~State() {
        engine->run([this] { engine->ensemble().judge = nullptr; });
        engine->leave();
    }

    Process* process_of(const void* session) const {
        for (const auto& process : engine->processes()) {
            if (process->session == session && session != nullptr) return process.get();
        }
        return nullptr;
    }
    Verdict verdict_on(const sim::Actor& client, const sim::Request& request) {
        if (faults.empty()) return {};
        const void* session = nullptr;
        for (const auto& process : engine->processes()) {
            if (&process->actor == &client) session = process->session;
        }
        const auto hit = std::find_if(faults.begin(), faults.end(),
                                      [&](const auto& fault) { return fault->takes(session, request); });
        if (hit == faults.end()) return {};
        const Verdict verdict = (*hit)->verdict;
        faults.erase(hit);
        return verdict;
    }
    void cut(Process& process) {
        process.cut = true;
        engine->ensemble().network().reset(process.actor, -1);
    }
    Fault add(const Match& match, Verdict verdict) {
        const auto state = std::make_shared<internal::FaultState>(match, verdict);
        engine->run([&] { faults.push_back(state); });
        return Fault(state);
    }
    /// What `look` finds in the tree, once the sessions have come to rest.
    template <class Look>
    auto look(Look look) const {
        engine->settle();
        decltype(look(std::declval<const sim::DataTree&>())) found{};
        engine->run([&] { found = look(engine->ensemble().committed()); });
        return found;
    }
    void change(std::function<void(sim::SimEnsemble&)> what) const {
        engine->run([&] { what(engine->ensemble()); });
        engine->settle();
    }

    const std::shared_ptr<Engine> engine;
    bool cut_all = false;                                       // the world's thread
    std::vector<std::shared_ptr<internal::FaultState>> faults;  // the world's thread
};

FakeServer::FakeServer(Time time) : state_(std::make_unique<State>(time)) {}
FakeServer::~FakeServer() = default;

Session FakeServer::session(SessionOptions options) {
    const auto& engine = state_->engine;
    const auto slash = options.hosts.find('/');
    options.hosts = "fake:2181" + (slash == std::string::npos ? std::string() : options.hosts.substr(slash));
    Process* process = nullptr;
    engine->run([&] {
        process = &engine->add_process();
        process->cut = state_->cut_all;
    });
    const auto runtime = std::make_shared<fake::FakeRuntime>(engine);
    auto opened = ForTesting::open(std::move(options), runtime,
                                   std::make_shared<fake::PostedClientFactory>(engine, *process, runtime));
    engine->run([&] {
        process->session = opened.id;
        process->closing = std::move(opened.closing);
        process->check_holds = std::move(opened.check_holds);
    });
    engine->settle();
    return std::move(opened.session);
}

void FakeServer::advance(std::chrono::nanoseconds by) { state_->engine->advance(by); }

void FakeServer::expire(const Session& session) {
    state_->change([&](sim::SimEnsemble& ensemble) {
        if (state_->process_of(ForTesting::id_of(session)) != nullptr) ensemble.expire(session.info().session_id);
    });
}

void FakeServer::lose(const Grant& grant) {
    const auto& engine = state_->engine;
    std::function<void()> check;
    state_->change([&](sim::SimEnsemble& ensemble) {
        for (const auto& process : engine->processes()) {
            for (const auto& weak : process->clients) {
                const auto client = weak.lock();
                if (client == nullptr || client->status().session_id != grant.session_id()) continue;
                for (const auto& node : grant.nodes()) ensemble.remove(node);
                check = process->check_holds;
            }
        }
    });
    if (!check) return;
    check();
    engine->settle();
}

void FakeServer::cut() {
    state_->change([this](sim::SimEnsemble&) {
        state_->cut_all = true;
        for (const auto& process : state_->engine->processes()) state_->cut(*process);
    });
}

void FakeServer::cut(const Session& session) {
    state_->change([this, id = ForTesting::id_of(session)](sim::SimEnsemble&) {
        if (Process* const process = state_->process_of(id)) state_->cut(*process);
    });
}

void FakeServer::heal() {
    state_->change([this](sim::SimEnsemble&) {
        state_->cut_all = false;
        for (const auto& process : state_->engine->processes()) {
            process->cut = false;
            for (const auto& weak : process->clients) {
                if (const auto client = weak.lock()) client->hurry();
            }
        }
    });
}

Fault FakeServer::cut_before(const Match& request) { return state_->add(request, {Verdict::Kind::lose_request}); }
Fault FakeServer::cut_after(const Match& request) { return state_->add(request, {Verdict::Kind::lose_reply}); }
Fault FakeServer::refuse(const Match& request, Refusal with) {
    return state_->add(request, {Verdict::Kind::refuse, static_cast<sim::Rc>(with)});
}

void FakeServer::exists_needs_read(bool yes) {
    state_->change([=](sim::SimEnsemble& ensemble) { ensemble.faults().exists_needs_read = yes; });
}

bool FakeServer::exists(const std::string& path) const {
    return state_->look([&](const sim::DataTree& tree) { return tree.find(path) != nullptr; });
}

std::optional<std::string> FakeServer::data(const std::string& path) const {
    return state_->look([&](const sim::DataTree& tree) {
        const sim::Node* const node = tree.find(path);
        return node == nullptr ? std::nullopt : std::optional(node->data);
    });
}

std::vector<std::string> FakeServer::children(const std::string& path) const {
    return state_->look([&](const sim::DataTree& tree) {
        const sim::Node* const node = tree.find(path);
        return node == nullptr ? std::vector<std::string>()
                               : std::vector<std::string>(node->children.begin(), node->children.end());
    });
}

void FakeServer::write(const std::string& path, const std::string& data) const {
    state_->change([&](sim::SimEnsemble& ensemble) {
        for (auto slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
            ensemble.make(path.substr(0, slash));
        ensemble.make(path);
        ensemble.write(path, data);
    });
}

void FakeServer::remove(const std::string& path) const {
    state_->change([&](sim::SimEnsemble& ensemble) { ensemble.remove(path); });
}

bool FakeServer::await(const std::function<bool()>& condition, std::chrono::milliseconds within) const {
    return state_->engine->await(condition, within);
}

}  // namespace zkrecipes::testkit
