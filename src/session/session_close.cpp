#include <atomic>
#include <utility>

#include "session/session_impl.hpp"

namespace zkrecipes::internal {
namespace {

constexpr Nanoseconds kFlushAtMost = std::chrono::seconds(1);  // how long a destructor waits for a user's callback

}  // namespace

void SessionImpl::begin_close() {
    may_act_until_ = Instant::min();
    if (closing_) return;
    // Half of the time for deletes whose success somebody may be waiting for, half for the handle. The servers delete
    // what is left when they are told that the session is closed.
    drain_until_ = runtime_->now() + Nanoseconds(options_.close_timeout) / 2;
    apply(fsm_.close(Errc::closed, "by close() or by the destructor; make a new Session"));
    continue_close();
}

/// Runs at the end of each hold of the session lock while closing.
void SessionImpl::continue_close() {
    if (drain_until_ == Instant::max()) return;
    const bool cleaned_up = node_cleaner_.pending() == 0;
    if (!cleaned_up && fsm_.has_session() && runtime_->now() < drain_until_) return;
    drain_until_ = Instant::max();
    apply(fsm_.finish_close());
}

bool SessionImpl::wait_closed(bool bounded) {
    const auto event = std::make_shared<WaitEvent>();
    bool waits = false;
    TimerId timer = 0;
    inside([&] {
        begin_close();
        if (closed_) return;
        waits = true;
        close_waiters_.push_back(event);
        if (bounded) {
            timer = at(runtime_->now() + options_.close_timeout, [this, event] {
                logger_->warn("session {:#x}: close() gives up waiting; the servers end the session at its timeout",
                              printable(fsm_.incarnation().session_id));
                deferred_.push_back([event] { event->set(); });
                std::erase(close_waiters_, event);
            });
        }
    });
    if (!waits) return true;
    event->wait();
    bool done = false;
    inside([&] {
        cancel(timer);
        done = closed_;
    });
    return done;
}

void SessionImpl::close() noexcept {
    try {
        if (!may_lock()) {
            post_inside([self = shared_from_this()] { self->begin_close(); });  // not in the middle of a step
        } else if (InternalThread::here()) {
            inside([&] { begin_close(); });  // this thread may be the one that the end waits for
        } else {
            wait_closed(true);
        }
    } catch (const std::exception& error) {
        logger_->critical("session: close failed: {}", error.what());
    }
}

/// The core was destroyed, on any thread, perhaps under the session lock.
void SessionImpl::core_is_gone() noexcept {
    try {
        const auto mark = [](SessionImpl& self) {
            self.core_gone_ = true;
            return self.closed_;
        };
        if (!may_lock()) {
            post_inside([mark, self = shared_from_this()] {
                self->begin_close();
                if (mark(*self)) self->stop_lanes(false);
            });
            return;
        }
        // A stay of its own: where there is no handle to wait for, as after a constructor that has thrown, the session
        // is closed at its end, and the threads can be waited for.
        internally([&] { begin_close(); });
        bool closed = false;
        internally([&] { closed = mark(*this); });
        if (closed) stop_lanes(!InternalThread::here() && !NotifierThread::here());
    } catch (const std::exception& error) {
        logger_->critical("session: shutdown failed: {}", error.what());
    }
}

/// Ends the threads. On a user's thread it waits for them, unless they are busy: with a callback of the user, or with a
/// name that is not resolved.
void SessionImpl::stop_lanes(bool may_wait) noexcept {
    try {
        if (may_wait) {
            struct Flush {
                WaitEvent event;
                std::atomic<int> busy{2};
            };
            const auto flush = std::make_shared<Flush>();
            for (const Lane lane : {Lane::notifier, Lane::blocking}) {
                runtime_->post(lane, [flush] {
                    if (--flush->busy == 0) flush->event.set();
                });
            }
            const TimerId timer = runtime_->at(runtime_->now() + kFlushAtMost, [flush] { flush->event.set(); });
            flush->event.wait();
            runtime_->cancel(timer);
            if (flush->busy.load() == 0) {
                runtime_->stop();
                return;
            }
        }
        runtime_->post(Lane::blocking, [runtime = runtime_] { runtime->stop(); });
    } catch (const std::exception& error) {
        logger_->critical("session: cannot end the threads: {}", error.what());
    }
}

}  // namespace zkrecipes::internal
