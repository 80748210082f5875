// The endpoint of a program, without Prometheus: what it answers is in Prometheus' text format, and says what happened.
#include <gtest/gtest.h>
#include <prometheus/exposer.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/prometheus.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/raw_client.hpp>

#include "monitoring/http_get.hpp"
#include "support/await.hpp"
#include "support/zk_server_test.hpp"
#include "testenv/src/keeper.hpp"

namespace zkrecipes {
namespace {

using namespace std::chrono_literals;
using test::await;

/// Our samples by their series, as they are written. (The exposer has metrics of its own.) Checks the format of each
/// line.
std::map<std::string, double> samples_of(const std::string& text) {
    static const std::regex about(R"(# (HELP|TYPE) ([a-z_]+) (.+))");
    static const std::regex sample(R"raw(([a-z_]+)(\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})? (\S+))raw");
    static const std::regex suffix("_(bucket|sum|count)$");
    std::map<std::string, double> out;
    std::map<std::string, std::set<std::string>> told;  // HELP and TYPE of each family
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (std::regex_match(line, match, about)) {
            EXPECT_TRUE(told[match[2]].insert(match[1]).second) << "twice: " << line;
        } else if (std::regex_match(line, match, sample)) {
            const std::string name = match[1];
            EXPECT_TRUE(told[name].size() == 2 || told[std::regex_replace(name, suffix, "")].size() == 2) << line;
            if (!name.starts_with("zkrecipes_")) continue;
            EXPECT_TRUE(out.emplace(name + match[2].str(), std::stod(match[3])).second) << "twice: " << line;
        } else {
            ADD_FAILURE() << "not in Prometheus' format: " << line;
        }
    }
    return out;
}

class ScrapeTest : public test::ZkServerTest {
protected:
    /// One endpoint for all tests: it takes two seconds to stop.
    struct Endpoint {
        testenv::internal::AddressClaim claim{""};
        testenv::Endpoint address{claim.address(), 9464};
        ::prometheus::Exposer exposer{address.str()};
    };
    static std::unique_ptr<Endpoint>& endpoint() {
        static std::unique_ptr<Endpoint> the_endpoint;
        return the_endpoint;
    }
    static void SetUpTestSuite() { endpoint() = std::make_unique<Endpoint>(); }
    static void TearDownTestSuite() { endpoint().reset(); }

    ScrapeTest() { endpoint()->exposer.RegisterCollectable(collector_); }
    ~ScrapeTest() override { endpoint()->exposer.RemoveCollectable(collector_); }

    SessionOptions options() const {
        SessionOptions out;
        out.hosts = connect_string();
        out.name_of_path = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
        return out;
    }

    std::map<std::string, double> scrape() const {
        const auto answer = test::http_get(endpoint()->address, "/metrics");
        EXPECT_EQ(answer.status, 200);
        EXPECT_EQ(answer.content_type.substr(0, 10), "text/plain");
        return samples_of(answer.body);
    }
    /// The sample of a lock, with what is added to the labels.
    double lock_sample(const std::string& name, const std::string& more = "") const {
        const auto samples = scrape();
        const auto at = samples.find(
            name + "{session=\"s\",recipe=\"ExclusiveMutex\",mode=\"exclusive\",name=\"orders\"" + more + "}");
        return at == samples.end() ? -1 : at->second;
    }

