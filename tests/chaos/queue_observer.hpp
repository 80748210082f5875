#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "chaos/judge.hpp"

namespace zkrecipes::chaos {

/// The outsider: watches the queues of all locks through sessions of its own, one on each server, and notes when a node
/// is first seen, when it is gone, and whether it was ever first. Uses the C client only, nothing of the library.
///
/// Its sessions live for 40 s without their server, longer than any fault that is watched; one observer serves one
/// fault. What is gone on one server is gone: the earliest eye to see it counts. An eye only judges what it has seen
/// itself, because another server may be behind.
class QueueObserver {
public:
    /// One "host:port" per server. Blocks until all are connected, at most 20 s for each.
    explicit QueueObserver(const std::vector<std::string>& servers);
    ~QueueObserver();

    /// Makes the directories `dir/<lock>` and watches them from now on. Blocks. Throws std::runtime_error.
    void watch(const std::string& dir, int first_lock, int locks);

    /// How many nodes are in the queue, on the server that shows most.
    int queue_length(int lock) const;
    /// Looks once more on every server that answers, after a sync, and returns everything seen.
    std::vector<Sighting> sightings(int first_lock, int locks);

private:
    class Eye;
    struct Queue {
        std::string path;
        std::map<std::string, Sighting> nodes;
    };

    void note(Eye& eye, int lock, const std::set<std::string>& present);
    void keep_looking(const std::stop_token& stop);

    mutable std::mutex mutex_;  // guards queues_ and what the eyes have seen
    std::map<int, Queue> queues_;
    std::vector<std::unique_ptr<Eye>> eyes_;
    std::jthread keeper_;
};

}  // namespace zkrecipes::chaos
