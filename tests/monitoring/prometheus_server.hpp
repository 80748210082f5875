#pragma once

#include <map>
#include <string>
#include <vector>

#include <zkrecipes/testenv/endpoint.hpp>
#include <zkrecipes/testenv/scratch.hpp>

#include "testenv/src/child_process.hpp"
#include "testenv/src/keeper.hpp"

namespace zkrecipes::test {

/// A Prometheus that scrapes some programs, twice a second. It and its data go with this object, and with this process.
class PrometheusServer {
public:
    using Labels = std::map<std::string, std::string>;
    struct Sample {
        Labels labels;
        double value = 0;
    };
    struct Target {
        testenv::Endpoint endpoint;
        Labels labels;
    };

    /// Whether Debian's package is installed.
    static bool is_installed();

    /// `rules` is the text of a file of alert rules. Returns when Prometheus answers.
    PrometheusServer(const std::string& rules, const std::vector<Target>& targets);

    /// The answer to a PromQL query, as of now.
    std::vector<Sample> query(const std::string& promql) const;
    /// The labels of the alerts that fire now.
    std::vector<Labels> firing() const;
    std::string log() const;

private:
    std::string get(const std::string& path) const;

    testenv::Scratch scratch_;
    testenv::internal::AddressClaim claim_{""};
    testenv::Endpoint endpoint_{claim_.address(), 9090};
    testenv::internal::ChildProcess process_;
};

/// The rules of monitoring/ in a hurry: what takes minutes takes seconds.
std::string hurried_rules();

}  // namespace zkrecipes::test
