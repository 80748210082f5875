#include "sim/fiber_scheduler.hpp"

#include <cstdio>
#include <cstdlib>

#include <boost/fiber/operations.hpp>

namespace zkrecipes::sim {

namespace {
thread_local FiberScheduler* installed = nullptr;
}

FiberScheduler& FiberScheduler::of_this_thread() {
    if (installed == nullptr) {
        auto* made = new FiberScheduler;  // owned by the thread's scheduler from here on
        boost::fibers::context::active()->get_scheduler()->set_algo(algorithm::ptr_t(made));
        installed = made;
    }
    return *installed;
}

bool FiberScheduler::eligible(const Ready& ready) const noexcept {
    if (ready.actor == nullptr) return true;
    if (ready.actor->paused()) return false;
    const void* const first = SimWorld::resuming_task(*ready.actor);
    return first == nullptr || first == ready.context;
}

bool FiberScheduler::workload_ready() const noexcept {
    for (const Ready& ready : ready_) {
        if (eligible(ready)) return true;
    }
    return false;
}

void FiberScheduler::awakened(boost::fibers::context* context, FiberProps& props) noexcept {
    if (context->is_context(boost::fibers::type::main_context) ||
        context->is_context(boost::fibers::type::dispatcher_context)) {
        others_.push_back(context);
    } else {
        ready_.push_back({context, props.actor});
    }
}

boost::fibers::context* FiberScheduler::pick_next() noexcept {
    std::size_t candidates = 0;
    for (Ready& ready : ready_) {
        // The actor of a fiber that has just been launched is known only now.
        if (auto* props = static_cast<FiberProps*>(get_properties(ready.context))) ready.actor = props->actor;
        if (eligible(ready)) ++candidates;
    }
    if (candidates > 0) {
        std::size_t skip = candidates > 1 && world_ != nullptr ? world_->order_.below(candidates) : 0;
        for (std::size_t i = 0; i < ready_.size(); ++i) {
            if (!eligible(ready_[i]) || skip-- > 0) continue;
            const Ready chosen = ready_[i];
            ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(i));
            if (chosen.actor != nullptr) SimWorld::resuming_task(*chosen.actor) = nullptr;
            if (world_ != nullptr) world_->current_ = chosen.actor;
            return chosen.context;
        }
    }
    if (others_.empty()) return nullptr;
    auto* const chosen = others_.front();
    others_.erase(others_.begin());
    if (world_ != nullptr && chosen->is_context(boost::fibers::type::main_context)) {
        world_->current_ = world_->event_actor_;
    }
    return chosen;
}

void FiberScheduler::suspend_until(const std::chrono::steady_clock::time_point&) noexcept {
    // Only the world's loop wakes fibers. If it is here, the loop itself waits for something: an event handler blocked.
    std::fputs("simulation: an event handler blocked; blocking calls belong into fibers\n", stderr);
    std::abort();
}

}  // namespace zkrecipes::sim
