#pragma once

#include <cstdint>
#include <utility>

namespace zkrecipes::internal {

/// On the thread that does work of a lane: who owns what that work locks. A lane has many threads, one after the other,
/// and a thread has many lanes.
class LaneOwner {
public:
    /// `number` belongs to the lane, and is 0 until somebody asks for it.
    explicit LaneOwner(std::uint64_t& number) noexcept : former_(std::exchange(present(), &number)) {}
    ~LaneOwner() { present() = former_; }
    LaneOwner(const LaneOwner&) = delete;
    LaneOwner& operator=(const LaneOwner&) = delete;

    /// Null: this thread works for no lane.
    static std::uint64_t*& present() noexcept {
        thread_local std::uint64_t* number = nullptr;
        return number;
    }

private:
    std::uint64_t* const former_;
};

}  // namespace zkrecipes::internal
