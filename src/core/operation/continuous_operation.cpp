#include "core/operation/continuous_operation.hpp"

namespace zkrecipes::internal {

void ContinuousOperation::start() {
    self_ = shared_from_this();
    core_->add_observer(*this);
    machine().start();
}

void ContinuousOperation::stop() {
    if (!core_ || !self_) return;
    core_->remove_observer(*this);
    end();
}

void ContinuousOperation::end() {
    core_->make_room(2);
    remove_watches();
    stop_timer();
    // Answers that nobody waits for may still come. They are dropped under the session lock, where the core must not be
    // destroyed: it is let go here.
    SessionCore& session = *core_;
    session.let_go(std::move(self_));
    session.let_go(std::move(core_));
}

void ContinuousOperation::start_timer(std::chrono::milliseconds delay) {
    timer_ = core_->at(core_->runtime().now() + delay, [this] {
        timer_ = 0;
        machine().on_timer();
    });
}

void ContinuousOperation::stop_timer() {
    if (timer_ != 0) core_->cancel(std::exchange(timer_, 0));
}

}  // namespace zkrecipes::internal
