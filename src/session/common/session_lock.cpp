#include "session/common/session_lock.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include <zkrecipes/error.hpp>

#include "base/threads/about_to_block.hpp"
#include "base/wait_event.hpp"
#include "session/common/subscriber.hpp"

namespace zkrecipes::internal {
namespace {

/// This thread holds the session lock.
class Owner {
public:
    explicit Owner(std::atomic<std::thread::id>& owner) noexcept : owner_(owner) {
        owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    ~Owner() { owner_.store(std::thread::id(), std::memory_order_relaxed); }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;

private:
    std::atomic<std::thread::id>& owner_;
};

[[noreturn]] void refuse_entry() {
    throw Error(Errc::would_deadlock, "call from a retry policy or a log sink", {},
                "the session waits for its answer; let a policy only decide, and do the rest on a thread of your own");
}

}  // namespace

SessionLock::SessionLock(std::shared_ptr<Runtime> runtime, std::shared_ptr<spdlog::logger> logger)
    : runtime_(std::move(runtime)), logger_(std::move(logger)) {}
SessionLock::~SessionLock() = default;

void SessionLock::throw_if_inherited(const char* operation, const std::string& user_path) const {
    if (!inherited()) return;
    throw Error(Errc::closed, operation, user_path,
                "this session belongs to the parent process; make a new Session in this process, after the fork");
}

void SessionLock::run(const std::function<void()>& work, bool errors_are_told) {
    if (!may_lock()) refuse_entry();
    AllAfterRelease after;
    std::exception_ptr thrown;
    {
        const UserCodeLock lock(mutex_);
        const Owner owner(owner_);
        after_ = &after;
        const auto attempt = [&](auto&& step, bool may_refuse) {
            try {
                step();
                return true;
            } catch (const Error&) {
                if (!thrown) thrown = std::current_exception();
                if (may_refuse) return true;
            } catch (...) {
                if (!thrown) thrown = std::current_exception();
            }
            fail_stop(thrown);
            return false;
        };
        attempt(work, errors_are_told);
        const auto end = [this] { settle(); };
        if (!attempt(end, false)) attempt(end, false);  // what fail_stop() could not finish needs its alarm
    }
    release(std::move(after));
    if (thrown) std::rethrow_exception(thrown);
}

void SessionLock::run_for_caller(const std::function<void()>& work) {
    throw_if_inherited("session", {});
    const auto keep = self();  // `work` may drop the last reference to this session
    run(work, true);
}

void SessionLock::run_for_us(const std::function<void()>& work) noexcept {
    const InternalThread mark;
    try {
        run(work, false);
    } catch (...) {
        // The session was closed because of it, and everybody was told.
    }
}

void SessionLock::post_locked(std::function<void()> work) {
    runtime_->post(Lane::protocol, [self = self(), work = std::move(work)] { self->run_internally(work); });
}

void SessionLock::run_locked_or_post(std::function<void()> work) noexcept {
    if (inherited()) return;
    try {
        may_lock() ? run_locked(work) : post_locked(std::move(work));
    } catch (...) {
        log_thrown(*logger_, "session: something could not be ended in order");
    }
}

void SessionLock::notify(std::function<void()> callback) {
    runtime_->post(Lane::notifier, [logger = logger_, callback = std::move(callback)]() mutable {
        const NotifierThread mark;
        try {
            callback();
        } catch (...) {
            log_thrown(*logger, "a callback threw");
        }
        callback = nullptr;  // what it owns dies under the mark, too: it may be the last one to hold the session
    });
}

/// A thread that is about to end may not be able to wake a fiber any more; then a lane does it.
void SessionLock::release(AllAfterRelease after) {
    const auto act = [](const AllAfterRelease& all) {
        for (const auto& each : all) {
            if (each.to_set != nullptr) each.to_set->set();
        }
    };
    if (after.empty() || fibers_work_here()) return act(after);
    runtime_->post(Lane::protocol, [act, after = std::move(after)]() mutable {
        const InternalThread mark;
        act(after);
        after.clear();  // what it owns dies under the mark, too: it may be the last one to hold the session
    });
}

TimerId SessionLock::at(Instant when, std::function<void()> work) {
    const TimerId id = ++last_timer_;
    UserTimer timer;
    timer.work = std::move(work);
    if (when != Instant::max()) {
        timer.runtime_timer = runtime_->at(when, [weak = self_, id] {
            const auto self = weak.lock();
            if (!self) return;
            self->run_internally([&] {
                auto node = self->timers_.extract(id);
                if (!node.empty()) node.mapped().work();
            });
        });
    }
    timers_.emplace(id, std::move(timer));
    return id;
}

bool SessionLock::cancel(TimerId id) {
    auto node = timers_.extract(id);
    if (node.empty()) return false;
    if (node.mapped().runtime_timer != 0) runtime_->cancel(node.mapped().runtime_timer);
    return true;
}

/// One timer serves all that the parts of the session wait for. It is moved only to come earlier; when it comes too
/// early it is set anew.
void SessionLock::arm(Instant when) {
    if (when >= housekeeping_at_) return;
    const TimerId timer = runtime_->at(when, [weak = self_, when] {
        const auto self = weak.lock();
        if (!self) return;
        self->run_internally([&] {
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

}  // namespace zkrecipes::internal
