#include "core/agent_holds.hpp"

#include <utility>

#include "base/mutation.hpp"

namespace zkrecipes::internal {

AgentHolds::Entered AgentHolds::enter(AgentId agent, std::shared_ptr<HoldShare>& share) {
    share = of(agent);
    // The last grant may be leaving on another thread at this moment; then the agent holds nothing any more.
    if (!share || !share->enter()) return Entered::fresh;
    if (share->hold().held() || ZKRECIPES_MUTATION("re-entry-into-a-lost-hold")) return Entered::again;
    share->leave();
    return Entered::lost;
}

void AgentHolds::add(AgentId agent, const std::shared_ptr<HoldShare>& share) {
    share->on_end([weak = weak_from_this(), agent, share = share.get()] {
        if (const auto self = weak.lock()) self->forget(agent, share);
    });
    const std::lock_guard lock(mutex_);
    entries_[agent] = {share, 0};
}

void AgentHolds::forget(AgentId agent, const HoldShare* share) {
    std::shared_ptr<HoldShare> dropped;  // outlives the mutex
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(agent);
    if (entry == entries_.end() || entry->second.share.get() != share) return;  // it holds the next one already
    dropped = std::move(entry->second.share);
    entries_.erase(entry);
}

void AgentHolds::lock(AgentId agent) {
    const std::lock_guard lock(mutex_);
    ++entries_[agent].locked;
}

bool AgentHolds::leave_locked(AgentId agent) {
    std::shared_ptr<HoldShare> share;
    {
        const std::lock_guard lock(mutex_);
        const auto entry = entries_.find(agent);
        if (entry == entries_.end() || entry->second.locked == 0) return false;
        --entry->second.locked;
        share = entry->second.share;
    }
    share->leave();
    return true;
}

std::shared_ptr<HoldShare> AgentHolds::of(AgentId agent) const {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(agent);
    return entry == entries_.end() ? nullptr : entry->second.share;
}

bool AgentHolds::empty() const noexcept {
    const std::lock_guard lock(mutex_);
    return entries_.empty();
}

}  // namespace zkrecipes::internal
