#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "interop/peer.hpp"
#include "server/multi_lock_crowd.hpp"

namespace zkrecipes::test {

/// Curator clients for the crowd: InterProcessMutex, either side of InterProcessReadWriteLock, and
/// InterProcessMultiLock of these in the order of their paths. Such a multi-lock holds one path while it waits for the
/// next, so it deadlocks with sets that stand in all their queues at once, unless one of them gives way:
/// CrowdOptions::give_way_after, or `give_way_after` here, for each lock, after which it gives back what it holds and
/// begins again. They must not outlive the peer.
std::vector<std::unique_ptr<CrowdClient>> curator_guests(
    PeerProcess& peer, const std::string& hosts, std::size_t count,
    std::chrono::milliseconds give_way_after = std::chrono::milliseconds(0));

}  // namespace zkrecipes::test
