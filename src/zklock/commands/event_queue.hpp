#pragma once

#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

#include "zklock/system/boot_clock.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

/// Where we stand in the queue.
struct QueueView {
    int position = 0;  ///< 1: holds, or is about to; 0: not known
    int total = 0;
    std::string holder;  ///< in words; empty: nobody
    std::string path;    ///< of several locks, the one that this is about
};

struct StateChange {
    SessionState state;
    Instant at;
};

/// What other threads tell the main thread. They only put it here and make the descriptor readable; all decisions are
/// made on the main thread.
class EventQueue {
public:
    struct Batch {
        std::vector<StateChange> states;
        std::optional<AcquireResult> acquired;
        std::optional<QueueView> queue;
        std::optional<Instant> confirmed;  // our nodes were there when the servers were asked at this time
        std::exception_ptr failure;        // of something that another thread did for us
        bool lost = false;                 // sticky
    };

    EventQueue();
    int fd() const noexcept { return fd_.get(); }
    Batch take();

    void post_state(SessionState state);
    void post_acquired(AcquireResult result);
    void post_queue(QueueView view);
    void post_confirmed(Instant asked);
    void post_lost();
    void post_failure(std::exception_ptr failure);

private:
    void wake() noexcept;

    UniqueFd fd_;
    std::mutex mutex_;  // guards batch_
    Batch batch_;
};

}  // namespace zkrecipes::zklock
