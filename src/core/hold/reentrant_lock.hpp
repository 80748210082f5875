#pragma once

#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <zkrecipes/deadline.hpp>

#include "core/hold/hold_ref.hpp"
#include "core/hold/owner_id.hpp"
#include "core/hold/owner_table.hpp"
#include "session/usable.hpp"

namespace zkrecipes::internal {

/// Who holds by one lock object. lock() is re-entrant: the fiber or thread that called it locks again at no cost, and
/// unlock() undoes one lock() of the same fiber or thread. Any other hold belongs to its Grant object, so no call
/// enters it.
class ReentrantLock {
public:
    /// `name`: of the lock, in messages.
    ReentrantLock(std::shared_ptr<SessionCore> core, std::string name)
        : core_(std::move(core)), name_(std::move(name)) {}

    /// For a Grant: calls `wait`, which answers what it has Acquired.
    template <class Wait>
    Acquired acquire(const Wait& wait) const {
        const OwnerId caller = this_owner();  // may throw, so before there is a hold
        Acquired acquired = wait();
        if (acquired) granted(caller, acquired.share);
        return acquired;
    }
    /// For lock(): locks again what the caller has locked, or else calls `wait`. False: timed out or stopped. Throws
    /// Error lock_lost if the caller has not unlocked yet what was lost.
    template <class Wait>
    bool lock(const char* operation, const Wait& wait) const {
        const OwnerId caller = this_owner();
        if (locked_by(caller, operation)) {
            owners_.lock_again(caller);
            return true;
        }
        Acquired acquired = wait();
        if (!acquired) return false;
        try {
            owners_.add(caller, acquired.share);
        } catch (...) {
            acquired.share->leave();  // nobody else knows of it
            throw;
        }
        return true;
    }
    /// If the caller has locked nothing: logged, and an assertion in debug builds.
    void unlock(const char* operation) const noexcept;

    /// What the caller has locked. Null: nothing.
    std::shared_ptr<HoldRef> of_caller() const { return owners_.of(this_owner()); }
    /// The same, for a call that must not wait for it or continues it. Throws Error lock_lost if it was lost.
    std::shared_ptr<HoldRef> locked_by(OwnerId caller, const char* operation) const;
    /// For a call that waits until these holds have ended: if the caller itself acquired one of them, and so may wait
    /// for itself, a warning says so. Once for each lock object.
    void warn_of_own_hold(const char* operation, Deadline deadline) const;

    bool unused() const noexcept;

private:
    void granted(OwnerId caller, const std::shared_ptr<HoldRef>& share) const noexcept;
    bool caller_holds() const;

    const std::shared_ptr<SessionCore> core_;
    const std::string name_;
    mutable OwnerTable owners_;
    // The last grant, for the warning alone.
    mutable std::mutex mutex_;
    mutable std::weak_ptr<HoldRef> granted_;
    mutable OwnerId granted_to_ = 0;
    mutable std::atomic<bool> warned_{false};
};

/// What the caller has locked by a lock object. Null: nothing, also in a forked child and after a move.
template <class Impl>
std::shared_ptr<HoldRef> current_hold(const std::shared_ptr<Impl>& impl) noexcept {
    const auto usable = usable_or_null(impl);
    return usable ? usable->current_hold() : nullptr;
}

/// For lock(): without a deadline and a stop token a wait ends with a hold or an exception.
inline void must_hold([[maybe_unused]] bool locked) noexcept { assert(locked); }

}  // namespace zkrecipes::internal
