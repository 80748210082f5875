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

/// The position of this client in the queue of the lock.
struct QueueView {
    int position = 0;  ///< 1: first in the queue; 0: not known
    int total = 0;
    std::string holder;  ///< a description; empty: none
    std::string path;    ///< the lock that this is about; only of a set
};

struct StateChange {
    SessionState state;
    Instant at;
};

/// Events from other threads for the main thread. Posting only stores the event and makes the descriptor readable. The
/// main thread makes all decisions.
class EventQueue {
public:
    struct Batch {
        std::vector<StateChange> states;
        std::optional<AcquireResult> acquired;
        std::optional<QueueView> queue;
        std::optional<Instant> confirmed;  // our nodes existed at this time
        std::exception_ptr failure;        // an error on another thread
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
