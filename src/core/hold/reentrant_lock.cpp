#include "core/hold/reentrant_lock.hpp"

#include <spdlog/spdlog.h>

#include <cassert>

namespace zkrecipes::internal {

std::shared_ptr<HoldRef> ReentrantLock::enter_again(const char* operation) const {
    std::shared_ptr<HoldRef> share;
    switch (owners_->enter(this_owner(), share)) {
        case OwnerTable::Entered::again: return share;
        case OwnerTable::Entered::fresh: return nullptr;
        case OwnerTable::Entered::lost: break;
    }
    throw Error(Errc::lock_lost, operation, name_,
                "this fiber or thread still has a hold that was lost; give that back first");
}

void ReentrantLock::unlock(const char* operation) const noexcept {
    if (owners_->leave_locked(this_owner())) return;
    core_->log().error("{} {}: not locked by this fiber or thread; ignored", operation, name_);
    assert(!"unlock by a fiber or thread that has not locked it");
}

}  // namespace zkrecipes::internal
