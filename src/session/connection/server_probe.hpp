#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Finds out which addresses of the servers answer, all at the same time, so that one that answers is tried first. (The
/// C client spends two thirds of the session timeout on each silent address, and can expire beside a healthy server.)
class ServerProbe {
public:
    virtual ~ServerProbe() = default;
    struct Found {
        /// The addresses ("address:port") where a server said that it serves; if there are none, those where it said
        /// that it may not tell; if there are none, those where it has no leader at present; if there are none, those
        /// that accepted a connection and said nothing, or not all. All addresses of all hosts: the names of the hosts
        /// instead.
        std::vector<std::string> best{};
        /// Those where a server is not frozen: it said something, or cut the connection.
        std::vector<std::string> awake{};
        bool all_cut = false;     ///< each of the best cut the connection at once
        bool leaderless = false;  ///< each of the best has no leader at present
    };
    /// Answers on the protocol lane within about `limit`, and what looking up names takes. Does not block the caller.
    using Done = std::function<void(const Found&)>;
    virtual void probe(std::vector<std::string> hosts, std::chrono::milliseconds limit, Done done) = 0;
};

std::shared_ptr<ServerProbe> make_server_probe(std::shared_ptr<Runtime> runtime);

}  // namespace zkrecipes::internal
