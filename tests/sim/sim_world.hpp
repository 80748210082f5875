#pragma once

#include <functional>
#include <string>

#include "testing/world.hpp"

namespace zkrecipes::sim {

class FiberScheduler;

/// A world with fibers. The code between two suspensions of a fiber is one step that takes no time. The next event is
/// run only when no fiber can go on.
class SimWorld final : public World {
public:
    explicit SimWorld(std::uint64_t seed, bool keep_trace = false);
    ~SimWorld() override;

    /// Starts a fiber of the actor. The world must run until it has ended.
    void spawn(Actor* actor, std::string name, std::function<void()> body);
    int live_fibers() const noexcept { return live_fibers_; }
    /// Suspends the calling fiber.
    void sleep(Actor* actor, SimTime duration);

private:
    friend class FiberScheduler;
    void run_tasks() override;
    void after_run() override;
    void stop_code(Actor& actor, SimTime until) override;

    Rng order_;
    int live_fibers_ = 0;
    FiberScheduler& fibers_;
};

}  // namespace zkrecipes::sim
