#include "base/threads/workers.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/signal_mask.hpp"

namespace zkrecipes::internal {

void Workers::start() {
    alarm_ = loop_->make_alarm([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->look();
    });
    const std::lock_guard lock(mutex_);
    least_since_ = boot_now();
    add_threads(1);
}

void Workers::add_threads(std::size_t count) {
    const SignalMaskForNewThreads mask;
    left_.reserve(left_.size() + threads_.size() + count);  // so that none fails to leave
    threads_.reserve(threads_.size() + count);
    for (; count > 0; --count) threads_.emplace_back([self = shared_from_this()] { self->run(); });
}

void Workers::schedule(std::shared_ptr<Serial> work) noexcept {
    if (process_.inherited()) return;
    const std::lock_guard lock(mutex_);
    push_locked(std::move(work));
    if (idle_ > 0) changed_.notify_one();
    look_later_locked();
}

bool Workers::schedule_at_once(std::shared_ptr<Serial> work) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (idle_ == 0) add_threads(1);
    } catch (const std::exception&) {
        return false;
    }
    push_locked(std::move(work));
    changed_.notify_one();
    return true;
}

void Workers::push_locked(std::shared_ptr<Serial> work) noexcept {
    scheduled_.push(std::move(work));
    ++pushed_;
}

void Workers::run() noexcept {
    pthread_setname_np(pthread_self(), name_);
    std::unique_lock lock(mutex_);
    while (wait_for_work(lock)) {
        std::shared_ptr<Serial> work = scheduled_.pop();
        ++taken_;
        lock.unlock();
        const bool more = work->run_one();
        if (process_.inherited()) return;  // it has forked, and this thread is all that the child has
        if (!more) work.reset();           // outside the lock: it may be the last reference
        lock.lock();
        if (more) push_locked(std::move(work));
    }
}

/// False: the thread ends.
bool Workers::wait_for_work(std::unique_lock<std::mutex>& lock) {
    while (scheduled_.empty()) {
        if (ended_) return false;
        if (not_needed()) {
            least_idle_ = std::min(least_idle_, idle_);
            leave(lock);
            return false;
        }
        ++idle_;
        changed_.wait_for(lock, idle_for_);
        --idle_;
    }
    least_idle_ = std::min(least_idle_, idle_);
    surplus_ = std::min(surplus_, idle_);
    return true;
}

/// One of the threads that were idle all the time.
bool Workers::not_needed() {
    const Instant now = boot_now();
    if (now - least_since_ >= idle_for_) {
        least_since_ = now;
        surplus_ = std::min(std::exchange(least_idle_, idle_ + 1), threads_.size() - 1);  // this one is idle, too
    }
    if (surplus_ == 0) return false;
    --surplus_;
    return true;
}

void Workers::leave(std::unique_lock<std::mutex>& lock) {
    const auto own = std::find_if(threads_.begin(), threads_.end(),
                                  [](const std::thread& each) { return each.get_id() == std::this_thread::get_id(); });
    Threads former = std::move(left_);
    left_.clear();
    left_.reserve(threads_.size());
    left_.push_back(std::move(*own));
    threads_.erase(own);
    lock.unlock();
    join(std::move(former));  // unlocked: they may still destroy what is thread_local, and that may schedule something
    lock.lock();
}

/// Does not look while nothing waits.
void Workers::look_later_locked() noexcept {
    if (waited_for_ != 0 || scheduled_.empty() || ended_) return;
    waited_for_ = pushed_;
    loop_->set(alarm_, boot_now() + kPatience);
}

void Workers::look() noexcept {
    const std::lock_guard lock(mutex_);
    const std::uint64_t waiting = waited_for_ - std::min(taken_, waited_for_);
    waited_for_ = 0;
    if (ended_) return;
    if (waiting > 0) {
        try {
            add_threads(std::min<std::size_t>(waiting, threads_.size()));
        } catch (const std::exception&) {  // no memory or no thread: the present ones must do
        }
    }
    look_later_locked();
}

void Workers::end() noexcept {
    Threads threads, left;
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        threads.swap(threads_);
        left.swap(left_);
        changed_.notify_all();
    }
    join(std::move(threads));
    join(std::move(left));
    if (const auto alarm = std::exchange(alarm_, nullptr)) loop_->remove(alarm);
}

void Workers::join(Threads threads) noexcept {
    for (std::thread& each : threads) {
        if (each.get_id() == std::this_thread::get_id())
            each.detach();
        else
            each.join();
    }
}

}  // namespace zkrecipes::internal
