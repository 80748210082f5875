#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include <zkrecipes/session_stats.hpp>

namespace zkrecipes::test {

/// In which every number is another one, and none is 0: what is mixed up or left out shows.
inline SessionStats full_stats() {
    std::uint64_t next = 1;
    SessionStats out;
    for (auto* field : {&out.connects, &out.suspensions, &out.sessions, &out.heartbeats_refused, &out.stalled_replies,
                        &out.events_dropped, &out.waiting, &out.held, &out.node_bytes, &out.node_bytes_max,
                        &out.watch_bytes, &out.watch_bytes_max, &out.nodes_to_delete}) {
        *field = next++;
    }
    for (auto& requests : out.requests) requests = next++;
    out.connected = true;
    for (auto* time : {&out.remaining_lease, &out.session_timeout, &out.heartbeat_round_trip}) {
        *time = std::chrono::seconds(next++);
    }
    LockStats lock;
    lock.recipe = "ExclusiveMutex";
    lock.mode = "exclusive";
    lock.name = "orders";
    for (auto* field : {&lock.acquired, &lock.busy, &lock.stopped, &lock.unreachable, &lock.failed, &lock.released,
                        &lock.waiting, &lock.held}) {
        *field = next++;
    }
    for (auto& lost : lock.lost) lost = next++;
    for (auto* histogram : {&lock.wait, &lock.hold}) {
        for (auto& count : histogram->counts) count = next++;
        histogram->sum = std::chrono::milliseconds(next++);
    }
    out.locks.push_back(lock);
    return out;
}

}  // namespace zkrecipes::test
