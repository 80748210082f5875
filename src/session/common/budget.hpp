#pragma once

#include <cstddef>

namespace zkrecipes::internal {

/// Bytes that one session may have outstanding on the servers. Closing a session that owns more than 2,097,150 bytes of
/// ephemeral paths writes a transaction that no server can load again; re-registering more than 1,048,575 bytes of
/// watches makes the server drop the connection for ever. Each path counts with the four bytes of its length.
class Budget {
public:
    static constexpr std::size_t kLimit = 900'000;
    static constexpr std::size_t cost(std::size_t path_bytes) noexcept { return path_bytes + 4; }

    explicit Budget(std::size_t limit = kLimit) noexcept : limit_(limit) {}

    bool fits(std::size_t path_bytes) const noexcept { return cost(path_bytes) <= limit_ - used_; }
    bool reserve(std::size_t path_bytes) noexcept {
        if (!fits(path_bytes)) return false;
        used_ += cost(path_bytes);
        return true;
    }
    void release(std::size_t path_bytes) noexcept { used_ -= cost(path_bytes) < used_ ? cost(path_bytes) : used_; }
    void reset() noexcept { used_ = 0; }
    std::size_t used() const noexcept { return used_; }
    std::size_t limit() const noexcept { return limit_; }

private:
    std::size_t limit_;
    std::size_t used_ = 0;
};

}  // namespace zkrecipes::internal
