#include "core/operation/read_op.hpp"

#include <utility>

#include "core/operation/types.hpp"

namespace zkrecipes::internal {

ReadOp::Outcome ReadOp::run(Deadline deadline, std::stop_token stop) {
    const auto self = shared_from_this();
    const auto core = core_;
    try {
        const std::stop_callback on_stop(std::move(stop),
                                         [&] { core->run_locked_or_post([self] { self->end(Outcome::stopped); }); });
        core->run_locked([&] {
            if (!over_) start(deadline);
        });
        event_.wait();
    } catch (...) {
        core->run_locked([&] { end(Outcome::stopped); });
        throw;
    }
    if (error_) throw *error_;
    return outcome_;
}

struct ReadOp::Later {
    std::shared_ptr<SessionCore> core;
    std::shared_ptr<ReadOp> op;
    std::function<void(Outcome, const Error*)> done;
    std::optional<std::stop_callback<StopLater>> on_stop;
};

void ReadOp::StopLater::operator()() const {
    later->core->run_locked_or_post([op = later->op] {
        // Before the start the callback that this is may still be being made.
        op->started_ ? op->end(Outcome::stopped) : void(op->stopped_early_ = true);
    });
}

void ReadOp::run_later(Deadline deadline, std::stop_token stop, std::function<void(Outcome, const Error*)> done) {
    const auto core = core_;
    const auto later = std::make_shared<Later>();
    later->core = core;
    later->op = shared_from_this();
    later->done = std::move(done);
    later_ = later;
    try {
        if (stop.stop_possible()) later->on_stop.emplace(std::move(stop), StopLater{later.get()});
        core->run_locked([&] { stopped_early_ ? end(Outcome::stopped) : start(deadline); });
    } catch (...) {
        if (!later_) return;  // `done` is told
        later_.reset();
        throw;
    }
}

void ReadOp::run_or_throw(Deadline deadline) {
    if (run(deadline) == Outcome::timed_out) {
        throw Error(Errc::unreachable, operation_, user_path_, "the deadline passed before a server answered");
    }
}

void ReadOp::start(Deadline deadline) {
    started_ = true;
    if (const Error* why = core_->closed_because()) {
        return fail(why->errc(), why->errc() == Errc::closed ? "" : why->what());
    }
    once_ = deadline.is_passed(core_->runtime().steady_now());
    core_->add_observer(*this);
    observing_ = true;
    if (!once_ && !deadline.is_never()) {
        deadline_timer_ = core_->at(core_->runtime().instant(deadline), [this] {
            deadline_timer_ = 0;
            end(Outcome::timed_out);
        });
    }
    if (core_->connected()) return begin();
    if (!once_ && core_->incarnation().number == 0) {
        waiting_for_session_ = true;  // before the first connect nothing has failed yet
    } else {
        broken();
    }
}

void ReadOp::broken() {
    ++round_;  // what is still to be answered belongs to the past
    clean_up();
    if (once_) return end(Outcome::timed_out);
    const Instant now = core_->runtime().now();
    const auto delay = outage_.failed(now, core_->runtime().random(),
                                      [this](const RetryState& state) { return core_->options().retry.next(state); });
    if (!delay) return fail(Errc::connection_lost, outage_.gave_up());
    in_backoff_ = true;
    retry_timer_ = core_->at(now + *delay, [this] {
        retry_timer_ = 0;
        in_backoff_ = false;
        if (!core_->connected()) return broken();
        begin();
    });
}

void ReadOp::on_connected(bool) {
    outage_.connected();
    if (std::exchange(waiting_for_session_, false)) begin();
}

void ReadOp::on_suspended() {
    // A request on its way is answered in any case; a watch that is waited for is not.
    if (!in_backoff_ && !waiting_for_session_) broken();
}

void ReadOp::on_session_lost() {
    if (!in_backoff_ && !waiting_for_session_) broken();
}

void ReadOp::on_closed(const Error& why) {
    observing_ = false;
    if (!over_) return fail(why.errc(), why.errc() == Errc::closed ? "" : why.what());
    // A step failed in the middle of the end of this.
    outcome_ = Outcome::done;
    error_ = why;
    tell();
}

bool ReadOp::usable(Rc rc, const char* request, const std::string& path) {
    switch (meaning(rc)) {
        case Meaning::done:
        case Meaning::refused: outage_.answered(); return true;
        case Meaning::failed:
            fail(error_of(rc), std::string(request) + " of " + path + " was answered: " + to_string(rc));
            return false;
        case Meaning::not_done:
        case Meaning::unknown:
        case Meaning::session_over: broken(); return false;
    }
    return false;
}

void ReadOp::done() { end(Outcome::done); }

void ReadOp::fail(Errc error, std::string detail) { end(Outcome::done, Error(error, operation_, user_path_, detail)); }

void ReadOp::end(Outcome outcome, std::optional<Error> error) {
    if (std::exchange(over_, true)) return;
    if (started_) clean_up();
    at_end();
    outcome_ = outcome;
    error_ = std::move(error);
    if (deadline_timer_ != 0) core_->cancel(std::exchange(deadline_timer_, 0));
    if (retry_timer_ != 0) core_->cancel(std::exchange(retry_timer_, 0));
    tell();
}

void ReadOp::tell() {
    // The core is let go without the session lock; a late answer, which keeps this object alive, is dropped inside it.
    const auto core = core_;
    const auto self = shared_from_this();  // whoever is notified may be done with it before this returns
    if (later_) {
        core->notify([later = later_] {
            // Here, because it may be waiting for the session lock on another thread.
            later->on_stop.reset();
            const auto op = std::move(later->op);
            std::exchange(later->done, nullptr)(op->outcome_, op->error_ ? &*op->error_ : nullptr);
        });
        later_.reset();
    }
    core->defer([self, core] { self->event_.set(); });
    if (std::exchange(observing_, false)) core->remove_observer(*this);
    core_.reset();
}

}  // namespace zkrecipes::internal
