// A program of somebody who uses the installed zkrecipes::prometheus: prints its metrics.
#include <prometheus/text_serializer.h>

#include <iostream>

#include <zkrecipes/prometheus.hpp>
#include <zkrecipes/session.hpp>

int main() {
    zkrecipes::PrometheusCollector metrics;
    {
        zkrecipes::Session session("127.0.0.1:1");
        metrics.add("main", session);
        ::prometheus::TextSerializer().Serialize(std::cout, metrics.Collect());
    }
    if (!metrics.Collect().empty()) std::cout << "the session has gone, and its metrics have not\n";
}
