#include "session/stats/event_queue.hpp"

#include <spdlog/spdlog.h>

#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {

void EventQueue::push(Kind kind, Event event) {
    const Instant due = runtime_->now() + kWaitForOthers;
    const std::lock_guard lock(mutex_);
    if (kind != Kind::certain && events_.size() >= kMost) return dropped_.add();
    events_.push_back(std::move(event));
    if (posted_) return;
    if (kind != Kind::common || events_.size() >= kMost / 2) return post();
    if (events_.size() == 1) flush_at_ = due.time_since_epoch().count();
}

void EventQueue::flush() {
    const std::lock_guard lock(mutex_);
    if (!posted_ && !events_.empty()) post();
}

Instant EventQueue::flush_at() const noexcept { return Instant(Nanoseconds(flush_at_.load())); }

void EventQueue::post() noexcept {
    try {
        runtime_->post(Lane::notifier, [self = shared_from_this()] { self->tell(); });
        posted_ = true;
        flush_at_ = Instant::max().time_since_epoch().count();
    } catch (...) {  // for want of memory: the events stay, and it is tried again
        flush_at_ = (runtime_->now() + kWaitForOthers).time_since_epoch().count();
    }
}

void EventQueue::tell() {
    const NotifierThread mark;
    std::vector<Event> events;
    {
        const std::lock_guard lock(mutex_);
        events.swap(events_);
        posted_ = false;
    }
    for (Event& event : events) {
        try {
            event(*listener_);
        } catch (...) {
            log_thrown(*logger_, "a function of SessionEvents threw");
        }
        event = nullptr;
    }
}

}  // namespace zkrecipes::internal
