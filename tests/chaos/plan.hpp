#pragma once

#include <optional>
#include <string>

#include "chaos/judge.hpp"

namespace zkrecipes::chaos {

/// What a round of chaos is about: these recipes, each with a few locks of its own. Lock numbers are those on the
/// board; in ZooKeeper a lock is the node of that number.
enum class Recipe { exclusive_mutex, read_write_lock, semaphore, semaphore_mutex, multi_lock, leader_election, zklock };

inline constexpr int kRecipes = 7;
inline constexpr int kLocksEach = 3;
inline constexpr int kLeases = 3;  // of each semaphore
/// Not a recipe: the lock of the naive clients that must be caught.
inline constexpr int kControlLock = kRecipes * kLocksEach;

constexpr int lock_of(Recipe recipe, int index) { return static_cast<int>(recipe) * kLocksEach + index; }
constexpr Recipe recipe_of(int lock) { return static_cast<Recipe>(lock / kLocksEach); }

/// As on the command line.
const char* to_string(Recipe recipe) noexcept;
std::optional<Recipe> recipe_named(const std::string& name);

/// Which holds of one lock exclude each other.
enum class LockKind {
    one,     // everybody
    shared,  // unless both are shares
    leases   // kLeases beside each other
};
/// What the workload makes of a lock number.
LockKind kind_of(int lock) noexcept;

}  // namespace zkrecipes::chaos
