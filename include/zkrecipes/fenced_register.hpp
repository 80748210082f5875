#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <zkrecipes/grant.hpp>

namespace zkrecipes {

/// What an exclusive holder presents to a FencedRegister: Grant::token(), and Grant::handovers(). The second number is
/// needed only if the lock has LockOptions::local_handovers or keep_for.
struct Fence {
    /// A token converts to it.
    Fence(FencingToken token_of_grant, std::uint64_t handovers_of_grant = 0)  // NOLINT: most have but a token
        : token(token_of_grant), handovers(handovers_of_grant) {}
    auto operator<=>(const Fence&) const = default;
    FencingToken token;       ///< Grant::token()
    std::uint64_t handovers;  ///< Grant::handovers()
};

/// Remembers the largest fencing tokens that a server has seen, for each of its resources. It admits the present holder
/// and refuses former holders. Needs no ZooKeeper and no clock. Header-only.
///
/// An exclusive holder is admitted unless a larger token was admitted before, or the same exclusive token with more
/// hand-overs. A shared holder is admitted unless an exclusive holder with the same or a larger token was admitted
/// before. So no former holder can act after a later one. This includes a downgrade: once the shared hold is admitted,
/// the exclusive hold that it came from is refused. The tokens of a semaphore have no order: do not use them here.
///
/// Safe for concurrent use by threads. The function that is passed to run_exclusive or run_shared runs while its
/// resource is locked, so no later holder can be admitted between the check of the token and the function. It must be
/// short and must not suspend a fiber. The register never removes an entry. It is in memory: a server that is restarted
/// must pass the tokens that it has stored (highest()) to remember(), or accept only holds for which still_held() is
/// true.
class FencedRegister {
    // First, because its result is deduced.
    template <class Act>
    static auto run_if(bool admitted, Act&& act) {
        using Result = std::invoke_result_t<Act>;
        if constexpr (std::is_void_v<Result>) {
            if (admitted) std::invoke(std::forward<Act>(act));
            return admitted;
        } else {
            return admitted ? std::optional<Result>(std::invoke(std::forward<Act>(act))) : std::nullopt;
        }
    }

public:
    /// If the token is admitted, remembers it and runs `act`. If `act` returns void, returns whether the token was
    /// admitted. Otherwise returns an optional with the result of `act`, which is empty if the token was refused. A
    /// token below 1 is always refused. If `act` throws, the exception is passed on, and the token stays remembered.
    template <class Act>
    auto run_exclusive(std::string_view resource, Fence fence, Act&& act) {
        const auto entry = entry_of(resource);
        const std::unique_lock lock(entry->mutex);
        const bool admitted = fence.token > 0 && fence >= entry->exclusive && fence.token >= entry->shared;
        if (admitted) entry->exclusive = fence;
        return run_if(admitted, std::forward<Act>(act));
    }
    /// The same for a shared holder. Several shared holders may run at the same time.
    template <class Act>
    auto run_shared(std::string_view resource, FencingToken token, Act&& act) {
        const auto entry = entry_of(resource);
        // Shared holders exclude only exclusive ones, also while their tokens are written down.
        const std::shared_lock lock(entry->mutex);
        const bool admitted = token > 0 && token > entry->exclusive.token;
        if (admitted) {
            FencingToken latest = entry->shared;
            while (latest < token && !entry->shared.compare_exchange_weak(latest, token)) {
            }
        }
        return run_if(admitted, std::forward<Act>(act));
    }
    /// Only the check: for a resource that compares and writes in one step itself.
    [[nodiscard]] bool admit_exclusive(std::string_view resource, Fence fence) {
        return run_exclusive(resource, fence, [] {});
    }
    [[nodiscard]] bool admit_shared(std::string_view resource, FencingToken token) {
        return run_shared(resource, token, [] {});
    }

    /// The largest tokens of one resource.
    struct Highest {
        Highest() = default;
        /// Needs all three numbers: without the hand-overs, the register would admit earlier holders that had the same
        /// lock node, and so the same token.
        Highest(FencingToken of_exclusive, FencingToken of_shared, std::uint64_t with_exclusive)
            : exclusive(of_exclusive), shared(of_shared), handovers(with_exclusive) {}
        FencingToken exclusive = 0;   ///< 0: none
        FencingToken shared = 0;      ///< 0: none
        std::uint64_t handovers = 0;  ///< of the holder with the token `exclusive`
    };
    /// The largest tokens that were admitted.
    Highest highest(std::string_view resource) const {
        const auto entry = find(resource);
        if (!entry) return {};
        const std::shared_lock lock(entry->mutex);
        return {entry->exclusive.token, entry->shared, entry->exclusive.handovers};
    }
    /// Has the effect as if these tokens had been admitted. Tokens that are smaller than the known ones change nothing.
    void remember(std::string_view resource, Highest seen) {
        const auto entry = entry_of(resource);
        const std::unique_lock lock(entry->mutex);
        entry->exclusive = std::max(entry->exclusive, Fence(seen.exclusive, seen.handovers));
        if (seen.shared > entry->shared) entry->shared = seen.shared;
    }

private:
    struct Entry {
        mutable std::shared_mutex mutex;  // makes check and act one step; guards `exclusive`
        Fence exclusive{0};
        std::atomic<FencingToken> shared{0};  // grows while the mutex is held shared
    };

    std::shared_ptr<Entry> entry_of(std::string_view resource) {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(resource);
        if (found != entries_.end()) return found->second;
        return entries_.emplace(std::string(resource), std::make_shared<Entry>()).first->second;
    }
    std::shared_ptr<const Entry> find(std::string_view resource) const {
        const std::lock_guard lock(mutex_);
        const auto found = entries_.find(resource);
        return found == entries_.end() ? nullptr : found->second;
    }

    mutable std::mutex mutex_;  // guards entries_; never held while something runs
    std::map<std::string, std::shared_ptr<Entry>, std::less<>> entries_;
};

}  // namespace zkrecipes
