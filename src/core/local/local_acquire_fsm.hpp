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
    /// A try: on_granted, on_taken, on_missed or on_refused, perhaps at once.
    virtual void try_once() = 0;
    virtual void stop_try() = 0;
    virtual bool is_taken() const = 0;         // others hold the lock or are before the place of this session
    virtual std::uint64_t grants() const = 0;  // of this session, so far
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
        look_around();
        port_.line_up();
        if (!is_over() && !port_.connected()) await_connection();
    }
    void stop() override { step_ == Step::trying ? port_.stop_try() : RetryingFsm::stop(); }
    void on_closed(Errc why, std::string detail) override {
        if (step_ != Step::trying) RetryingFsm::on_closed(why, std::move(detail));  // else the try answers that
    }

    void on_granted() { leave(Ended::granted); }
    /// Others of this session are before the try, which therefore asked nobody.
    void on_taken() { leave(port_.connected() ? Ended::busy : Ended::unreachable); }
    void on_missed(Ended how) { leave(how); }
    void on_refused(Errc error, std::string detail) { fail(error, std::move(detail)); }

private:
    void resume() override {
        outage_.over();
        step_ = Step::waiting;
        look_around();
    }
    void forget_attempt() override {
        met_others_ = false;
        grants_ = port_.grants();
    }
    void look_around() {
        met_others_ = port_.is_taken();
        grants_ = port_.grants();
    }
    bool is_idle() const noexcept override { return step_ == Step::waiting; }
    // Also those who had the lock since, if the next place of the session is still to be answered.
    bool others_in_the_way() const override { return met_others_ || port_.is_taken() || port_.grants() != grants_; }
    void clean_up() override { port_.step_out(); }
    void answer(Ended how, Errc error, std::string detail) override { port_.answer(how, error, std::move(detail)); }

    bool met_others_ = false;
    std::uint64_t grants_ = 0;
};

}  // namespace zkrecipes::internal
