#include <algorithm>
#include <utility>

#include "session/session_impl.hpp"

namespace zkrecipes::internal {
namespace {

constexpr Nanoseconds kFailAgain = std::chrono::milliseconds(100);

}  // namespace

void SessionImpl::post_inside(std::function<void()> work) {
    runtime_->post(Lane::protocol, [self = shared_from_this(), work = std::move(work)] { self->internally(work); });
}

void SessionImpl::run_locked_or_post(std::function<void()> work) noexcept {
    try {
        may_lock() ? inside(work) : post_inside(std::move(work));
    } catch (const std::exception& error) {
        logger_->critical("session: something could not be ended in order: {}", error.what());
    }
}

[[noreturn]] void SessionImpl::refuse_entry() {
    throw Error(Errc::would_deadlock, "call from a retry policy or a log sink", {},
                "the session waits for its answer; let a policy only decide, and do the rest on a thread of your own");
}

void SessionImpl::notify(std::function<void()> callback) {
    runtime_->post(Lane::notifier, [logger = logger_, callback = std::move(callback)]() mutable {
        const NotifierThread mark;
        try {
            callback();
        } catch (const std::exception& error) {
            logger->error("a callback threw: {}", error.what());
        } catch (...) {
            logger->error("a callback threw");
        }
        callback = nullptr;  // what it owns dies under the mark, too: it may be the last one to hold the session
    });
}

/// Does what was deferred. A thread that is about to end may not be able to wake a fiber any more; then a lane does it.
void SessionImpl::release(std::vector<std::function<void()>> after) {
    const auto act = [](const std::vector<std::function<void()>>& actions) {
        for (const auto& action : actions) action();
    };
    if (after.empty() || fibers_work_here()) return act(after);
    runtime_->post(Lane::protocol, [act, after = std::move(after)]() mutable {
        const InternalThread mark;
        act(after);
        after.clear();  // what it owns dies under the mark, too: it may be the last one to hold the session
    });
}

TimerId SessionImpl::at(Instant when, std::function<void()> work) {
    const TimerId id = ++last_timer_;
    UserTimer timer;
    timer.work = std::move(work);
    if (when != Instant::max()) {
        timer.runtime_timer = runtime_->at(when, [weak = weak_from_this(), id] {
            const auto self = weak.lock();
            if (!self) return;
            self->internally([&] {
                auto node = self->timers_.extract(id);
                if (!node.empty()) node.mapped().work();
            });
        });
    }
    timers_.emplace(id, std::move(timer));
    return id;
}

bool SessionImpl::cancel(TimerId id) {
    auto node = timers_.extract(id);
    if (node.empty()) return false;
    if (node.mapped().runtime_timer != 0) runtime_->cancel(node.mapped().runtime_timer);
    return true;
}

/// When what is held is lost, unless its lease is renewed before.
Instant SessionImpl::hold_ends_at() const {
    if (holds_.empty()) return Instant::max();
    return lease_.sure_until();
}

/// At the end of each hold of the session lock: one timer stands for all that the pure parts wait for. It is moved only
/// to come earlier; when it comes too early it is set anew.
void SessionImpl::settle() {
    continue_close();
    if (failure_unfinished_) finish_failing();
    if (fsm_.finished() && !last_handle_closing_ && client_ == nullptr) handle_closed();
    arm(std::min({fsm_.wake_at(), hold_ends_at(), heartbeat_at_, holds_.watch_due_at(), probe_at_, drain_until_,
                  failure_unfinished_ ? runtime_->now() + kFailAgain : Instant::max(), touch_due_at(),
                  connected() ? std::min(stalled_reply_probe_.look_at(), node_cleaner_.wake_at()) : Instant::max()}));
}

void SessionImpl::arm(Instant when) {
    if (when >= housekeeping_at_) return;
    const TimerId timer = runtime_->at(when, [weak = weak_from_this(), when] {
        const auto self = weak.lock();
        if (!self) return;
        self->internally([&] {
            if (self->housekeeping_at_ == when) {
                self->housekeeping_ = 0;
                self->housekeeping_at_ = Instant::max();
            }
            self->on_time();
        });
    });
    // Only now: when at() throws, the next hold of the session lock arms again.
    if (housekeeping_ != 0) runtime_->cancel(housekeeping_);
    housekeeping_ = timer;
    housekeeping_at_ = when;
}

void SessionImpl::on_time() {
    const Instant now = runtime_->now();
    // First of all: nothing that is done below may find a hold that is over.
    if (now >= hold_ends_at()) lose_all(kNoHeartbeat);
    apply(fsm_.on_time(now));
    if (connected() && stalled_reply_probe_.due(now)) send_nudge();
    // Waited for, as every request: left unanswered for seconds it would be no touch for a lock that is taken
    // meanwhile.
    if (now >= touch_due_at()) exists("/", {}, false);
    for (const auto& hold : holds_.take_due_for_watch(now)) watch_own_nodes(hold);
    if (now >= heartbeat_at_) {
        heartbeat_at_ = Instant::max();  // set again by the answers, or by the next connect
        if (!holds_.empty() && connected() && checks_open_ == 0) {
            start_heartbeat(now);
            watch_unwatched();
        }
    }
    if (connected() && now >= node_cleaner_.wake_at()) node_cleaner_.go_on();
    if (now >= probe_at_) start_probe();
}

}  // namespace zkrecipes::internal
