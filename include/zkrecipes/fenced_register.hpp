#pragma once

#include <atomic>
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

/// The largest fencing tokens that a server has seen, by resource: it lets in who holds, and refuses who held before
/// the latest that it let in. Needs no ZooKeeper and no clock. Header-only.
///
/// A holder alone is let in if nobody with a larger token was; a share, if no holder alone with its token or a larger
/// one was. So nothing of a former holder takes effect after something of a later one; in particular, after a share of
/// a downgrade its writer is refused. Tokens of a semaphore are in no order: do not use them here.
///
/// Safe for concurrent use by threads. What is run by run_alone and run_shared happens while its resource is locked, so
/// that no later holder can be let in between the look at the token and the act; it must be short, and must not suspend
/// a fiber. The register forgets nothing while it lives; a server that is started again tells it by remember() what it
/// had written down (highest()), or asks holders for nothing less than still_held().
class FencedRegister {
    // First, because its result is deduced.
    template <class Act>
    static auto run_if(bool let_in, Act&& act) {
        using Result = std::invoke_result_t<Act>;
        if constexpr (std::is_void_v<Result>) {
            if (let_in) std::invoke(std::forward<Act>(act));
            return let_in;
        } else {
            return let_in ? std::optional<Result>(std::invoke(std::forward<Act>(act))) : std::nullopt;
        }
    }

public:
    /// Runs `act` and remembers the token, if it is let in. False, or an empty optional of what `act` returns: refused.
    /// A token below 1 always is. What `act` throws passes through; the token is remembered all the same.
    template <class Act>
    auto run_alone(std::string_view resource, FencingToken token, Act&& act) {
        const auto entry = entry_of(resource);
        const std::unique_lock lock(entry->mutex);
        const bool let_in = token > 0 && token >= entry->alone && token >= entry->shared;
        if (let_in) entry->alone = token;
        return run_if(let_in, std::forward<Act>(act));
    }
    /// The same for a share; shares run beside each other.
    template <class Act>
    auto run_shared(std::string_view resource, FencingToken token, Act&& act) {
        const auto entry = entry_of(resource);
        // Shares exclude only who is alone, also while they are written down.
        const std::shared_lock lock(entry->mutex);
        const bool let_in = token > 0 && token > entry->alone;
        if (let_in) {
            FencingToken latest = entry->shared;
            while (latest < token && !entry->shared.compare_exchange_weak(latest, token)) {
            }
        }
        return run_if(let_in, std::forward<Act>(act));
    }
    /// Only the look: for a resource that compares and writes in one step itself.
    [[nodiscard]] bool admit_alone(std::string_view resource, FencingToken token) {
        return run_alone(resource, token, [] {});
    }
    [[nodiscard]] bool admit_shared(std::string_view resource, FencingToken token) {
        return run_shared(resource, token, [] {});
    }

    struct Highest {
        FencingToken alone = 0;  ///< 0: none
        FencingToken shared = 0;
    };
    /// What was let in so far.
    Highest highest(std::string_view resource) const {
        const auto entry = find(resource);
        if (!entry) return {};
        const std::shared_lock lock(entry->mutex);
        return {entry->alone, entry->shared};
    }
    /// As if these had been let in; smaller ones than are known change nothing.
    void remember(std::string_view resource, Highest seen) {
        const auto entry = entry_of(resource);
        const std::unique_lock lock(entry->mutex);
        if (seen.alone > entry->alone) entry->alone = seen.alone;
        if (seen.shared > entry->shared) entry->shared = seen.shared;
    }

private:
    struct Entry {
        mutable std::shared_mutex mutex;  // makes look and act one step; guards `alone`
        FencingToken alone = 0;
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
