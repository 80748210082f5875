// Prints every metric that there is, in Prometheus' text format.
#include <prometheus/text_serializer.h>

#include <iostream>

#include "monitoring/full_stats.hpp"
#include "monitoring/src/families.hpp"

int main() {
    ::prometheus::TextSerializer().Serialize(
        std::cout, zkrecipes::internal::metric_families({{"s", zkrecipes::test::full_stats()}}));
}
