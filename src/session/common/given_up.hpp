#pragma once

#include <cstddef>

namespace zkrecipes::internal {

/// Whether too many calls of one session are over while their nodes are still there, or may still be made. Until these
/// are gone, further calls make no nodes: on a connection each request waits for all before it, so calls that give up
/// earlier than that would only make the others wait longer, without end.
class GivenUp {
public:
    static constexpr std::size_t kMany = 64;

    /// `count`: those nodes or sets of nodes, now.
    bool many(std::size_t count) noexcept { return many_ = many_ || count >= kMany; }
    /// True, once: they were many, and are gone. A rest of them would be in front of those who wait, each time.
    bool room_again(std::size_t count) noexcept {
        if (!many_ || count > 0) return false;
        many_ = false;
        return true;
    }

private:
    bool many_ = false;
};

}  // namespace zkrecipes::internal
