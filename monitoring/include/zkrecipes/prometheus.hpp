#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/session_stats.hpp>
#include <zkrecipes/stats_source.hpp>

namespace zkrecipes {

/// Gives the numbers of sessions (Session::stats()) to Prometheus, by the library prometheus-cpp.
///
///     auto metrics = std::make_shared<zkrecipes::PrometheusCollector>();
///     metrics->add("orders", session);
///     prometheus::Exposer exposer("0.0.0.0:9464");
///     exposer.RegisterCollectable(metrics);
///
/// docs/metrics.md lists the metrics. Link zkrecipes::prometheus; it is not part of zkrecipes::zkrecipes. Safe for
/// concurrent use.
class PrometheusCollector final : public ::prometheus::Collectable {
public:
    /// Returns the numbers of one session now, or nothing if the session is gone. See stats_source().
    using Source = std::function<std::optional<SessionStats>()>;

    /// Without sessions at first.
    PrometheusCollector();
    ~PrometheusCollector() override;

    /// From now on, Collect() reads the session. Its metrics have the label session="name". The session may be moved
    /// and destroyed at any time; its metrics end when it is closed. Two sessions of one collector need different
    /// names: throws Error bad_option if a session that still exists has this name. Throws Error closed for a session
    /// that was moved from. Does not block.
    void add(const std::string& name, const Session& session) { add(name, stats_source(session)); }
    /// The same for numbers from elsewhere. Collect() calls `source`, on the thread that collects. Throws Error
    /// bad_option if it is empty.
    void add(const std::string& name, Source source);
    /// Returns false if there is none with this name. A Collect() that is running may still include it.
    bool remove(const std::string& name);

    /// Called for each scrape. Reads each session once. If reading one fails, it is left out.
    std::vector<::prometheus::MetricFamily> Collect() const override;

private:
    mutable std::mutex mutex_;
    std::map<std::string, Source> sources_;
};

}  // namespace zkrecipes
