#include <spdlog/spdlog.h>

#include <atomic>
#include <utility>

#include "base/wait_event.hpp"
#include "session/common/subscriber.hpp"
#include "session/session_core.hpp"

namespace zkrecipes::internal {
namespace {

constexpr Nanoseconds kFlushAtMost = std::chrono::seconds(1);  // how long a destructor waits for a user's callback

}  // namespace

void SessionCore::begin_close() {
    may_act_until_ = Instant::min();
    if (closing()) return;
    // Half of the time for deletes whose success a call may be waiting for, half for the handle. The servers delete
    // what is left when they are told that the session is closed.
    drain_until_ = runtime().now() + Nanoseconds(options().close_timeout) / 2;
    apply(fsm().close(Errc::closed, "by close() or by the destructor; make a new Session"));
    continue_close();
}

/// Runs at the end of each hold of the session lock while closing.
void SessionCore::continue_close() {
    if (drain_until_ == Instant::max()) return;
    const bool cleaned_up = node_cleaner().pending() == 0;
    if (!cleaned_up && fsm().has_session() && runtime().now() < drain_until_) return;
    drain_until_ = Instant::max();
    apply(fsm().finish_close());
}

void SessionCore::on_last_handle_closed() {
    if (closed_) return;
    log().info("session {:#x}: closed", printable_id());
    for (const auto& waiter : close_waiters_) wake(waiter);
    close_waiters_.clear();
    closed_ = true;
    if (core_gone_) stop_lanes(false);
}

void SessionCore::wait_closed(bool bounded) {
    const auto event = std::make_shared<WaitEvent>();
    bool waits = false;
    TimerId timer = 0;
    run_locked([&] {
        begin_close();
        if (closed_) return;
        waits = true;
        close_waiters_.push_back(event);
        if (bounded) {
            timer = at(runtime().now() + options().close_timeout, [this, event] {
                log().warn("session {:#x}: close() gives up waiting; the servers end the session at its timeout",
                           printable_id());
                wake(event);
            });
        }
    });
    if (!waits) return;
    event->wait();
    run_locked([&] { cancel(timer); });
}

void SessionCore::close() noexcept {
    if (inherited()) return;
    const auto keep = self();
    try {
        if (!may_lock()) {
            post_locked([this] { begin_close(); });  // not in the middle of a step
        } else if (InternalThread::here()) {
            run_locked([&] { begin_close(); });  // this thread may be the one that the end waits for
        } else {
            wait_closed(true);
        }
    } catch (...) {
        log_thrown(log(), "session: close failed");
    }
}

/// The last pointer of the recipes is gone, on any thread, perhaps under the session lock.
void SessionCore::core_is_gone() noexcept {
    try {
        const auto mark = [this] {
            core_gone_ = true;
            return closed_;
        };
        if (!may_lock()) {
            post_locked([this, mark] {
                begin_close();
                if (mark()) stop_lanes(false);
            });
            return;
        }
        // A stay of its own: where there is no handle to wait for, as after a constructor that has thrown, the session
        // is closed at its end, and the threads can be waited for.
        run_internally([&] { begin_close(); });
        bool closed = false;
        run_internally([&] { closed = mark(); });
        if (closed) stop_lanes(!InternalThread::here() && !NotifierThread::here());
    } catch (...) {
        log_thrown(log(), "session: shutdown failed");
    }
}

/// Ends the threads. On a user's thread it waits for them, unless they are busy: with a callback of the user, or with a
/// name that is not resolved.
void SessionCore::stop_lanes(bool may_wait) noexcept {
    try {
        if (may_wait) {
            struct Flush {
                WaitEvent event;
                std::atomic<int> busy{2};
            };
            const auto flush = std::make_shared<Flush>();
            for (const Lane lane : {Lane::notifier, Lane::blocking}) {
                runtime().post(lane, [flush] {
                    if (--flush->busy == 0) flush->event.set();
                });
            }
            runtime().at(runtime().now() + kFlushAtMost, [flush] { flush->event.set(); });
            flush->event.wait();
            if (flush->busy.load() == 0) {
                runtime().stop();
                return;
            }
        }
        runtime().post(Lane::blocking, [runtime = shared_runtime()] { runtime->stop(); });
    } catch (...) {
        log_thrown(log(), "session: cannot end the threads");
    }
}

}  // namespace zkrecipes::internal
