#pragma once

#include <string>

#include "zklock/system/boot_clock.hpp"

namespace zkrecipes::zklock {

/// What why_no_answer() says of a server that accepts connections.
constexpr const char* kAccepted =
    "accepts connections but gives no session: check that it is a ZooKeeper server, has a quorum, and takes further "
    "connections from this host (maxClientCnxns)";

/// Says for each server why it does not answer: `zk1:2181: the name does not resolve (...); zk2:2181: connection
/// refused`. If the addresses of one name differ, it says what holds of which. Tries all addresses at once and takes at
/// most `limit`. A session must have accepted `connect`. Throws std::system_error if this process cannot open another
/// file, which is no fault of a server.
std::string why_no_answer(const std::string& connect, Nanoseconds limit = std::chrono::seconds(1));

}  // namespace zkrecipes::zklock
