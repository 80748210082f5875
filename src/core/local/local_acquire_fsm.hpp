#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/operation/retrying_fsm.hpp"

namespace zkrecipes::internal {

/// What one call in a local queue asks of its surroundings.
class LocalAcquirePort : public virtual OperationPort {
public:
    virtual void line_up() = 0;   // on_granted or on_refused, perhaps at once
    virtual void step_out() = 0;  // harmless where it has not lined up
    /// A try: on_granted, on_busy or on_refused, perhaps at once.
    virtual void try_once() = 0;
    virtual void stop_try() = 0;
    virtual void answer(Ended how, Errc error, std::string detail) = 0;
};

enum class LocalAcquireStep : std::uint8_t { idle, awaiting_session, backing_off, leaving, finished, waiting, trying };

/// One call that waits in a local queue. It has its own deadline, and its own outages, which count from its arrival:
/// the place in the queue of the lock is looked after by the local queue.
class LocalAcquireFsm final : public RetryingFsm<LocalAcquirePort, LocalAcquireStep> {
public:
    LocalAcquireFsm(LocalAcquirePort& port, Patience patience) : RetryingFsm(port, patience) {}

    void start() override {
        if (once()) {
            step_ = Step::trying;
            return port_.try_once();
        }
        step_ = Step::waiting;
        port_.line_up();
        if (!is_over() && !port_.connected()) await_connection();
    }
    void stop() override { step_ == Step::trying ? port_.stop_try() : RetryingFsm::stop(); }
    void on_closed(Errc why, std::string detail) override {
        if (step_ != Step::trying) RetryingFsm::on_closed(why, std::move(detail));  // else the try answers that
    }

    void on_granted() { leave(Ended::granted); }
    void on_busy(Ended how) { leave(how); }
    void on_refused(Errc error, std::string detail) { fail(error, std::move(detail)); }

private:
    void resume() override {
        outage_.over();
        step_ = Step::waiting;
    }
    bool is_idle() const noexcept override { return step_ == Step::waiting; }
    void clean_up() override { port_.step_out(); }
    void answer(Ended how, Errc error, std::string detail) override { port_.answer(how, error, std::move(detail)); }
};

}  // namespace zkrecipes::internal
