#pragma once

#include <cassert>
#include <memory>
#include <string>
#include <utility>

#include "core/hold/hold_ref.hpp"
#include "core/hold/owner_id.hpp"
#include "core/hold/owner_table.hpp"
#include "session/usable.hpp"

namespace zkrecipes::internal {

/// What a lock object knows of the fibers and threads that hold it: acquiring it again costs nothing, and unlock() ends
/// one lock() of the same fiber or thread.
class ReentrantLock {
public:
    /// `name`: of the lock, in messages.
    ReentrantLock(std::shared_ptr<SessionCore> core, std::string name)
        : core_(std::move(core)), name_(std::move(name)) {}

    /// Enters the hold that the caller has already. Null: the caller has none. Throws Error lock_lost if it was lost.
    std::shared_ptr<HoldRef> enter_again(const char* operation) const;
    /// The same, or else calls `wait`, which answers what it has Acquired.
    template <class Wait>
    Acquired acquire(const char* operation, const Wait& wait) const {
        if (auto share = enter_again(operation)) return {std::move(share)};
        Acquired acquired = wait();
        if (!acquired) return acquired;
        try {
            owners_->add(this_owner(), acquired.share);
        } catch (...) {
            acquired.share->leave();  // nobody else knows of it
            throw;
        }
        return acquired;
    }
    /// acquire(), to be given back by unlock(). False: timed out or stopped.
    template <class Wait>
    bool lock(const char* operation, const Wait& wait) const {
        if (!acquire(operation, wait)) return false;
        owners_->lock(this_owner());
        return true;
    }
    /// If the caller has locked nothing: logged, and an assertion in debug builds.
    void unlock(const char* operation) const noexcept;

    /// Null: the caller holds nothing.
    std::shared_ptr<HoldRef> of_caller() const { return owners_->of(this_owner()); }
    bool unused() const noexcept { return owners_->empty(); }

private:
    const std::shared_ptr<SessionCore> core_;
    const std::string name_;
    const std::shared_ptr<OwnerTable> owners_ = std::make_shared<OwnerTable>();
};

/// What a lock object holds for the caller. Null: nothing, also in a forked child and after a move.
template <class Impl>
std::shared_ptr<HoldRef> current_hold(const std::shared_ptr<Impl>& impl) noexcept {
    const auto usable = usable_or_null(impl);
    return usable ? usable->current_hold() : nullptr;
}

/// For lock(): without a deadline and a stop token a wait ends with a hold or an exception.
inline void must_hold([[maybe_unused]] bool locked) noexcept { assert(locked); }

}  // namespace zkrecipes::internal
