#include "core/hold/reentrant_lock.hpp"

#include <spdlog/spdlog.h>

#include <cassert>

namespace zkrecipes::internal {

std::shared_ptr<HoldRef> ReentrantLock::locked_by(OwnerId caller, const char* operation) const {
    auto share = owners_.of(caller);
    if (!share || share->hold().held()) return share;
    throw Error(Errc::lock_lost, operation, name_,
                "this fiber or thread has not unlocked yet what it locked and lost; unlock that first");
}

void ReentrantLock::unlock(const char* operation) const noexcept {
    if (owners_.unlock(this_owner())) return;
    core_->log().error("{} {}: not locked by this fiber or thread; ignored", operation, name_);
    assert(false && "unlock by a fiber or thread that has not locked it");
}

void ReentrantLock::granted(OwnerId caller, const std::shared_ptr<HoldRef>& share) const noexcept {
    const std::lock_guard lock(mutex_);
    granted_ = share;
    granted_to_ = caller;
}

bool ReentrantLock::caller_holds() const {
    const OwnerId caller = this_owner();
    if (is_held(owners_.of(caller))) return true;
    const std::lock_guard lock(mutex_);
    if (granted_to_ != caller) return false;
    const auto share = granted_.lock();
    return share && share->entered() && is_held(share);
}

void ReentrantLock::warn_of_own_hold(const char* operation, Deadline deadline) const {
    if (warned_.load(std::memory_order_relaxed) || deadline.is_passed(core_->runtime().steady_now())) return;
    if (!caller_holds() || warned_.exchange(true, std::memory_order_relaxed)) return;
    core_->log().warn(
        "{} {}: this fiber or thread acquired the hold for which the call now waits; unless another one releases it, "
        "the call waits for itself. Release that hold first, or use Grant::again(), which returns another Grant of it",
        operation, name_);
}

bool ReentrantLock::unused() const noexcept {
    const std::lock_guard lock(mutex_);
    return owners_.empty() && granted_.expired();
}

}  // namespace zkrecipes::internal
