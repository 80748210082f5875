#pragma once

#include <cstdint>
#include <string_view>

namespace zkrecipes::sim {

/// SplitMix64: small, and the same on every machine. Every draw of a run comes from generators that are forked from
/// the one seed by name, so that what one part of the run draws does not shift what another part draws.
class Rng {
public:
    explicit Rng(std::uint64_t seed) noexcept : state_(seed) {}

    Rng fork(std::string_view name) const noexcept {
        std::uint64_t hash = 0xcbf29ce484222325ULL ^ state_;
        for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
        Rng child(hash);
        child.next();
        return child;
    }
    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) noexcept { return n == 0 ? 0 : next() % n; }
    /// Uniform in [low, high].
    std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        return high <= low ? low : low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
    }
    bool one_in(std::uint64_t n) noexcept { return n != 0 && below(n) == 0; }
    bool percent(unsigned p) noexcept { return below(100) < p; }

private:
    std::uint64_t state_;
};

}  // namespace zkrecipes::sim
