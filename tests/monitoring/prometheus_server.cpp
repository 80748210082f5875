#include "monitoring/prometheus_server.hpp"

#include <unistd.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "monitoring/http_get.hpp"
#include "support/await.hpp"

namespace zkrecipes::test {
namespace {

namespace json = boost::json;

std::string content_of(const std::string& file) {
    std::ifstream in(file);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
}

PrometheusServer::Labels labels_of(const json::value& object) {
    PrometheusServer::Labels out;
    for (const auto& [name, value] : object.as_object()) out.emplace(name, value.as_string());
    return out;
}

std::string configuration(const std::vector<PrometheusServer::Target>& targets) {
    std::string out =
        "global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n"
        "rule_files: [rules.yml]\n"
        "scrape_configs:\n"
        "  - job_name: services\n"
        "    static_configs:\n";
    for (const auto& target : targets) {
        out += "      - targets: ['" + target.endpoint.str() + "']\n        labels: {";
        for (const auto& [name, value] : target.labels) out += name + ": '" + value + "', ";
        out += "}\n";
    }
    return out;
}

}  // namespace

bool PrometheusServer::is_installed() {
    std::istringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (::access((folder + "/prometheus").c_str(), X_OK) == 0) return true;
    }
    return false;
}

PrometheusServer::PrometheusServer(const std::string& rules, const std::vector<Target>& targets) {
    std::ofstream(scratch_ / "rules.yml") << rules;
    std::ofstream(scratch_ / "prometheus.yml") << configuration(targets);
    process_ = testenv::internal::ChildProcess(
        {.argv = {"prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                  "--web.listen-address=" + endpoint_.str(), "--log.level=warn"},
         .environment = {},
         .directory = scratch_.path(),
         .log = scratch_ / "log"});
    if (!await([&] { return !process_.running() || http_get(endpoint_, "/-/ready").status == 200; }) ||
        !process_.running()) {
        throw std::runtime_error("Prometheus does not start: " + log());
    }
}

std::string PrometheusServer::get(const std::string& path) const {
    const HttpAnswer answer = http_get(endpoint_, path);
    if (answer.status != 200) throw std::runtime_error(path + ": " + std::to_string(answer.status) + answer.body);
    return answer.body;
}

std::vector<PrometheusServer::Sample> PrometheusServer::query(const std::string& promql) const {
    std::vector<Sample> out;
    const auto answer = json::parse(get("/api/v1/query?query=" + url_escaped(promql)));
    for (const auto& each : answer.at("data").at("result").as_array()) {
        out.push_back({labels_of(each.at("metric")), std::stod(each.at("value").at(1).as_string().c_str())});
    }
    return out;
}

std::vector<PrometheusServer::Labels> PrometheusServer::firing() const {
    std::vector<Labels> out;
    const auto answer = json::parse(get("/api/v1/alerts"));
    for (const auto& alert : answer.at("data").at("alerts").as_array()) {
        if (alert.at("state").as_string() == "firing") out.push_back(labels_of(alert.at("labels")));
    }
    return out;
}

std::string PrometheusServer::log() const { return content_of(scratch_ / "log"); }

std::string hurried_rules() {
    const std::string rules = content_of(ZKRECIPES_ALERT_RULES);
    if (rules.empty()) throw std::runtime_error("no rules in " ZKRECIPES_ALERT_RULES);
    return std::regex_replace(rules, std::regex(R"((\[|for: )(\d+)m\b)"), "$1$2s");
}

}  // namespace zkrecipes::test
