#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session/session_core.hpp"
#include "support/fake_client.hpp"
#include "support/fake_runtime.hpp"

namespace zkrecipes::testing {

/// Answers probes when the test says so.
class FakeProbe final : public ServerProbe {
public:
    void probe(std::vector<std::string> hosts, std::chrono::milliseconds limit, Done done) override {
        asked.push_back(std::move(hosts));
        limits.push_back(limit);
        waiting.push_back(std::move(done));
    }
    /// `awake`: all that are not frozen; without it: these alone.
    void answer(const std::vector<std::string>& hosts, const std::vector<std::string>& awake = {}) {
        auto done = std::move(waiting.back());
        waiting.pop_back();
        done({.best = hosts, .awake = awake.empty() ? hosts : awake});
    }
    std::vector<std::vector<std::string>> asked;
    std::vector<std::chrono::milliseconds> limits;
    std::vector<Done> waiting;
};

/// Writes down what an observer is told.
class RecordingObserver final : public SessionObserver {
public:
    void on_connected(bool same) override {
        told.push_back(same ? "connected again" : "connected");
        act();
    }
    void on_suspended() override {
        told.push_back("suspended");
        act();
    }
    void on_session_lost() override {
        told.push_back("lost");
        act();
    }
    void on_closed(const Error& why) override {
        told.push_back("closed");
        why_closed = why.errc();
        act();
    }
    std::vector<std::string> told;
    Errc why_closed{};
    std::function<void()> then;

private:
    void act() {
        if (then) then();
    }
};

/// A SessionCore on a fake runtime and scripted handles, in one thread.
class SessionTest : public ::testing::Test {
protected:
    SessionTest() {
        // A death test runs in a new process: in a forked one the session would be the parent's, and not usable.
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        options.hosts = "a:1,b:2,c:3";
        options.timeout = std::chrono::milliseconds(6000);
        options.server_tick = std::chrono::milliseconds(2000);
        options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    }
    ~SessionTest() override { destroy(); }

    void open() {
        SessionCore::Environment environment;
        environment.runtime = runtime;
        environment.clients = clients;
        environment.probe = probe;
        environment.settings = settings;
        core = SessionCore::open(options, environment);
    }
    void open_connected(std::int64_t session_id = kFirstSession) {
        open();
        client().connect(session_id);
        runtime->run();
    }
    void destroy() {
        if (core) runtime->while_running([this] { core.reset(); });
        runtime->run();
        for (const auto& each : clients->clients) each->forget();
        // A probe answers in the end. This one would keep the session, which keeps the probe.
        if (probe) probe->waiting.clear();
    }
    FakeClient& client() { return clients->last(); }
    void inside(const std::function<void()>& work) { core->run_locked(work); }
    Instant now() const { return runtime->now(); }

    /// A hold on a node that was just created: the lease starts now.
    std::shared_ptr<Hold> hold(const std::string& node, std::int64_t czxid = 7) {
        std::shared_ptr<Hold> out;
        inside([&] {
            core->lease_committed(now());
            out = core->begin_hold(node, czxid);
        });
        return out;
    }
    /// The servers commit the checks that are open.
    int commit_heartbeats() {
        int answered = 0;
        for (Request request = client().take("multi"); request.answer; request = client().take("multi")) {
            Reply reply;
            reply.results.resize(request.ops.size());
            request.answer(reply);
            ++answered;
        }
        runtime->run();
        return answered;
    }

    /// What a check of `size` nodes is answered when one is gone.
    static Reply refusal_at(std::size_t failed, std::size_t size) {
        Reply reply;
        reply.rc = Rc::no_node;
        reply.results.resize(size);
        for (std::size_t i = failed; i < size; ++i) reply.results[i].rc = Rc::runtime_inconsistency;
        reply.results[failed].rc = Rc::no_node;
        return reply;
    }

    SessionOptions options;
    std::shared_ptr<FakeRuntime> runtime = std::make_shared<FakeRuntime>();
    std::shared_ptr<FakeClientFactory> clients = std::make_shared<FakeClientFactory>(runtime);
    std::shared_ptr<FakeProbe> probe;
    std::shared_ptr<SettingsProbe> settings;
    std::shared_ptr<SessionCore> core;
};

}  // namespace zkrecipes::testing
