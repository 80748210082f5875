#include "core/hold/owner_table.hpp"

#include <utility>

#include "base/process.hpp"

namespace zkrecipes::internal {
namespace {

/// How many locks each agent has locked, in the whole process.
class LockedCounts {
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

LockedCounts& locked_counts() {
    static constinit PerProcess<LockedCounts> counts;
    return counts.get();
}

}  // namespace

bool has_locked_anything(OwnerId agent) { return locked_counts().any(agent); }

void OwnerTable::add(OwnerId agent, std::shared_ptr<HoldRef> share) {
    {
        const std::lock_guard lock(mutex_);
        entries_.try_emplace(agent, Entry{std::move(share)});
    }
    try {
        locked_counts().add(agent);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        entries_.erase(agent);
        throw;
    }
}

void OwnerTable::lock_again(OwnerId agent) {
    const std::lock_guard lock(mutex_);
    ++entries_.at(agent).locked;
}

bool OwnerTable::unlock(OwnerId agent) {
    std::shared_ptr<HoldRef> share;
    {
        const std::lock_guard lock(mutex_);
        const auto entry = entries_.find(agent);
        if (entry == entries_.end()) return false;
        if (--entry->second.locked > 0) return true;
        share = std::move(entry->second.share);
        entries_.erase(entry);
    }
    locked_counts().remove(agent);
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
