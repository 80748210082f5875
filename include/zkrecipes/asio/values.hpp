#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <zkrecipes/asio/call.hpp>
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>

namespace zkrecipes {

// Counters and shared values. The rules for all of these functions: zkrecipes/asio.hpp.
// The comments name the type of the result.

/// std::int64_t.
template <class Token>
auto async_get(AtomicCounter& counter, Fresh fresh, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::int64_t, Token>(
        token, [&counter, fresh, deadline](auto... last) { counter.get_async(fresh, deadline, last...); });
}

/// std::optional<CounterChange>.
template <class Token>
auto async_add(AtomicCounter& counter, std::int64_t delta, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::optional<CounterChange>, Token>(
        token, [&counter, delta, deadline](auto... last) { counter.add_async(delta, deadline, last...); });
}
template <class Token>
auto async_subtract(AtomicCounter& counter, std::int64_t delta, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::optional<CounterChange>, Token>(
        token, [&counter, delta, deadline](auto... last) { counter.subtract_async(delta, deadline, last...); });
}
template <class Token>
auto async_exchange(AtomicCounter& counter, std::int64_t next, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::optional<CounterChange>, Token>(
        token, [&counter, next, deadline](auto... last) { counter.exchange_async(next, deadline, last...); });
}
template <class Token>
auto async_compare_and_set(AtomicCounter& counter, std::int64_t expected, std::int64_t next, Deadline deadline,
                           Token&& token) {
    return asio_calls::initiate<std::optional<CounterChange>, Token>(
        token, [&counter, expected, next, deadline](auto... last) {
            counter.compare_and_set_async(expected, next, deadline, last...);
        });
}

/// bool.
template <class Token>
auto async_force_set(AtomicCounter& counter, std::int64_t number, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&counter, number, deadline](auto... last) { counter.force_set_async(number, deadline, last...); });
}
template <class Token>
auto async_initialize(AtomicCounter& counter, std::int64_t number, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&counter, number, deadline](auto... last) { counter.initialize_async(number, deadline, last...); });
}

/// VersionedValue of a SharedValue; VersionedCount of a SharedCount.
template <class Shared, class Token>
auto async_get(Shared& shared, Deadline deadline, Token&& token) {
    using Value = decltype(shared.get());
    return asio_calls::initiate<Value, Token>(
        token, [&shared, deadline](auto... last) { shared.get_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_set(SharedValue& shared, std::string value, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&shared, value, deadline](auto... last) { shared.set_async(value, deadline, last...); });
}
template <class Token>
auto async_try_set(SharedValue& shared, std::int32_t version, std::string value, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(token, [&shared, version, value, deadline](auto... last) {
        shared.try_set_async(version, value, deadline, last...);
    });
}

/// bool.
template <class Token>
auto async_set(SharedCount& shared, std::int32_t count, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&shared, count, deadline](auto... last) { shared.set_async(count, deadline, last...); });
}
template <class Token>
auto async_try_set(SharedCount& shared, std::int32_t version, std::int32_t count, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(token, [&shared, version, count, deadline](auto... last) {
        shared.try_set_async(version, count, deadline, last...);
    });
}

}  // namespace zkrecipes
