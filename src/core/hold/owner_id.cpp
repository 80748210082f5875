#include "core/hold/owner_id.hpp"

#include <atomic>
#include <boost/fiber/context.hpp>
#include <boost/fiber/fss.hpp>
#include <cstdint>

#include "base/threads/lane_owner.hpp"

namespace zkrecipes::internal {
namespace {

/// Never made: its "address" is the number itself. Boost.Fiber 1.81 does not clean up what a fiber that has ended left
/// in a fiber_specific_ptr, so that a number on the heap would be a leak for each fiber that ever took a lock.
struct Number {};

}  // namespace

OwnerId this_owner() {
    static std::atomic<OwnerId> last{0};
    const auto next = [] { return last.fetch_add(1, std::memory_order_relaxed) + 1; };
    // The thread itself, which is not a fiber that was made, keeps its number where destructors of thread_local objects
    // still find it: Boost.Fiber's own data may be gone by then.
    static thread_local const OwnerId of_the_thread = next();
    const auto* const fiber = boost::fibers::context::active();
    if (fiber == nullptr || fiber->is_context(boost::fibers::type::main_context)) {
        std::uint64_t* const of_the_lane = LaneOwner::present();
        if (of_the_lane == nullptr) return of_the_thread;
        if (*of_the_lane == 0) *of_the_lane = next();
        return *of_the_lane;
    }
    // Never destroyed: fibers may still ask while static objects are being destroyed.
    static auto& mine = *new boost::fibers::fiber_specific_ptr<Number>([](Number*) {});
    if (mine.get() == nullptr) mine.reset(reinterpret_cast<Number*>(static_cast<std::uintptr_t>(next())));
    return static_cast<OwnerId>(reinterpret_cast<std::uintptr_t>(mine.get()));
}

}  // namespace zkrecipes::internal
