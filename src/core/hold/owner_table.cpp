#include "core/hold/owner_table.hpp"

#include <utility>

#include "base/process.hpp"

namespace zkrecipes::internal {
namespace {

/// How many holds each agent has, in the whole process.
class HoldCounts {
public:
    void add(OwnerId agent) {
        const std::lock_guard lock(mutex_);
        ++counts_[agent];
    }
    void remove(OwnerId agent) {
        const std::lock_guard lock(mutex_);
        const auto found = counts_.find(agent);
        if (found != counts_.end() && --found->second == 0) counts_.erase(found);
    }
    bool any(OwnerId agent) {
        const std::lock_guard lock(mutex_);
        return counts_.contains(agent);
    }

private:
    std::mutex mutex_;
    boost::unordered_flat_map<OwnerId, int> counts_;
};

HoldCounts& hold_counts() {
    static constinit PerProcess<HoldCounts> counts;
    return counts.get();
}

}  // namespace

bool holds_anything(OwnerId agent) { return hold_counts().any(agent); }

OwnerTable::Entered OwnerTable::enter(OwnerId agent, std::shared_ptr<HoldRef>& share) {
    share = of(agent);
    // The last grant may be leaving on another thread at this moment; then the agent holds nothing any more.
    if (!share || !share->enter()) return Entered::fresh;
    if (share->hold().held()) return Entered::again;
    share->leave();
    return Entered::lost;
}

void OwnerTable::add(OwnerId agent, const std::shared_ptr<HoldRef>& share) {
    hold_counts().add(agent);
    share->on_end([weak = weak_from_this(), agent, share = share.get()] {
        hold_counts().remove(agent);
        if (const auto self = weak.lock()) self->forget(agent, share);
    });
    const std::lock_guard lock(mutex_);
    entries_[agent] = {share, 0};
}

void OwnerTable::forget(OwnerId agent, const HoldRef* share) {
    std::shared_ptr<HoldRef> dropped;  // outlives the mutex
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(agent);
    if (entry == entries_.end() || entry->second.share.get() != share) return;  // it holds the next one already
    dropped = std::move(entry->second.share);
    entries_.erase(entry);
}

void OwnerTable::lock(OwnerId agent) {
    const std::lock_guard lock(mutex_);
    ++entries_[agent].locked;
}

bool OwnerTable::leave_locked(OwnerId agent) {
    std::shared_ptr<HoldRef> share;
    {
        const std::lock_guard lock(mutex_);
        const auto entry = entries_.find(agent);
        const bool locked = entry != entries_.end() && entry->second.locked > 0;
        if (!locked) return false;
        --entry->second.locked;
        share = entry->second.share;
    }
    share->leave();
    return true;
}

std::shared_ptr<HoldRef> OwnerTable::of(OwnerId agent) const {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(agent);
    return entry == entries_.end() ? nullptr : entry->second.share;
}

bool OwnerTable::empty() const noexcept {
    const std::lock_guard lock(mutex_);
    return entries_.empty();
}

}  // namespace zkrecipes::internal
