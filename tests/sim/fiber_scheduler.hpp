#pragma once

#include <boost/fiber/algo/algorithm.hpp>
#include <boost/fiber/context.hpp>
#include <boost/fiber/properties.hpp>
#include <boost/fiber/scheduler.hpp>
#include <vector>

#include "sim/sim_world.hpp"

namespace zkrecipes::sim {

struct FiberProps : boost::fibers::fiber_properties {
    explicit FiberProps(boost::fibers::context* context) noexcept : fiber_properties(context) {}
    Actor* actor = nullptr;
    bool workload = false;
};

/// The order in which the fibers of a simulated run go on: any that can, drawn from the seed; the world's own loop only
/// when none can. One per thread, used by one world after the other.
class FiberScheduler final : public boost::fibers::algo::algorithm_with_properties<FiberProps> {
public:
    /// Installs it on this thread, the first time.
    static FiberScheduler& of_this_thread();

    void use(SimWorld* world) noexcept { world_ = world; }
    bool workload_ready() const noexcept;

    void awakened(boost::fibers::context* context, FiberProps& props) noexcept override;
    boost::fibers::context* pick_next() noexcept override;
    bool has_ready_fibers() const noexcept override { return !ready_.empty() || !others_.empty(); }
    void suspend_until(const std::chrono::steady_clock::time_point& until) noexcept override;
    void notify() noexcept override {}

private:
    struct Ready {
        boost::fibers::context* context;
        Actor* actor;
    };
    bool eligible(const Ready& ready) const noexcept;

    SimWorld* world_ = nullptr;
    std::vector<Ready> ready_;                     // fibers of actors
    std::vector<boost::fibers::context*> others_;  // the main context and the dispatcher
};

}  // namespace zkrecipes::sim
