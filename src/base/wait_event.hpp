#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace zkrecipes::internal {

/// Whether Boost.Fiber can suspend, wake and tell apart what runs on this thread. False in a destructor of a
/// thread_local or static object that runs after Boost.Fiber has taken its own thread_local data down.
bool fibers_work_here() noexcept;

/// A condition variable on which fibers wait, and threads, also those on which fibers do not work any more. To be
/// notified where fibers work: Boost.Fiber cannot wake a fiber from anywhere else.
class FiberCondition {
public:
    FiberCondition() noexcept;
    ~FiberCondition();
    FiberCondition(const FiberCondition&) = delete;
    FiberCondition& operator=(const FiberCondition&) = delete;
    /// May return without having been notified.
    void wait(std::unique_lock<std::mutex>& lock);
    void notify_all() noexcept;

private:
    struct Fibers;  // a condition variable of Boost.Fiber, whose headers are as large as all others together
    Fibers& fibers() noexcept;
    alignas(std::max_align_t) std::byte storage_[64];
    std::condition_variable threads_;
};

/// The one thing in the library that a caller blocks on: suspends the calling fiber, or the thread where no fibers
/// run, until any thread calls set(). Time-outs are not its business: a timer of the Runtime ends the
/// operation, and that sets the event, so that the simulation decides when time passes.
class WaitEvent {
public:
    /// Where fibers work.
    void set() noexcept {
        // Notify under the mutex: the waiter's frame owns this object and may be gone right after wait() returns, and
        // so may the waiter's thread, with that by which Boost.Fiber wakes it.
        const std::lock_guard lock(mutex_);
        set_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        while (!set_) changed_.wait(lock);
    }
    bool is_set() const noexcept {
        const std::lock_guard lock(mutex_);
        return set_;
    }

private:
    mutable std::mutex mutex_;  // guards set_; never held across a suspension
    FiberCondition changed_;
    bool set_ = false;
};

}  // namespace zkrecipes::internal
