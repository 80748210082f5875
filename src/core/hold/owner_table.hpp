#pragma once

#include <memory>
#include <mutex>

#include <boost/unordered/unordered_flat_map.hpp>

#include "core/hold/hold_ref.hpp"
#include "core/hold/owner_id.hpp"

namespace zkrecipes::internal {

/// Whether this fiber or thread has locked anything by lock() and not unlocked it yet, through any recipe object that
/// keeps an OwnerTable. A lock counts until its unlock(), also after a loss. Grants do not count: they have no owner.
bool has_locked_anything(OwnerId agent);

/// Which fiber or thread has locked one recipe object by lock(), and how often: what makes lock() re-entrant. An entry
/// stays until the agent has unlocked as often as it locked, also when the hold was lost meanwhile, so that lock() and
/// unlock() stay paired.
class OwnerTable {
public:
    /// The agent has locked for the first time, and now holds `share`, which was entered once.
    void add(OwnerId agent, std::shared_ptr<HoldRef> share);
    /// The agent, which has locked before, has locked once more.
    void lock_again(OwnerId agent);
    /// Undoes one lock. The last one also gives the hold back. False: the agent has locked nothing.
    bool unlock(OwnerId agent);
    /// Null: the agent has locked nothing.
    std::shared_ptr<HoldRef> of(OwnerId agent) const;
    bool empty() const noexcept;

private:
    struct Entry {
        std::shared_ptr<HoldRef> share;
        int locked = 1;
    };

    mutable std::mutex mutex_;  // guards entries_; nothing is called with it held
    boost::unordered_flat_map<OwnerId, Entry> entries_;
};

}  // namespace zkrecipes::internal
