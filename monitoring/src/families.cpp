#include "families.hpp"

#include <prometheus/metric_type.h>

#include <chrono>
#include <cstddef>
#include <limits>
#include <utility>

namespace zkrecipes::internal {
namespace {

using ::prometheus::ClientMetric;
using ::prometheus::MetricFamily;
using ::prometheus::MetricType;
using Sessions = std::map<std::string, SessionStats>;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }
double number(std::uint64_t value) { return static_cast<double>(value); }

struct SessionMetric {
    MetricType type;
    const char* name;
    const char* help;
    double (*value)(const SessionStats&);
};
constexpr auto kCounter = MetricType::Counter;
constexpr auto kGauge = MetricType::Gauge;

const SessionMetric kSessionMetrics[] = {
    {kGauge, "zkrecipes_connected", "1 if the session is connected to a server, otherwise 0.",
     [](const SessionStats& s) { return s.connected ? 1.0 : 0.0; }},
    {kCounter, "zkrecipes_connects_total", "How often the session was connected.",
     [](const SessionStats& s) { return number(s.connects); }},
    {kCounter, "zkrecipes_suspensions_total", "How often the connection to a server broke.",
     [](const SessionStats& s) { return number(s.suspensions); }},
    {kCounter, "zkrecipes_sessions_total", "ZooKeeper sessions that were made, one after the other.",
     [](const SessionStats& s) { return number(s.sessions); }},
    {kCounter, "zkrecipes_heartbeats_refused_total", "Committed checks of the lock nodes that failed.",
     [](const SessionStats& s) { return number(s.heartbeats_refused); }},
    {kCounter, "zkrecipes_stalled_replies_total", "Answers that came only after a further request.",
     [](const SessionStats& s) { return number(s.stalled_replies); }},
    {kCounter, "zkrecipes_events_dropped_total", "Events that were dropped because SessionEvents was too slow.",
     [](const SessionStats& s) { return number(s.events_dropped); }},
    {kGauge, "zkrecipes_lease_remaining_seconds", "How long holds are guaranteed without a further answer.",
     [](const SessionStats& s) { return seconds(s.remaining_lease); }},
    {kGauge, "zkrecipes_session_timeout_seconds", "The session timeout that the servers granted; 0 if none yet.",
     [](const SessionStats& s) { return seconds(s.session_timeout); }},
    {kGauge, "zkrecipes_heartbeat_round_trip_seconds", "How long the last heartbeat took; 0 if none yet.",
     [](const SessionStats& s) { return seconds(s.heartbeat_round_trip); }},
    {kGauge, "zkrecipes_node_bytes", "Length of the paths of the ephemeral nodes of the session.",
     [](const SessionStats& s) { return number(s.node_bytes); }},
    {kGauge, "zkrecipes_node_bytes_limit", "The largest zkrecipes_node_bytes that the session permits.",
     [](const SessionStats& s) { return number(s.node_bytes_max); }},
    {kGauge, "zkrecipes_watch_bytes", "Length of the paths that the session watches.",
     [](const SessionStats& s) { return number(s.watch_bytes); }},
    {kGauge, "zkrecipes_watch_bytes_limit", "The largest zkrecipes_watch_bytes that the session permits.",
     [](const SessionStats& s) { return number(s.watch_bytes_max); }},
    {kGauge, "zkrecipes_nodes_to_delete", "Nodes that are no longer needed and not yet deleted.",
     [](const SessionStats& s) { return number(s.nodes_to_delete); }},
};

struct LockMetric {
    MetricType type;
    const char* name;
    const char* help;
    std::uint64_t LockStats::*value;
};
const LockMetric kLockMetrics[] = {
    {kGauge, "zkrecipes_waiting", "Calls that wait for a lock now.", &LockStats::waiting},
    {kGauge, "zkrecipes_held", "Holds now.", &LockStats::held},
    {kCounter, "zkrecipes_releases_total", "Holds that ended by a release.", &LockStats::released},
};

struct AcquireResultLabel {
    const char* label;
    std::uint64_t LockStats::*value;
};
constexpr AcquireResultLabel kAcquireResults[] = {{"acquired", &LockStats::acquired},
                                                  {"busy", &LockStats::busy},
                                                  {"stopped", &LockStats::stopped},
                                                  {"unreachable", &LockStats::unreachable},
                                                  {"failed", &LockStats::failed}};

struct LockHistogram {
    const char* name;
    const char* help;
    DurationHistogram LockStats::*value;
};
const LockHistogram kLockHistograms[] = {
    {"zkrecipes_wait_seconds", "From the call to the grant, of acquires that were granted.", &LockStats::wait},
    {"zkrecipes_hold_seconds", "From the grant to the release or the loss, of holds that ended.", &LockStats::hold}};

ClientMetric metric_of(const std::string& session) {
    ClientMetric out;
    out.label.push_back({"session", label_value(session)});
    return out;
}

ClientMetric metric_of(const std::string& session, const LockStats& lock) {
    ClientMetric out = metric_of(session);
    out.label.push_back({"recipe", label_value(lock.recipe)});
    out.label.push_back({"mode", label_value(lock.mode)});
    // In Prometheus an empty label is the same as none.
    if (!lock.name.empty()) out.label.push_back({"name", label_value(lock.name)});
    return out;
}

ClientMetric with_label(ClientMetric metric, const char* name, const char* value) {
    metric.label.push_back({name, value});
    return metric;
}

void set_value(ClientMetric& metric, MetricType type, double value) {
    if (type == MetricType::Counter) {
        metric.counter.value = value;
    } else {
        metric.gauge.value = value;
    }
}

void set_value(ClientMetric& metric, const DurationHistogram& histogram) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
        below += histogram.counts[i];
        const bool last = i == DurationHistogram::bounds.size();
        metric.histogram.bucket.push_back(
            {below, last ? std::numeric_limits<double>::infinity() : DurationHistogram::bounds[i]});
    }
    metric.histogram.sample_count = below;
    metric.histogram.sample_sum = seconds(histogram.sum);
}

