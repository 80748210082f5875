#pragma once

#include <boost/fiber/condition_variable.hpp>
#include <mutex>

#include "base/mutation.hpp"

namespace zkrecipes::internal {

/// The one thing in the library that a caller blocks on: suspends the calling fiber, or the thread where no fibers
/// run, until somebody on any thread calls set(). Time-outs are not its business: a timer of the Runtime ends the
/// operation, and that sets the event, so that the simulation decides when time passes.
class WaitEvent {
public:
    void set() noexcept {
        // Notify under the mutex: the waiter's frame owns this object and may be gone right after wait() returns.
        const std::lock_guard lock(mutex_);
        set_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        if (ZKRECIPES_MUTATION("early-wake-up-lost")) changed_.wait(lock);
        changed_.wait(lock, [this] { return set_; });
    }
    bool is_set() const noexcept {
        const std::lock_guard lock(mutex_);
        return set_;
    }

private:
    mutable std::mutex mutex_;  // guards set_; never held across a suspension
    boost::fibers::condition_variable_any changed_;
    bool set_ = false;
};

}  // namespace zkrecipes::internal
