#include "chaos/plan.hpp"

namespace zkrecipes::chaos {

const char* to_string(Recipe recipe) noexcept {
    switch (recipe) {
        case Recipe::exclusive_mutex: return "ExclusiveMutex";
        case Recipe::read_write_lock: return "ReadWriteLock";
        case Recipe::semaphore: return "Semaphore";
        case Recipe::semaphore_mutex: return "SemaphoreMutex";
        case Recipe::multi_lock: return "MultiLock";
        case Recipe::leader_election: return "LeaderElection";
        case Recipe::zklock: return "zklock";
    }
    return "?";
}

std::optional<Recipe> recipe_named(const std::string& name) {
    for (int i = 0; i < kRecipes; ++i) {
        if (name == to_string(static_cast<Recipe>(i))) return static_cast<Recipe>(i);
    }
    return std::nullopt;
}

LockKind kind_of(int lock) noexcept {
    if (lock == kControlLock) return LockKind::one;
    switch (recipe_of(lock)) {
        case Recipe::read_write_lock: return LockKind::shared;
        case Recipe::semaphore: return LockKind::leases;
        case Recipe::multi_lock: return lock == lock_of(Recipe::multi_lock, 2) ? LockKind::shared : LockKind::one;
        case Recipe::zklock:
            if (lock == lock_of(Recipe::zklock, 1)) return LockKind::shared;
            return lock == lock_of(Recipe::zklock, 2) ? LockKind::leases : LockKind::one;
        default: return LockKind::one;
    }
}

}  // namespace zkrecipes::chaos
