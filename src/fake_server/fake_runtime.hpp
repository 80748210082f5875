#pragma once

#include <memory>

#include "base/runtime.hpp"
#include "fake_server/engine.hpp"

namespace zkrecipes::fake {

/// The surroundings of one session of a FakeServer: the threads of a real session, of whose work the engine knows, and
/// the engine's clock if that is manual.
class FakeRuntime final : public internal::Runtime, public std::enable_shared_from_this<FakeRuntime> {
public:
    explicit FakeRuntime(std::shared_ptr<Engine> engine);
    ~FakeRuntime() override { stop(); }

    Instant now() const noexcept override { return engine_->manual() ? engine_->now() : threads_->now(); }
    /// The real one, also with manual time: users make deadlines of it. Runtime::instant() asks how much is left.
    Deadline::TimePoint steady_now() const noexcept override { return threads_->steady_now(); }
    std::chrono::system_clock::time_point wall_now() const noexcept override {
        return engine_->manual() ? engine_->wall_now() : threads_->wall_now();
    }
    std::uint64_t random() noexcept override { return threads_->random(); }
    TimerId at(Instant when, std::function<void()> work) override;
    bool cancel(TimerId timer) noexcept override;
    void post(Lane lane, std::function<void()> work) override;
    void stop() noexcept override;

private:
    const std::shared_ptr<Engine> engine_;
    const std::shared_ptr<internal::Runtime> threads_;
};

}  // namespace zkrecipes::fake
