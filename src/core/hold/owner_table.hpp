#pragma once

#include <memory>
#include <mutex>

#include <boost/unordered/unordered_flat_map.hpp>

#include "core/hold/hold_ref.hpp"
#include "core/hold/owner_id.hpp"

namespace zkrecipes::internal {

/// Whether this fiber or thread holds anything, through any recipe object that keeps OwnerTable. What it acquired
/// counts until it has been given back, also after a loss and wherever the grant is now.
bool holds_anything(OwnerId agent);

/// Which fiber or thread holds through one recipe object: what makes it re-entrant. An entry stays until the agent has
/// left as often as it entered, also when the hold was lost meanwhile, so that lock() and unlock() stay paired.
class OwnerTable : public std::enable_shared_from_this<OwnerTable> {
public:
    enum class Entered { fresh, again, lost };

    /// `again`: entered once more. `lost`: the agent holds what is lost already. `fresh`: it holds nothing.
    Entered enter(OwnerId agent, std::shared_ptr<HoldRef>& share);
    /// The agent now holds `share`, which it has entered once.
    void add(OwnerId agent, const std::shared_ptr<HoldRef>& share);
    /// One more of the entries of this agent is to be left by leave_locked(), not by a grant.
    void lock(OwnerId agent);
    /// Leaves one of those. False: there is none.
    bool leave_locked(OwnerId agent);
    /// Null: nothing.
    std::shared_ptr<HoldRef> of(OwnerId agent) const;
    bool empty() const noexcept;

private:
    struct Entry {
        std::shared_ptr<HoldRef> share;
        int locked = 0;
    };
    void forget(OwnerId agent, const HoldRef* share);

    mutable std::mutex mutex_;  // guards entries_; nothing is called with it held
    boost::unordered_flat_map<OwnerId, Entry> entries_;
};

}  // namespace zkrecipes::internal
