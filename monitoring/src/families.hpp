#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/session_stats.hpp>

namespace zkrecipes::internal {

/// What docs/metrics.md lists, of sessions by name. Families without a metric are left out.
std::vector<::prometheus::MetricFamily> metric_families(const std::map<std::string, SessionStats>& sessions);

/// The text itself if it is UTF-8. Otherwise '?' replaces every byte that is not ASCII: Prometheus refuses all metrics
/// of a program if one label is not UTF-8.
std::string label_value(std::string_view text);

}  // namespace zkrecipes::internal
