#include "core/agent.hpp"

#include <atomic>
#include <boost/fiber/fss.hpp>

namespace zkrecipes::internal {

AgentId this_agent() {
    static std::atomic<AgentId> last{0};
    // Never destroyed: fibers and threads may still ask while static objects are being destroyed.
    static auto& mine = *new boost::fibers::fiber_specific_ptr<AgentId>;
    if (mine.get() == nullptr) mine.reset(new AgentId(last.fetch_add(1, std::memory_order_relaxed) + 1));
    return *mine;
}

}  // namespace zkrecipes::internal
