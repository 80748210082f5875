#pragma once

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <mutex>

namespace zkrecipes::internal {

/// Unpredictable numbers, straight from the kernel: identities of lock nodes must not repeat between processes.
class RandomSource {
public:
    std::uint64_t next() noexcept {
        const std::lock_guard lock(mutex_);
        if (left_ == 0) refill();
        return words_[--left_];
    }

private:
    void refill() noexcept {
        auto* bytes = reinterpret_cast<unsigned char*>(words_.data());
        std::size_t filled = 0;
        while (filled < sizeof(words_)) {
            const ssize_t got = ::getrandom(bytes + filled, sizeof(words_) - filled, 0);
            if (got > 0)
                filled += static_cast<std::size_t>(got);
            else if (got < 0 && errno != EINTR)
                std::terminate();  // no kernel since 3.17 does that
        }
        left_ = words_.size();
    }

    std::mutex mutex_;  // guards what follows
    std::array<std::uint64_t, 32> words_{};
    std::size_t left_ = 0;
};

}  // namespace zkrecipes::internal
