// Services on ZooKeeper servers, a real Prometheus that scrapes them, and faults. What is wrong is found out from the
// metrics alone: the diagnoses below use nothing but queries. The alert rules of monitoring/ fire, and only for those
// services that are not well.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "monitoring/prometheus_server.hpp"
#include "support/await.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using testenv::internal::AddressClaim;
using testenv::internal::ChildProcess;
using Labels = PrometheusServer::Labels;

/// One process of examples/metrics_service.cpp, with a network of its own to the servers.
struct Service {
    AddressClaim claim{""};
    testenv::Endpoint endpoint{claim.address(), 9464};
    std::unique_ptr<testenv::Gate> own_gate;
    ChildProcess process;
};

class MonitoringTrial : public testing::Test {
protected:
    /// Everything is started once. Each service is started by the test that is about it.
    static void SetUpTestSuite() {
        if (!why_no_zookeeper().empty() || !PrometheusServer::is_installed()) return;
        world() = std::make_unique<World>();
    }
    static void TearDownTestSuite() { world().reset(); }

    void SetUp() override {
        ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
        if (!PrometheusServer::is_installed()) GTEST_SKIP() << "the Debian package prometheus is not installed";
    }

    struct World {
        World() {
            std::vector<PrometheusServer::Target> targets;
            for (const char* name : {"well", "flapping-1", "flapping-2", "contended-1", "contended-2", "losing",
                                     "stuck", "waiting", "cut-off"}) {
                const bool flaps = std::string(name).starts_with("flapping");
                Service& service = services[name];
                targets.push_back({service.endpoint, {{"service", name}, {"ensemble", flaps ? "west" : "east"}}});
            }
            prometheus = std::make_unique<PrometheusServer>(hurried_rules(), targets);
        }

        testenv::ZkServer server;
        testenv::Gate west{server.endpoint()};  // in front of a server that flaps
        testenv::Scratch scratch;
        std::map<std::string, Service> services;
        std::unique_ptr<PrometheusServer> prometheus;
    };
    static std::unique_ptr<World>& world() {
        static std::unique_ptr<World> the_world;
        return the_world;
    }

    static Service& service(const std::string& name) { return world()->services.at(name); }

    /// Starts a service with a gate of its own, or behind one that others use, too. Returns when Prometheus has seen it
    /// connected.
    static void start(const std::string& name, const std::vector<std::string>& jobs, testenv::Gate* gate = nullptr) {
        Service& service = world()->services.at(name);
        if (gate == nullptr) {
            service.own_gate = std::make_unique<testenv::Gate>(world()->server.endpoint());
            gate = service.own_gate.get();
        }
        std::vector<std::string> command{ZKRECIPES_METRICS_SERVICE, gate->connect_string(), service.endpoint.str(),
                                         "10000"};
        command.insert(command.end(), jobs.begin(), jobs.end());
        service.process = ChildProcess({.argv = command,
                                        .environment = {},
                                        .directory = world()->scratch.path(),
                                        .log = world()->scratch / (name + ".log")});
        ASSERT_TRUE(await([&] { return one("zkrecipes_connected{service=\"" + name + "\"}") == 1; })) << name;
        ASSERT_TRUE(await([&] { return one("sum(zkrecipes_held{service=\"" + name + "\"})").has_value(); })) << name;
    }

    static std::vector<PrometheusServer::Sample> query(const std::string& promql) {
        return world()->prometheus->query(promql);
    }
    /// The value if the answer has one sample.
    static std::optional<double> one(const std::string& promql) {
        const auto samples = query(promql);
        return samples.size() == 1 ? std::optional(samples[0].value) : std::nullopt;
    }
    /// The label if the answer has one sample.
    static std::string named(const std::string& promql, const std::string& label) {
        const auto samples = query(promql);
        if (samples.size() != 1) return std::to_string(samples.size()) + " samples";
        const auto at = samples[0].labels.find(label);
        return at == samples[0].labels.end() ? "none" : at->second;
    }

    static bool is_subset(const Labels& part, const Labels& whole) {
        return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
    }
    static bool fires(const std::string& alert, Labels labels) {
        labels["alertname"] = alert;
        const auto firing = world()->prometheus->firing();
        return std::any_of(firing.begin(), firing.end(), [&](const Labels& each) { return is_subset(labels, each); });
    }
    /// A condition about metrics: Prometheus looks twice a second, and its rules look back 10 s or 15 s. A service that
    /// answers a look too late has no metrics until the next one.
    template <class Condition>
    static bool await_metrics(Condition condition) {
        return await(condition, 4 * kMaxWait);
    }

