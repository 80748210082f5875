#include "sim/sim_world.hpp"

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/wait_event.hpp"
#include "session/common/internal_thread.hpp"
#include "sim/fiber_scheduler.hpp"

namespace zkrecipes::sim {

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

auto stacks() {
    static thread_local boost::fibers::pooled_fixedsize_stack pool(kStackBytes);
    return pool;
}

}  // namespace

SimWorld::SimWorld(std::uint64_t seed, bool keep_trace)
    : World(seed, keep_trace), order_(fork("fibers")), fibers_(FiberScheduler::of_this_thread()) {
    fibers_.use(this);
}

SimWorld::~SimWorld() {
    if (live_fibers_ != 0) {
        std::fprintf(stderr, "simulation: %d fibers were never served (seed %llu)\n", live_fibers_,
                     static_cast<unsigned long long>(seed()));
        std::abort();
    }
    drop_events();
    fibers_.use(nullptr);
}

void SimWorld::spawn(Actor* actor, std::string name, std::function<void()> body) {
    ++live_fibers_;
    note(actor, name);
    boost::fibers::fiber fiber(boost::fibers::launch::post, std::allocator_arg, stacks(),
                               [this, run = std::move(body)]() mutable {
                                   run();
                                   run = nullptr;
                                   --live_fibers_;
                               });
    fiber.properties<FiberProps>().actor = actor;
    fiber.detach();
}

void SimWorld::sleep(Actor* actor, SimTime duration) {
    internal::WaitEvent over;
    in(duration, actor, [&over] { over.set(); });
    over.wait();
}

void SimWorld::run_tasks() {
    while (fibers_.workload_ready()) boost::this_fiber::yield();
}

void SimWorld::after_run() {
    boost::this_fiber::yield();  // the dispatcher frees the stacks of fibers that have ended
}

void SimWorld::stop_code(Actor& actor, SimTime until) {
    const internal::InternalMarksAside marks_aside;
    auto* const context = boost::fibers::context::active();
    if (context->is_context(boost::fibers::type::main_context)) return run_around(actor, until);  // in an event
    internal::WaitEvent over;
    at(until, nullptr, [&actor, context, &over] {
        resuming_task(actor) = context;
        actor.resume();
        over.set();
    });
    over.wait();
}

}  // namespace zkrecipes::sim
