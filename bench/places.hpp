#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>

namespace zkrecipes::bench {

/// Servers to measure on, each of which can also be reached through a gate. Session i belongs to server i modulo their
/// number, for every side alike.
class Place {
public:
    explicit Place(int servers, testenv::ServerOptions options = {});
    /// The servers that ZKRECIPES_BENCH_HOSTS names, without gates; otherwise one server of our own.
    static Place& to_time();
    static Place& one_server();  ///< our own, as long as the program runs

    std::string hosts(std::size_t session, bool gated = false) const {
        return gated ? gates_[session % gates_.size()].connect_string() : servers_[session % servers_.size()];
    }
    std::vector<std::string> all_hosts(bool gated = false) const;
    testenv::Gate& gate() { return gates_.front(); }
    testenv::ZkServer& server() { return *server_; }  ///< of a place with one server

    /// Delays what passes the gates by half of this in each direction.
    void delay(std::chrono::milliseconds round_trip);
    void pass();
    void reset_trace();
    /// What passed the gates, one gate after the other.
    std::vector<testenv::Record> trace() const;

private:
    Place() = default;
    std::vector<std::string> servers_;
    std::unique_ptr<testenv::ZkServer> server_;
    std::unique_ptr<testenv::ZkEnsemble> ensemble_;
    std::vector<testenv::Gate> gates_;
};

Session open_session(const std::string& hosts, std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace zkrecipes::bench
