// The endpoint of a program, without Prometheus: what it answers is in Prometheus' text format, and says what happened.
#include <gtest/gtest.h>
#include <prometheus/exposer.h>

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
    ScrapeTest() { exposer_.RegisterCollectable(collector_); }

    SessionOptions options() const {
        SessionOptions out;
        out.hosts = connect_string();
        out.name_of_path = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
        return out;
    }

    std::map<std::string, double> scrape() const {
        const auto answer = test::http_get(endpoint_, "/metrics");
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

    testenv::internal::AddressClaim claim_{""};
    testenv::Endpoint endpoint_{claim_.address(), 9464};
    std::shared_ptr<PrometheusCollector> collector_ = std::make_shared<PrometheusCollector>();
    ::prometheus::Exposer exposer_{endpoint_.str()};
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
