// What happens when a step under the session lock throws: memory is short, mostly.
#include <spdlog/spdlog.h>

#include <exception>
#include <string>
#include <utility>

#include "session/session_core.hpp"

namespace zkrecipes::internal {
namespace {

std::string text_of(const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "something that is not a std::exception";
    }
}

}  // namespace

/// The step may have left anything half done: an answer that was not given, a node that is not deleted. So nothing
/// that is known counts any more. The session is closed, the servers delete its nodes, and every observer is told why.
void SessionCore::fail_stop(const std::exception_ptr& thrown) noexcept {
    // First what cannot fail: no hold is sure any more, and none can begin.
    const bool was_serving = stop_serving();
    end_lease();
    failure_unfinished_ = true;
    if (!std::exchange(failed_, true)) {
        if (was_serving) may_act_until_ = lease_clock().ends_at();
        try {
            const std::string detail = "an internal step failed: " + text_of(thrown) + "; make a new Session";
            failure_ = Error(kStepFailed, "session", options().hosts, detail);
            log().critical("{}", failure_->what());
            if (closed_because() == nullptr) closed_detail_ = detail;
        } catch (...) {
            // Memory is short: the words that were prepared must do.
        }
    }
    finish_failing();
}

/// Each part by itself. Where one fails it is tried again at the end of the next hold of the session lock. The handle
/// is closed, and with it the nodes are deleted, when the lease as it was before is over, or the owner closes the
/// session: a holder may have begun something that fits into what remaining_lease() told it.
void SessionCore::finish_failing() noexcept {
    bool all_done = true;
    const auto attempt = [&all_done](auto&& part) noexcept {
        try {
            part();
        } catch (...) {
            all_done = false;
        }
    };
    drain_until_ = Instant::max();
    stop_heartbeat();
    settings_.stop();
    if (closed_because() == nullptr) {  // not when it was being closed anyway
        close_because(std::move(*failure_));
        failure_.reset();
    }
    const Error& why = failure_ ? *failure_ : *closed_because();
    attempt([this] { lose_all(LossReason::closed, "an internal step failed, and the session was closed"); });
    attempt([this] { tell_of_losses(); });
    // What the state machine says is to be done is done here, whatever of it had been done before.
    attempt([this] { fsm().close(closed_because()->errc(), {}); });
    attempt([this] { update_info(); });
    if (state() != SessionState::closed) attempt([this] { on_state(SessionState::closed); });
    attempt([this] { wake_connect_waiters(); });
    observers_.each([&](SessionObserver& observer) {
        observers_.remove(observer);
        attempt([&] { observer.on_closed(why); });
    });
    const bool may_close = runtime().now() >= may_act_until_;
    if (may_close) {
        attempt([this] { fsm().finish_close(); });
        attempt([this] { on_session_over(); });
        attempt([this] { close_handle({}); });
    }
    failure_unfinished_ = !all_done || !may_close;
}

}  // namespace zkrecipes::internal
