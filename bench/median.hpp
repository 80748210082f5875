#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace zkrecipes::bench {

/// The value below which this share of the values lies. 0: there are no values.
inline double quantile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(values.size()) * share);
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace zkrecipes::bench