    void TearDown() override {
        if (HasFailure() && world()) {
            for (const Labels& alert : world()->prometheus->firing()) {
                std::cerr << "fires:";
                for (const auto& [name, value] : alert) std::cerr << ' ' << name << '=' << value;
                std::cerr << '\n';
            }
            std::cerr << world()->prometheus->log();
        }
    }
};

TEST_F(MonitoringTrial, AServiceThatIsWell) {
    start("well", {"backup:20:10000"});
    EXPECT_TRUE(await_metrics([] { return one("sum(zkrecipes_acquires_total{name=\"backup\"})") > 20; }));
    EXPECT_TRUE(await_metrics([] { return one("min(zkrecipes_connected)") == 1; }));
    EXPECT_TRUE(await_metrics([] { return one("max(zkrecipes_session_timeout_seconds)") == 10; }));
}

TEST_F(MonitoringTrial, AContendedLock) {
    start("contended-1", {"orders:900:1000", "orders:900:1000", "orders:900:1000"});
    start("contended-2", {"orders:900:1000", "orders:900:1000", "orders:900:1000"});

    // Which lock? The one for which the most calls get nothing; and it is most of its calls.
    const std::string calls = "sum by (name) (increase(zkrecipes_acquires_total[10s]))";
    const std::string busy = "sum by (name) (increase(zkrecipes_acquires_total{result=\"busy\"}[10s]))";
    EXPECT_TRUE(
        await_metrics([&] { return named("topk(1, " + busy + " / " + calls + " > 0.5)", "name") == "orders"; }));
    // Who takes part? The processes that wait for it.
    EXPECT_TRUE(await_metrics([] {
        return one("count(max_over_time(zkrecipes_waiting{name=\"orders\"}[10s]) > 0)") == 2 &&
               query("max_over_time(zkrecipes_waiting{name!=\"orders\"}[10s]) > 1").empty();
    }));
    // Why? The holds are long, compared with what the callers wait: at least half of them take from 0.5 s to 1 s.
    EXPECT_TRUE(await_metrics([] {
        const auto half =
            one("histogram_quantile(0.5, sum by (le) (rate(zkrecipes_hold_seconds_bucket{name=\"orders\"}[10s])))");
        return half > 0.5 && half <= 1.0;
    }));
    // Not because of the servers: everybody is connected, and heartbeats are fast.
    EXPECT_TRUE(await_metrics([] { return one("min(zkrecipes_connected)") == 1; }));
    EXPECT_TRUE(await_metrics([] { return fires("ZkrecipesLockContended", {{"name", "orders"}}); }));
    EXPECT_FALSE(fires("ZkrecipesLockStuck", {})) << "somebody gets it now and then";
}

TEST_F(MonitoringTrial, AFlappingServer) {
    start("flapping-1", {"mail:10:1000"}, &world()->west);
    start("flapping-2", {"mail:10:1000"}, &world()->west);
    const auto flap = [] {
        // As soon as both are connected again.
        if (world()->west.connection_count() == 2) world()->west.reset_all();
    };
    // Which sessions? Is it the server, that is: is it the same for all sessions of that server, and for no other?
    const std::string flapping = "increase(zkrecipes_suspensions_total[10s]) > 3";
    EXPECT_TRUE(await_metrics([&] {
        flap();
        return named("count by (ensemble) (" + flapping + ") == count by (ensemble) (zkrecipes_connected)",
                     "ensemble") == "west" &&
               query("increase(zkrecipes_suspensions_total{ensemble!=\"west\"}[10s]) > 0").empty();
    }));
    EXPECT_TRUE(await_metrics([&] {
        flap();
        return fires("ZkrecipesConnectionFlaps", {{"service", "flapping-1"}}) &&
               fires("ZkrecipesConnectionFlaps", {{"service", "flapping-2"}});
    }));
    // The sessions survived, so nothing was lost.
    EXPECT_TRUE(query("increase(zkrecipes_losses_total{ensemble=\"west\"}[1m]) > 0").empty());
    EXPECT_TRUE(await_metrics([] { return !fires("ZkrecipesConnectionFlaps", {}); })) << "it is over";
}