    std::shared_ptr<PrometheusCollector> collector_ = std::make_shared<PrometheusCollector>();
};

TEST_F(ScrapeTest, TellsOfAcquiresHoldsAndLosses) {
    Session session(options());
    collector_->add("s", session);
    const std::string lock = path("orders");
    ExclusiveMutex mutex(session, lock);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(mutex.try_acquire_for(test::kMaxWait));
    Grant grant = mutex.try_acquire_for(test::kMaxWait);
    ASSERT_TRUE(grant);
    ExclusiveMutex other(session, lock);
    EXPECT_FALSE(other.try_acquire());

    EXPECT_EQ(lock_sample("zkrecipes_acquires_total", ",result=\"acquired\""), 4);
    EXPECT_EQ(lock_sample("zkrecipes_acquires_total", ",result=\"busy\""), 1);
    EXPECT_EQ(lock_sample("zkrecipes_releases_total"), 3);
    EXPECT_EQ(lock_sample("zkrecipes_held"), 1);
    EXPECT_EQ(lock_sample("zkrecipes_wait_seconds_count"), 4);
    EXPECT_EQ(lock_sample("zkrecipes_wait_seconds_bucket", ",le=\"+Inf\""), 4);
    EXPECT_EQ(lock_sample("zkrecipes_hold_seconds_count"), 3);
    EXPECT_EQ(scrape().at("zkrecipes_connected{session=\"s\"}"), 1);
    EXPECT_GT(scrape().at("zkrecipes_lease_remaining_seconds{session=\"s\"}"), 0);

    testenv::RawClient operator_(connect_string());
    ASSERT_TRUE(operator_.remove(grant.node()));
    ASSERT_TRUE(await([&] { return !grant.held(); }));
    EXPECT_TRUE(await([&] { return lock_sample("zkrecipes_losses_total", ",reason=\"node_gone\"") == 1; }));
    EXPECT_EQ(lock_sample("zkrecipes_held"), 0);
}

TEST_F(ScrapeTest, ASessionMayBeMovedAndMayGo) {
    auto session = std::make_unique<Session>(options());
    collector_->add("s", *session);
    auto moved = std::make_unique<Session>(std::move(*session));
    session.reset();
    ASSERT_TRUE(moved->wait_connected(test::kMaxWait));
    EXPECT_EQ(scrape().at("zkrecipes_connected{session=\"s\"}"), 1);
    ExclusiveMutex mutex(*moved, path("orders"));  // outlives the session
    moved.reset();
    EXPECT_TRUE(scrape().empty());
    Session next(options());
    collector_->add("s", next);
    EXPECT_FALSE(scrape().empty());
}

TEST_F(ScrapeTest, ASessionThatTheServersRefuseIsSeen) {
    SessionOptions refused = options();
    refused.auth = {{"nosuchscheme", "x"}};
    Session session(refused);
    collector_->add("s", session);
    ASSERT_TRUE(await([&] { return session.state() == SessionState::closed; }));
    EXPECT_EQ(scrape().at("zkrecipes_connected{session=\"s\"}"), 0) << "it is closed, but not by its program";
    session.close();
    EXPECT_FALSE(scrape().empty());
    EXPECT_THROW(collector_->add("s", session), Error) << "it is still there";
}

TEST_F(ScrapeTest, ASessionThatItsProgramClosesIsSeenNoMore) {
    Session session(options());
    collector_->add("s", session);
    EXPECT_FALSE(scrape().empty());
    session.close();
    EXPECT_TRUE(scrape().empty());
    Session moved = std::move(session);
    EXPECT_THROW(collector_->add("t", session), Error) << "moved from";  // NOLINT
}

TEST_F(ScrapeTest, AForkedChildHasNoNumbers) {
    Session session(options());
    const auto source = stats_source(session);
    EXPECT_TRUE(source());
    const pid_t child = ::fork();
    if (child == 0) ::_exit(source() ? 1 : 0);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(ScrapeTest, ScrapesMayHappenAtAnyTime) {
    std::optional<Session> session(options());
    collector_->add("s", *session);
    std::atomic<int> scrapes = 0;
    std::jthread scraper([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            (void)collector_->Collect();
            ++scrapes;
        }
    });
    ExclusiveMutex mutex(*session, path("orders"));
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(mutex.try_acquire_for(test::kMaxWait));
    session.reset();
    const int before = scrapes;
    EXPECT_TRUE(await([&] { return scrapes > before; }));
}

}  // namespace
}  // namespace zkrecipes
