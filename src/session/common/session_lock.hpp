#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include <boost/container/small_vector.hpp>

#include "base/process.hpp"
#include "base/runtime.hpp"
#include "base/wait_event.hpp"
#include "session/common/internal_thread.hpp"

namespace spdlog {
class logger;
}

namespace zkrecipes::internal {

/// One mutex per session, and all that is run under it: work of the callers, of the lanes and of timers.
///
/// Protocol work is short and never blocks, and so an answer needs no further thread to reach its waiter. The object
/// lives as long as anything that is to run under the lock; self() keeps it.
class SessionLock {
public:
    SessionLock(std::shared_ptr<Runtime> runtime, std::shared_ptr<spdlog::logger> logger);
    virtual ~SessionLock();
    SessionLock(const SessionLock&) = delete;
    SessionLock& operator=(const SessionLock&) = delete;

    // ---- anywhere --------------------------------------------------------------------------------------------------
    /// Runs `work` under the session lock, then, outside of it, what `work` left to do. Throws would_deadlock under a
    /// session lock, where a retry policy or a log sink of the user runs, and closed in a forked child.
    ///
    /// An Error that `work` throws is meant for the caller. Whatever else is thrown under the session lock may have
    /// left something half done: the session is closed with it (fail_stop), and the caller is told.
    template <class Work>
    void run_locked(Work&& work) {
        run_for_caller(std::ref(work));
    }
    /// The same for destructors and stop callbacks: under a session lock `work` runs soon, on the protocol lane. It
    /// owns what it uses. Does nothing in a forked child.
    void run_locked_or_post(std::function<void()> work) noexcept;
    /// Runs `work` under the session lock soon, on the protocol lane.
    void post_locked(std::function<void()> work);
    /// run_locked(), called by our own threads: nothing may be thrown into them, and any exception closes the session.
    template <class Work>
    void run_internally(Work&& work) noexcept {
        run_for_us(std::ref(work));  // which does not allocate
    }
    /// Whether run_locked() would run its work in this process. False for user code that runs under a session lock: a
    /// retry policy, of whichever session; a log sink.
    bool may_lock() const noexcept {
        return owner_.load(std::memory_order_relaxed) != std::this_thread::get_id() && !PolicyCall::here();
    }
    /// User code: on the notifier thread, with no lock held; what it throws is logged.
    void notify(std::function<void()> callback);

    Runtime& runtime() const noexcept { return *runtime_; }
    spdlog::logger& log() const noexcept { return *logger_; }
    // For what a user's callback needs, which must not keep the session alive.
    const std::shared_ptr<Runtime>& shared_runtime() const noexcept { return runtime_; }
    const std::shared_ptr<spdlog::logger>& shared_log() const noexcept { return logger_; }
    /// Lock-free: this is a copy in a forked child. The threads are missing, the connection is the parent's, and any
    /// mutex may be locked for ever: nothing of it may be used or destroyed.
    bool inherited() const noexcept { return process_.inherited(); }
    void throw_if_inherited(const char* operation, const std::string& user_path) const;
    /// For what is sent or posted. It does not keep the session open.
    std::shared_ptr<SessionLock> self() const { return std::shared_ptr<SessionLock>(self_); }

    // ---- lock held -------------------------------------------------------------------------------------------------
    // What follows happens right after the session lock was released, on this thread.
    void wake(std::shared_ptr<WaitEvent> waiter) { after_->push_back({waiter, waiter.get()}); }
    /// So many more of these two do not throw.
    void make_room(std::size_t count) { after_->reserve(after_->size() + count); }
    /// For what may be the last reference, to something that must not be destroyed under the session lock.
    void let_go(std::shared_ptr<const void> object) { after_->push_back({std::move(object), nullptr}); }
    TimerId at(Instant when, std::function<void()> work);  // `work` runs under the session lock
    bool cancel(TimerId timer);  // after this `work` does not run, true or false, if it has not begun
    bool has_timers() const { return !timers_.empty(); }

protected:
    /// Whoever makes the object says which pointer keeps it, before anything is run under the lock.
    void kept_by(const std::shared_ptr<SessionLock>& self) { self_ = self; }
    /// on_time() is called at `when`, or earlier.
    void arm(Instant when);

private:
    /// The end of each hold of the session lock. Calls arm().
    virtual void settle() = 0;
    virtual void on_time() = 0;
    /// `thrown` was thrown under the session lock.
    virtual void fail_stop(const std::exception_ptr& thrown) noexcept = 0;

    struct UserTimer {
        TimerId runtime_timer = 0;
        std::function<void()> work;
    };

    void run_for_caller(const std::function<void()>& work);
    void run_for_us(const std::function<void()>& work) noexcept;
    void run(const std::function<void()>& work, bool errors_are_told);
    struct AfterRelease {
        std::shared_ptr<const void> owner;
        WaitEvent* to_set;  // null: nobody waits
    };
    /// Room for what an acquire or a release leaves to do.
    using AllAfterRelease = boost::container::small_vector<AfterRelease, 8>;
    void release(AllAfterRelease after);

    const ProcessMark process_;
    const std::shared_ptr<Runtime> runtime_;
    const std::shared_ptr<spdlog::logger> logger_;
    std::weak_ptr<SessionLock> self_;

    std::mutex mutex_;                      // guards everything of the session that is not const or atomic
    std::atomic<std::thread::id> owner_{};  // the thread that holds it
    AllAfterRelease* after_ = nullptr;      // of whoever holds it

    std::unordered_map<TimerId, UserTimer> timers_;
    TimerId last_timer_ = 0;
    TimerId housekeeping_ = 0;
    Instant housekeeping_at_ = Instant::max();
};

}  // namespace zkrecipes::internal
