#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include <zkrecipes/export.hpp>

namespace zkrecipes {

/// What a retry policy bases its decision on.
struct RetryState {
    int failures = 0;                         ///< failed attempts so far, at least 1
    std::chrono::milliseconds elapsed{0};     ///< since the first of them
    std::chrono::milliseconds last_delay{0};  ///< what the policy returned last time
    std::uint64_t random = 0;                 ///< uniform, for jitter, so that a policy needs no generator of its own
};

/// How often, and with which delays, a call is repeated after the connection broke.
///
/// The policy limits the attempts of a call. The deadline of the call limits its time, and takes precedence. When the
/// policy gives up, the call fails with `Errc::connection_lost`, and the nodes that it may have created are deleted in
/// the background.
///
/// A policy is a value. It must be callable from any thread and must not block. Its function runs while the library
/// has a mutex of the session locked, so most calls of the library throw `Errc::would_deadlock` there. Calls that
/// cannot throw are allowed and take effect soon afterwards: release or destroy a grant, destroy a lock, close a
/// session, stop a call by its stop token. If the function throws, the call that is being repeated fails with
/// `Errc::connection_lost` and the text of the exception.
class ZKRECIPES_API RetryPolicy {
public:
    /// How long to wait.
    using Milliseconds = std::chrono::milliseconds;
    /// The time to wait before the next attempt; empty: give up.
    using Decide = std::function<std::optional<Milliseconds>(const RetryState&)>;

    RetryPolicy();  ///< forever(), with random pauses; their limit doubles from 20 ms to 1 s
    /// Any function is a policy.
    RetryPolicy(Decide decide);  // NOLINT: converts
    /// Any callable that a Decide can be made of, such as a lambda, can be assigned to SessionOptions::retry.
    template <class Function>
    requires(!std::same_as<std::remove_cvref_t<Function>, RetryPolicy> &&
             !std::same_as<std::remove_cvref_t<Function>, Decide> && std::constructible_from<Decide, Function>)
        RetryPolicy(Function&& decide)
        : RetryPolicy(Decide(std::forward<Function>(decide))) {}  // NOLINT: as above

    /// Repeats without an end. The pauses are random; their limit doubles from twice `base` to `cap`.
    static RetryPolicy forever(Milliseconds base = Milliseconds(10), Milliseconds cap = Milliseconds(1000));
    static RetryPolicy never();  ///< one attempt
    /// `attempts` includes the first one, here and below. All these functions throw Error bad_option for values that
    /// cannot work.
    static RetryPolicy n_times(int attempts, Milliseconds interval);
    static RetryPolicy until_elapsed(Milliseconds total, Milliseconds interval);
    /// Exponential back-off with full jitter: uniform in [0, min(cap, base * 2^failures)].
    static RetryPolicy exponential(int attempts, Milliseconds base, Milliseconds cap);

    /// Calls the function of the policy, and passes on what it throws.
    std::optional<Milliseconds> next(const RetryState& state) const;

private:
    Decide decide_;
};

}  // namespace zkrecipes
