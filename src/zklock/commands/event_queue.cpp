#include "zklock/commands/event_queue.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace zkrecipes::zklock {

EventQueue::EventQueue() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_) throw std::system_error(errno, std::generic_category(), "eventfd");
}

EventQueue::Batch EventQueue::take() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(fd_.get(), &count, sizeof count);
    const std::lock_guard lock(mutex_);
    Batch batch = std::move(batch_);
    batch_ = Batch{};
    batch_.lost = batch.lost;
    return batch;
}

void EventQueue::post_state(SessionState state) {
    {
        const std::lock_guard lock(mutex_);
        batch_.states.push_back({state, BootClock::now()});
    }
    wake();
}

void EventQueue::post_acquired(AcquireResult result) {
    {
        const std::lock_guard lock(mutex_);
        batch_.acquired = std::move(result);
    }
    wake();
}

void EventQueue::post_queue(QueueView view) {
    {
        const std::lock_guard lock(mutex_);
        batch_.queue = std::move(view);
    }
    wake();
}

void EventQueue::post_confirmed(Instant asked) {
    {
        const std::lock_guard lock(mutex_);
        batch_.confirmed = asked;
    }
    wake();
}

void EventQueue::post_lost() {
    {
        const std::lock_guard lock(mutex_);
        batch_.lost = true;
    }
    wake();
}

void EventQueue::post_failure(std::exception_ptr failure) {
    {
        const std::lock_guard lock(mutex_);
        batch_.failure = std::move(failure);
    }
    wake();
}

void EventQueue::wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = ::write(fd_.get(), &one, sizeof one);
}

}  // namespace zkrecipes::zklock