TEST_F(MonitoringTrial, ALostHold) {
    start("losing", {"ledger:3600000:10000"});
    ASSERT_TRUE(await_metrics([] { return one("zkrecipes_held{name=\"ledger\"}") == 1; }));
    testenv::RawClient other(world()->server.connect_string());
    const auto nodes = other.children("/jobs/ledger");
    ASSERT_TRUE(nodes && nodes->size() == 1);
    ASSERT_TRUE(other.remove("/jobs/ledger/" + nodes->front()));

    // Who lost which lock, and why?
    const std::string losses = "increase(zkrecipes_losses_total[10s]) > 0";
    EXPECT_TRUE(await_metrics([&] {
        return named(losses, "service") == "losing" && named(losses, "name") == "ledger" &&
               named(losses, "reason") == "node_gone";
    }));
    // Was it the session? No: there is still the first one, and it has the lock again.
    EXPECT_TRUE(await_metrics([] { return one("zkrecipes_sessions_total{service=\"losing\"}") == 1; }));
    EXPECT_TRUE(await_metrics([] { return one("zkrecipes_held{name=\"ledger\"}") == 1; }));
    EXPECT_TRUE(await_metrics([] {
        return fires("ZkrecipesHoldLost", {{"name", "ledger"}, {"reason", "node_gone"}});
    }));

    // A session that the servers end.
    ASSERT_TRUE(service("losing").own_gate->expire(service("losing").own_gate->sessions().back()));
    EXPECT_TRUE(
        await_metrics([] { return one("zkrecipes_losses_total{name=\"ledger\",reason=\"session_ended\"}") == 1; }));
    EXPECT_TRUE(await_metrics([] { return one("zkrecipes_sessions_total{service=\"losing\"}") == 2; }));
    EXPECT_TRUE(await_metrics([] { return fires("ZkrecipesHoldLost", {{"reason", "session_ended"}}); }));
    EXPECT_FALSE(fires("ZkrecipesHoldLost", {{"service", "well"}}));
}

TEST_F(MonitoringTrial, AHolderThatNeverReleases) {
    start("stuck", {"import:3600000:3600000"});
    ASSERT_TRUE(await_metrics([] { return one("zkrecipes_held{name=\"import\"}") == 1; }));
    start("waiting", {"import:10:3600000"});
    EXPECT_TRUE(await_metrics([] { return fires("ZkrecipesLockStuck", {{"name", "import"}}); }));
    EXPECT_TRUE(await_metrics([] { return named("zkrecipes_held{name=\"import\"} > 0", "service") == "stuck"; }));
    EXPECT_TRUE(await_metrics([] { return named("zkrecipes_waiting{name=\"import\"} > 0", "service") == "waiting"; }));
    EXPECT_FALSE(fires("ZkrecipesLockStuck", {{"name", "backup"}}));
    // The holder ends: its session is closed, and the waiting one works.
    service("stuck").process.signal(SIGTERM);
    EXPECT_TRUE(await_metrics([] { return !fires("ZkrecipesLockStuck", {}); }));
}

TEST_F(MonitoringTrial, AServiceThatReachesNoServer) {
    start("cut-off", {"report:3600000:1000"});
    ASSERT_TRUE(await_metrics([] { return one("zkrecipes_held{name=\"report\"}") == 1; }));
    service("cut-off").own_gate->blackhole();
    EXPECT_TRUE(await_metrics([] { return fires("ZkrecipesNoServer", {{"service", "cut-off"}}); }));
    EXPECT_TRUE(await_metrics([] { return named("zkrecipes_connected == 0", "service") == "cut-off"; }))
        << "the others are connected";
    EXPECT_TRUE(await_metrics([] {
        return one("sum(zkrecipes_losses_total{name=\"report\",reason!=\"closed\"})") == 1;
    })) << "its lease ends";
    EXPECT_TRUE(await_metrics([] {
        return fires("ZkrecipesAcquiresFail", {{"service", "cut-off"}, {"result", "unreachable"}});
    })) << "it tries again and again";
    service("cut-off").own_gate->pass();
    EXPECT_TRUE(await_metrics([] { return !fires("ZkrecipesNoServer", {}); }));
}

TEST_F(MonitoringTrial, AServiceThatIsWellRaisedNoAlert) {
    EXPECT_TRUE(query("ALERTS{service=\"well\"}").empty());
    EXPECT_TRUE(query("max_over_time(ALERTS{service=\"well\",alertstate=\"firing\"}[1h])").empty());
    EXPECT_TRUE(query("max_over_time(ALERTS{name=\"backup\",alertstate=\"firing\"}[1h])").empty());
    EXPECT_TRUE(
        await_metrics([] { return one("sum(zkrecipes_acquires_total{name=\"backup\",result=\"acquired\"})") > 0; }));
}

}  // namespace
}  // namespace zkrecipes::test
