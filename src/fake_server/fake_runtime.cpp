#include "fake_server/fake_runtime.hpp"

#include <utility>

#include "session/for_testing.hpp"

namespace zkrecipes::fake {

FakeRuntime::FakeRuntime(std::shared_ptr<Engine> engine)
    : engine_(std::move(engine)), threads_(internal::ForTesting::make_runtime()) {}

TimerId FakeRuntime::at(Instant when, std::function<void()> work) {
    if (engine_->manual()) {
        return engine_->add_timer(when, this, [weak = weak_from_this(), run = std::move(work)]() mutable {
            if (const auto self = weak.lock()) self->post(Lane::protocol, std::move(run));
        });
    }
    return threads_->at(when, [engine = engine_, run = std::move(work)]() mutable {
        const auto busy = engine->busy(Lane::protocol);
        const Engine::Inside inside(*engine);
        run();
        run = nullptr;
    });
}

bool FakeRuntime::cancel(TimerId timer) noexcept {
    return engine_->manual() ? engine_->cancel_timer(timer) : threads_->cancel(timer);
}

void FakeRuntime::post(Lane lane, std::function<void()> work) {
    // The engine knows of it from now until it has run or is dropped.
    threads_->post(lane, [engine = engine_, busy = engine_->busy(lane), run = std::move(work)]() mutable {
        const Engine::Inside inside(*engine);
        run();
        run = nullptr;  // what it owns dies before the lane counts as idle
    });
}

void FakeRuntime::stop() noexcept {
    threads_->stop();
    engine_->drop_timers(this);
}

}  // namespace zkrecipes::fake
