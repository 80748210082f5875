#include "bench/places.hpp"

#include <cstdlib>
#include <sstream>
#include <utility>

namespace zkrecipes::bench {

Place::Place(int servers, testenv::ServerOptions options) {
    if (servers == 1) {
        server_ = std::make_unique<testenv::ZkServer>(std::move(options));
        gates_.emplace_back(server_->endpoint());
        servers_.push_back(server_->connect_string());
        return;
    }
    testenv::EnsembleOptions members;
    members.servers = servers;
    members.server = std::move(options);
    ensemble_ = std::make_unique<testenv::ZkEnsemble>(std::move(members));
    for (int i = 0; i < servers; ++i) {
        gates_.emplace_back(ensemble_->member(i).endpoint());
        servers_.push_back(ensemble_->connect_string(i));
    }
}

Place& Place::one_server() {
    static Place place(1);
    return place;
}

Place& Place::to_time() {
    const char* given = std::getenv("ZKRECIPES_BENCH_HOSTS");
    if (given == nullptr || *given == '\0') return one_server();
    static Place place;
    if (place.servers_.empty()) {
        std::istringstream list(given);
        for (std::string host; std::getline(list, host, ',');) place.servers_.push_back(host);
    }
    return place;
}

std::vector<std::string> Place::all_hosts(bool gated) const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < (gated ? gates_.size() : servers_.size()); ++i) all.push_back(hosts(i, gated));
    return all;
}

void Place::delay(std::chrono::milliseconds round_trip) {
    for (auto& gate : gates_) gate.delay(testenv::Direction::both, round_trip / 2);
}

void Place::pass() {
    for (auto& gate : gates_) gate.pass();
}

void Place::reset_trace() {
    for (auto& gate : gates_) gate.reset_trace();
}

std::vector<testenv::Record> Place::trace() const {
    std::vector<testenv::Record> all;
    for (const auto& gate : gates_) {
        const auto trace = gate.trace();
        all.insert(all.end(), trace.begin(), trace.end());
    }
    return all;
}

Session open_session(const std::string& hosts, std::chrono::milliseconds timeout) {
    SessionOptions options;
    options.hosts = hosts;
    options.timeout = timeout;
    Session session(std::move(options));
    session.wait_connected();
    return session;
}

}  // namespace zkrecipes::bench
