#include "monitoring/src/families.hpp"

#include <gmock/gmock.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/prometheus.hpp>

#include "monitoring/full_stats.hpp"

namespace zkrecipes::internal {
namespace {

using ::prometheus::ClientMetric;
using ::prometheus::MetricFamily;
using ::prometheus::MetricType;
using test::full_stats;

const MetricFamily* find(const std::vector<MetricFamily>& families, const std::string& name) {
    for (const MetricFamily& family : families) {
        if (family.name == name) return &family;
    }
    return nullptr;
}

std::string label(const ClientMetric& metric, const std::string& name) {
    for (const auto& each : metric.label) {
        if (each.name == name) return each.value;
    }
    return "(none)";
}

double value_of(const MetricFamily& family, const ClientMetric& metric) {
    return family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value;
}

/// The value of the only metric that has this label; without a label: of the only metric.
double value(const std::string& name, const std::string& label_name = "", const std::string& label_value = "") {
    const auto families = metric_families({{"s", full_stats()}});
    const MetricFamily* family = find(families, name);
    if (family == nullptr) return std::nan("");
    double out = std::nan("");
    int found = 0;
    for (const ClientMetric& metric : family->metric) {
        if (!label_name.empty() && label(metric, label_name) != label_value) continue;
        out = value_of(*family, metric);
        ++found;
    }
    return found == 1 ? out : std::nan("");
}

TEST(MetricFamiliesTest, EveryNumberOfASessionIsInItsMetric) {
    const SessionStats stats = full_stats();
    EXPECT_EQ(value("zkrecipes_connected"), 1);
    EXPECT_EQ(value("zkrecipes_connects_total"), stats.connects);
    EXPECT_EQ(value("zkrecipes_suspensions_total"), stats.suspensions);
    EXPECT_EQ(value("zkrecipes_sessions_total"), stats.sessions);
    EXPECT_EQ(value("zkrecipes_heartbeats_refused_total"), stats.heartbeats_refused);
    EXPECT_EQ(value("zkrecipes_stalled_replies_total"), stats.stalled_replies);
    EXPECT_EQ(value("zkrecipes_events_dropped_total"), stats.events_dropped);
    EXPECT_EQ(value("zkrecipes_node_bytes"), stats.node_bytes);
    EXPECT_EQ(value("zkrecipes_node_bytes_limit"), stats.node_bytes_max);
    EXPECT_EQ(value("zkrecipes_watch_bytes"), stats.watch_bytes);
    EXPECT_EQ(value("zkrecipes_watch_bytes_limit"), stats.watch_bytes_max);
    EXPECT_EQ(value("zkrecipes_nodes_to_delete"), stats.nodes_to_delete);
    EXPECT_EQ(value("zkrecipes_lease_remaining_seconds"), stats.remaining_lease / std::chrono::seconds(1));
    EXPECT_EQ(value("zkrecipes_session_timeout_seconds"), stats.session_timeout / std::chrono::seconds(1));
    EXPECT_EQ(value("zkrecipes_heartbeat_round_trip_seconds"), stats.heartbeat_round_trip / std::chrono::seconds(1));
    for (std::size_t i = 0; i < kRequestKinds; ++i) {
        EXPECT_EQ(value("zkrecipes_requests_total", "kind", to_string(static_cast<RequestKind>(i))), stats.requests[i]);
    }
}

TEST(MetricFamiliesTest, EveryNumberOfALockIsInItsMetric) {
    const LockStats lock = full_stats().locks.at(0);
    EXPECT_EQ(value("zkrecipes_acquires_total", "result", "acquired"), lock.acquired);
    EXPECT_EQ(value("zkrecipes_acquires_total", "result", "busy"), lock.busy);
    EXPECT_EQ(value("zkrecipes_acquires_total", "result", "stopped"), lock.stopped);
    EXPECT_EQ(value("zkrecipes_acquires_total", "result", "unreachable"), lock.unreachable);
    EXPECT_EQ(value("zkrecipes_acquires_total", "result", "failed"), lock.failed);
    EXPECT_EQ(value("zkrecipes_releases_total"), lock.released);
    EXPECT_EQ(value("zkrecipes_waiting"), lock.waiting);
    EXPECT_EQ(value("zkrecipes_held"), lock.held);
    for (std::size_t i = 0; i < kLossReasons; ++i) {
        EXPECT_EQ(value("zkrecipes_losses_total", "reason", to_string(static_cast<LossReason>(i))), lock.lost[i]);
    }
}

TEST(MetricFamiliesTest, HistogramsAreCumulativeAndExact) {
    const auto families = metric_families({{"s", full_stats()}});
    const LockStats lock = full_stats().locks.at(0);
    for (const auto& [name, expected] :
         {std::pair{"zkrecipes_wait_seconds", lock.wait}, std::pair{"zkrecipes_hold_seconds", lock.hold}}) {
        const MetricFamily* family = find(families, name);
        ASSERT_NE(family, nullptr) << name;
        ASSERT_EQ(family->metric.size(), 1U);
        const auto& histogram = family->metric[0].histogram;
        ASSERT_EQ(histogram.bucket.size(), DurationHistogram::bounds.size() + 1);
        std::uint64_t below = 0;
        for (std::size_t i = 0; i < histogram.bucket.size(); ++i) {
            below += expected.counts[i];
            EXPECT_EQ(histogram.bucket[i].cumulative_count, below);
            if (i < DurationHistogram::bounds.size()) {
                EXPECT_EQ(histogram.bucket[i].upper_bound, DurationHistogram::bounds[i]);
            }
        }
        EXPECT_TRUE(std::isinf(histogram.bucket.back().upper_bound));
        EXPECT_EQ(histogram.sample_count, expected.count());
        EXPECT_DOUBLE_EQ(histogram.sample_sum, std::chrono::duration<double>(expected.sum).count());
    }
}

TEST(MetricFamiliesTest, LabelsTellSessionsAndLocksApart) {
    SessionStats stats = full_stats();
    stats.locks.emplace_back();
    stats.locks.back().recipe = "ReadWriteLock";
    stats.locks.back().mode = "shared";
    const auto families = metric_families({{"one", stats}, {"two", stats}});
    std::set<std::string> seen;
    for (const MetricFamily& family : families) {
        for (const ClientMetric& metric : family.metric) {
            std::string series = family.name;
            for (const auto& each : metric.label) series += " " + each.name + "=" + each.value;
            EXPECT_TRUE(seen.insert(series).second) << "twice: " << series;
        }
    }
    EXPECT_TRUE(seen.contains("zkrecipes_held session=one recipe=ExclusiveMutex mode=exclusive name=orders"));
    EXPECT_TRUE(seen.contains("zkrecipes_held session=two recipe=ReadWriteLock mode=shared")) << "no name, no label";
    EXPECT_TRUE(metric_families({}).empty()) << "no HELP lines without a metric";
}

TEST(MetricFamiliesTest, ALabelIsAlwaysUtf8) {
    for (const char* good : {"", "import",
                             "Gr\xC3\xB6\xC3\x9F"
                             "e",
                             "\xE2\x82\xAC", "\xF0\x9F\x94\x92", "\x7F"}) {
        EXPECT_EQ(label_value(good), good);
    }
    EXPECT_EQ(label_value("a\xFF"
                          "b"),
              "a?b");
    EXPECT_EQ(label_value("\xC3\xB6\xC3"), "???") << "cut in the middle";
    EXPECT_EQ(label_value("\xC0\x80"), "??") << "longer than needed";
    EXPECT_EQ(label_value("\xE0\x80\x80"), "???") << "longer than needed";
    EXPECT_EQ(label_value("\xED\xA0\x80"), "???") << "a surrogate";
    EXPECT_EQ(label_value("\xF4\x90\x80\x80"), "????") << "beyond the last character";
    EXPECT_EQ(label_value("\xC3(\x82"), "?(?");
}

TEST(PrometheusCollectorTest, CollectsWhatTheSourcesSay) {
    PrometheusCollector collector;
    EXPECT_TRUE(collector.Collect().empty());
    SessionStats stats;
    collector.add("s", [&] { return std::optional(stats); });
    stats.connects = 3;
    const auto families = collector.Collect();
    const MetricFamily* connects = find(families, "zkrecipes_connects_total");
    ASSERT_NE(connects, nullptr);
    ASSERT_EQ(connects->metric.size(), 1U);
    EXPECT_EQ(connects->metric[0].counter.value, 3) << "the numbers of the moment";
    EXPECT_EQ(label(connects->metric[0], "session"), "s");
}

TEST(PrometheusCollectorTest, ASourceThatThrowsIsLeftOut) {
    PrometheusCollector collector;
    collector.add("bad", []() -> std::optional<SessionStats> { throw std::runtime_error("no"); });
    collector.add("worse", []() -> std::optional<SessionStats> { throw 1; });
    collector.add("good", [] { return std::optional(SessionStats{}); });
    const auto families = collector.Collect();
    const MetricFamily* connects = find(families, "zkrecipes_connects_total");
    ASSERT_NE(connects, nullptr);
    ASSERT_EQ(connects->metric.size(), 1U);
    EXPECT_EQ(label(connects->metric[0], "session"), "good");
}

TEST(PrometheusCollectorTest, ASessionThatIsGoneHasNoMetrics) {
    PrometheusCollector collector;
    bool gone = false;
    const PrometheusCollector::Source source = [&] { return gone ? std::nullopt : std::optional(SessionStats{}); };
    collector.add("s", source);
    EXPECT_FALSE(collector.Collect().empty());
    EXPECT_THROW(collector.add("s", source), Error) << "two sessions with the same labels";
    gone = true;
    EXPECT_TRUE(collector.Collect().empty());
    collector.add("s", [] { return std::optional(SessionStats{}); });
    EXPECT_FALSE(collector.Collect().empty()) << "the name is free again";
    EXPECT_TRUE(collector.remove("s"));
    EXPECT_FALSE(collector.remove("s"));
    EXPECT_TRUE(collector.Collect().empty());
    EXPECT_THROW(collector.add("t", PrometheusCollector::Source()), Error);
}

TEST(PrometheusCollectorTest, ASourceThatFailsLeavesTheOthersAlone) {
    PrometheusCollector collector;
    collector.add("bad", []() -> std::optional<SessionStats> { throw std::runtime_error("no"); });
    collector.add("good", [] { return std::optional(SessionStats{}); });
    const auto families = collector.Collect();
    const MetricFamily* connected = find(families, "zkrecipes_connected");
    ASSERT_NE(connected, nullptr);
    ASSERT_EQ(connected->metric.size(), 1U);
    EXPECT_EQ(label(connected->metric[0], "session"), "good");
}

}  // namespace
}  // namespace zkrecipes::internal
