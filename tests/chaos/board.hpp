#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "chaos/judge.hpp"
#include "chaos/stamp.hpp"

namespace zkrecipes::chaos {

/// One hold on the board. Written by the one process that has it, at any time readable by the controller, also when
/// that process was killed or is stopped.
struct HoldSlot {
    std::atomic<std::int64_t> granted_at, last_true_at, first_false_at, lost_at, released_at, stopped_at, resumed_at;
    std::atomic<std::int64_t> writes, last_write_at, token, handovers, session, fenced, refused;
    std::atomic<std::int32_t> actor, lock, mode, revivals, held_after_resume;
    char node[96];
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<std::int32_t>::is_always_lock_free);

/// Shared memory in which all processes of one trial note what they believe, and in which the unfenced counters
/// live. It is an anonymous file that the actors inherit, so nothing of it is left when the last process is gone.
class Board {
public:
    static constexpr int kLocks = 4096;
    static constexpr int kHolds = 65536;

    static Board create();                // in the controller
    static Board attach(int descriptor);  // in an actor
    Board(Board&& other) noexcept;
    Board(const Board&) = delete;
    Board& operator=(const Board&) = delete;
    ~Board();

    int descriptor() const noexcept { return descriptor_; }

    /// A new slot, already stamped as granted. Throws std::runtime_error when the board is full.
    HoldSlot& add_hold(int actor, int lock, Stamp granted_at, std::int64_t token, const std::string& node,
                       HoldMode mode = HoldMode::exclusive, std::int64_t session = 0, std::int64_t handovers = 0);

    /// The unfenced counter of a lock. Read and write are two operations on purpose: two writers lose updates.
    std::int64_t read_counter(int lock) const noexcept;
    void write_counter(int lock, std::int64_t value) noexcept;

    int used() const noexcept;  // slots, of kHolds
    /// Asks whoever holds one of these locks to keep it, so that a fault meets holds; an empty set: not any more.
    void ask_to_keep(const std::set<int>& locks) noexcept;
    bool is_to_be_kept(int lock) const noexcept;

    std::vector<Hold> holds() const;  // all, in the order of their slots
    std::vector<Hold> holds_of(int first_lock, int locks) const;
    /// Everything about the locks [first_lock, first_lock + locks), without sightings.
    History history(int first_lock, int locks) const;

private:
    struct Layout;
    Board(int descriptor, Layout* layout) noexcept : descriptor_(descriptor), layout_(layout) {}

    int descriptor_ = -1;
    Layout* layout_ = nullptr;
};

}  // namespace zkrecipes::chaos
