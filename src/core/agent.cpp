#include "core/agent.hpp"

#include <atomic>
#include <boost/fiber/fss.hpp>
#include <cstdint>

#include "base/mutation.hpp"

namespace zkrecipes::internal {
namespace {

/// Never made: its "address" is the number itself. Boost.Fiber 1.81 does not clean up what a fiber that has ended left
/// in a fiber_specific_ptr, so that a number on the heap would be a leak for each fiber that ever took a lock.
struct Number {};

}  // namespace

AgentId this_agent() {
    static std::atomic<AgentId> last{0};
    // Never destroyed: fibers and threads may still ask while static objects are being destroyed.
    static auto& mine = *new boost::fibers::fiber_specific_ptr<Number>([](Number*) {});
    if (ZKRECIPES_MUTATION("fibers-are-their-thread")) {
        static thread_local const AgentId of_the_thread = last.fetch_add(1, std::memory_order_relaxed) + 1;
        return of_the_thread;
    }
    if (mine.get() == nullptr) {
        const AgentId next = last.fetch_add(1, std::memory_order_relaxed) + 1;
        mine.reset(reinterpret_cast<Number*>(static_cast<std::uintptr_t>(next)));
    }
    return static_cast<AgentId>(reinterpret_cast<std::uintptr_t>(mine.get()));
}

}  // namespace zkrecipes::internal