class Families {
public:
    explicit Families(const Sessions& sessions) : sessions_(sessions) {}

    /// `fill` is called as fill(name, stats) for each session, and adds metrics to family().
    template <class Fill>
    void each_session(MetricType type, const char* name, const char* help, Fill fill) {
        MetricFamily family{name, help, type, {}};
        for (const auto& [session, stats] : sessions_) fill(family.metric, session, stats);
        if (!family.metric.empty()) out_.push_back(std::move(family));
    }

    template <class Fill>
    void each_lock(MetricType type, const char* name, const char* help, Fill fill) {
        each_session(type, name, help,
                     [&](std::vector<ClientMetric>& out, const std::string& session, const SessionStats& stats) {
                         for (const LockStats& lock : stats.locks) fill(out, metric_of(session, lock), lock);
                     });
    }

    std::vector<MetricFamily> take() { return std::move(out_); }

private:
    const Sessions& sessions_;
    std::vector<MetricFamily> out_;
};

void add_session_families(Families& families) {
    for (const SessionMetric& metric : kSessionMetrics) {
        families.each_session(metric.type, metric.name, metric.help,
                              [&](auto& out, const std::string& session, const SessionStats& stats) {
                                  set_value(out.emplace_back(metric_of(session)), metric.type, metric.value(stats));
                              });
    }
    families.each_session(
        kCounter, "zkrecipes_requests_total", "Requests that were sent, by kind.",
        [](auto& out, const std::string& session, const SessionStats& stats) {
            for (std::size_t i = 0; i < kRequestKinds; ++i) {
                out.push_back(with_label(metric_of(session), "kind", to_string(static_cast<RequestKind>(i))));
                set_value(out.back(), kCounter, number(stats.requests[i]));
            }
        });
}

void add_lock_families(Families& families) {
    families.each_lock(kCounter, "zkrecipes_acquires_total", "Calls that wanted a lock, by how they ended.",
                       [](auto& out, const ClientMetric& metric, const LockStats& lock) {
                           for (const auto& result : kAcquireResults) {
                               out.push_back(with_label(metric, "result", result.label));
                               set_value(out.back(), kCounter, number(lock.*result.value));
                           }
                       });
    families.each_lock(kCounter, "zkrecipes_losses_total", "Holds that were lost, by reason.",
                       [](auto& out, const ClientMetric& metric, const LockStats& lock) {
                           for (std::size_t i = 0; i < kLossReasons; ++i) {
                               out.push_back(with_label(metric, "reason", to_string(static_cast<LossReason>(i))));
                               set_value(out.back(), kCounter, number(lock.lost[i]));
                           }
                       });
    for (const LockMetric& each : kLockMetrics) {
        families.each_lock(each.type, each.name, each.help,
                           [&](auto& out, const ClientMetric& metric, const LockStats& lock) {
                               set_value(out.emplace_back(metric), each.type, number(lock.*each.value));
                           });
    }
    for (const LockHistogram& each : kLockHistograms) {
        families.each_lock(MetricType::Histogram, each.name, each.help,
                           [&](auto& out, const ClientMetric& metric, const LockStats& lock) {
                               set_value(out.emplace_back(metric), lock.*each.value);
                           });
    }
}

/// The length of the UTF-8 sequence at the start of the text; 0: there is none.
std::size_t utf8_sequence(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length == 0 || length > text.size() || first > 0xF4) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    // Longer than needed, a surrogate, or beyond U+10FFFF.
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) || (first == 0xF0 && byte(1) < 0x90) ||
        (first == 0xF4 && byte(1) > 0x8F)) {
        return 0;
    }
    return length;
}

}  // namespace

std::string label_value(std::string_view text) {
    std::string out(text);
    while (!text.empty()) {
        const std::size_t length = utf8_sequence(text);
        if (length == 0) {
            for (char& byte : out) {
                if (static_cast<unsigned char>(byte) >= 0x80) byte = '?';
            }
            break;
        }
        text.remove_prefix(length);
    }
    return out;
}

std::vector<MetricFamily> metric_families(const Sessions& sessions) {
    Families families(sessions);
    add_lock_families(families);
    add_session_families(families);
    return families.take();
}

}  // namespace zkrecipes::internal
