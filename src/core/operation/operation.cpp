#include "core/operation/operation.hpp"

#include "base/identity.hpp"

namespace zkrecipes::internal {
namespace {

/// What the state machine is told of the reason.
std::string words_of(const Error& why) { return why.errc() == Errc::closed ? "" : why.what(); }

}  // namespace

void Operation::start(Deadline deadline) {
    self_ = shared_from_this();
    started_ = true;
    deadline_ = deadline;
    on_start();
    if (const Error* why = core_->closed_because()) return machine().on_closed(why->errc(), words_of(*why));
    if (stopped_early_) return machine().stop();
    core_->add_observer(*this);
    observing_ = true;
    if (!deadline.is_never()) {
        deadline_timer_ = core_->at(core_->runtime().instant(deadline), [this] {
            deadline_timer_ = 0;
            machine().deadline();
        });
    }
    machine().start();
}

void Operation::stop() {
    if (!core_) return;
    started_ ? machine().stop() : void(stopped_early_ = true);
}

void Operation::finished() {
    core_->make_room(3);  // with that of the reservation
    if (observing_) core_->remove_observer(*this);
    if (deadline_timer_ != 0) core_->cancel(std::exchange(deadline_timer_, 0));
    stop_timer();
    reserved_.release(*core_);
    // Answers to reads that nobody waits for may still come and are dropped, and with them this object. That happens
    // under the session lock, where the core must not be destroyed: it is let go here.
    SessionCore& session = *core_;
    session.let_go(std::move(self_));
    session.let_go(std::move(core_));
}

void Operation::on_connected(bool) { machine().on_connected(); }
void Operation::on_suspended() { machine().on_suspended(); }
void Operation::on_session_lost() { machine().on_session_lost(); }
void Operation::on_closed(const Error& why) {
    observing_ = false;
    machine().on_closed(why.errc(), words_of(why));
}

Instant Operation::now() const { return core_->runtime().now(); }
std::uint64_t Operation::random() { return core_->runtime().random(); }
std::string Operation::new_uuid() { return random_uuid(core_->runtime()); }
std::optional<std::chrono::milliseconds> Operation::next_delay(const RetryState& state) {
    return core_->options().retry.next(state);
}

void Operation::start_timer(std::chrono::milliseconds delay) {
    retry_timer_ = core_->at(core_->runtime().now() + delay, [this] {
        retry_timer_ = 0;
        machine().on_timer();
    });
}

void Operation::stop_timer() {
    if (retry_timer_ != 0) core_->cancel(std::exchange(retry_timer_, 0));
}

}  // namespace zkrecipes::internal
