#include <exception>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/prometheus.hpp>

#include "families.hpp"

namespace zkrecipes {

PrometheusCollector::PrometheusCollector() = default;
PrometheusCollector::~PrometheusCollector() = default;

void PrometheusCollector::add(const std::string& name, Source source) {
    if (!source) throw Error(Errc::bad_option, "PrometheusCollector::add", name, "the source is empty");
    const std::lock_guard lock(mutex_);
    Source& own = sources_[name];
    if (own && own()) {
        throw Error(Errc::bad_option, "PrometheusCollector::add", name,
                    "another session has this name; Prometheus could not tell them apart");
    }
    own = std::move(source);
}

bool PrometheusCollector::remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return sources_.erase(name) > 0;
}

std::vector<::prometheus::MetricFamily> PrometheusCollector::Collect() const {
    // Not with the mutex locked while a source is called: it is code of the user, perhaps.
    std::map<std::string, Source> sources;
    {
        const std::lock_guard lock(mutex_);
        sources = sources_;
    }
    std::map<std::string, SessionStats> sessions;
    for (const auto& [name, source] : sources) {
        try {
            if (auto stats = source()) sessions.emplace(name, *std::move(stats));
        } catch (...) {
            // What is thrown here would end the program: the exposer catches nothing.
        }
    }
    return internal::metric_families(sessions);
}

}  // namespace zkrecipes
