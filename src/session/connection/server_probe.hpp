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
    /// Answers on the protocol lane within about `limit`: the addresses ("address:port") where a server said that it
    /// serves; if there are none, those where it said that it may not tell; if there are none, those that accepted a
    /// connection and did not say that they do not serve. If these are all addresses of all hosts, the answer is
    /// `hosts`. Empty: none. `all_cut`: each of them cut the connection at once. Does not block the caller.
    using Done = std::function<void(std::vector<std::string> answering, bool all_cut)>;
    virtual void probe(std::vector<std::string> hosts, std::chrono::milliseconds limit, Done done) = 0;
};

std::shared_ptr<ServerProbe> make_server_probe(std::shared_ptr<Runtime> runtime);

}  // namespace zkrecipes::internal
